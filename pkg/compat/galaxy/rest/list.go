package rest

import (
	"context"
	"net/netip"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// ListIPs answers GET /v1/ip from memory: from the index, and from the caches of pods, claims and workloads.
func (s *Service) ListIPs(ctx context.Context, rawQuery string) (ListIPResponse, error) {
	q, err := parseQuery(rawQuery)
	if err != nil {
		return ListIPResponse{}, err
	}
	v := s.view(ctx)
	keys, n := v.matching(&q)
	page, start, end := q.cut(n)
	out := ListIPResponse{Page: page, Content: make([]FloatingIP, 0, end-start)}
	for _, k := range keys[start:end] {
		r := v.row(k.lease())
		v.finish(&r)
		out.Content = append(out.Content, r.FloatingIP)
	}
	return out, nil
}

// Rows returns the largest number of addresses in the answer to a query; 0 if the query cannot be parsed.
func Rows(rawQuery string) int {
	q, err := parseQuery(rawQuery)
	if err != nil {
		return 0
	}
	return q.size
}

// key has the fields by which an address is sorted.
type key struct {
	entry index.Entry
	// second reports whether the row shows the second attachment of the address.
	second                 bool
	addr                   netip.Addr
	ip, namespace, podName string
	policy                 int
}

// lease returns the lease as seen from the shown attachment.
func (k *key) lease() lease.Lease {
	l := k.entry.Lease()
	if l.FromSecond != k.second {
		return l.Turned()
	}
	return l
}

func (r *row) key(e index.Entry) key {
	return key{
		entry: e, second: r.lease.FromSecond, addr: r.addr, ip: r.IP, namespace: r.Namespace, podName: r.PodName,
		policy: r.Policy,
	}
}

// found returns an address as seen from its first attachment that matches; ok is false if none does. While a virtual
// machine migrates live, two pods have its address, but the list has one row.
func (v *view) found(l lease.Lease, q *query) (r row, ok bool) {
	for side := range l.Attachments() {
		r = v.row(side)
		if !q.matchesHolder(&r) {
			continue
		}
		if !q.needsApp() {
			return r, true
		}
		if v.findApp(&r); q.matchesApp(&r) {
			return r, true
		}
	}
	return r, false
}

// matching returns the matching addresses up to the end of the page, in order, and n, the number of all matching
// addresses. To save memory it keeps only a key of each: the row is made again when it is shown.
func (v *view) matching(q *query) (kept []*key, n int) {
	most := (q.page + 1) * q.size
	cut := func() {
		slices.SortFunc(kept, q.order.compare)
		kept = kept[:min(most, len(kept))]
	}
	full := false // addresses after the last one are not on the page
	v.Index.Leases.EachEntry(func(e index.Entry, state lease.State) {
		if state == lease.Available {
			return
		}
		r, ok := v.found(e.Lease(), q)
		if !ok {
			return
		}
		n++
		k := r.key(e)
		if full && q.order.compare(&k, kept[most-1]) > 0 {
			return
		}
		if kept = append(kept, new(k)); len(kept) >= 2*most {
			cut()
			full = true
		}
	})
	cut()
	return kept, n
}
