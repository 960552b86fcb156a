package galaxy

import (
	"context"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// ListIPs answers GET /v1/ip from memory: what pods, claims and workloads are is what the watches tell.
func (s *Service) ListIPs(ctx context.Context, rawQuery string) (ListIPResponse, error) {
	q, err := parseQuery(rawQuery)
	if err != nil {
		return ListIPResponse{}, err
	}
	if err := s.lists.Acquire(ctx, 1); err != nil {
		return ListIPResponse{}, ipam.Refuse(ipam.ReasonUnavailable, "other lists took too long: %v", err)
	}
	defer s.lists.Release(1)
	v := s.view(ctx)
	rows := v.matching(&q)
	page, start, end := q.cut(len(rows))
	out := ListIPResponse{Page: page, Content: make([]FloatingIP, 0, end-start)}
	slices.SortFunc(rows, q.order.compare())
	for _, r := range rows[start:end] {
		v.finish(r)
		out.Content = append(out.Content, r.FloatingIP)
	}
	return out, nil
}

// matching are the addresses that are held and match.
func (v *view) matching(q *query) []*row {
	var rows []*row
	v.Index.Each(func(l ipam.Lease) {
		if l.State == ipam.Available {
			return
		}
		if r := v.row(l); q.matchesHolder(&r) {
			rows = append(rows, &r)
		}
	})
	if !q.needsApp() {
		return rows
	}
	return slices.DeleteFunc(rows, func(r *row) bool {
		v.findApp(r)
		return !q.matchesApp(r)
	})
}
