package allocator

import (
	"context"
	"errors"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// Propose is Allocate without its writes: what the request holds already, and what it would be given
// beside that by the picture of this moment. The addresses that it would be given are of the version that
// a write of them would replace.
func (a *Allocator) Propose(ctx context.Context, r Request) (held, free []ipam.Lease, err error) {
	if r.IfName == "" {
		r.IfName = ipam.DefaultIfName
	}
	r.began = a.moment(r.StartedAt, r.ArrivedAt)
	r.StartedAt = r.began.counts()
	h, err := a.holder(ctx, &r)
	if err != nil {
		return nil, nil, err
	}
	held = slices.DeleteFunc(a.index.ByAttachment(h), func(l ipam.Lease) bool { return l.State != ipam.Active })
	if refusal := holdsOther(r, held, a.index); refusal != nil {
		return nil, nil, refusal
	}
	switch {
	case complete(held):
		return held, nil, nil
	case r.refused != nil:
		return nil, nil, r.refused
	}
	if len(held) == 0 && r.constraints.PodPrimaryKey != "" {
		for _, l := range a.index.ByKey(r.constraints.Claim, r.constraints.PodPrimaryKey) {
			next, ok, err := a.successor(ctx, r, h, l)
			switch {
			case errors.Is(err, errStale):
				return a.Propose(ctx, r)
			case err != nil:
				return nil, nil, err
			case ok:
				free = append(free, next)
			}
		}
		if len(free) > 0 {
			return nil, free, nil
		}
	}
	picks, refusal := a.index.Propose(r.want(h, held), a.leases.Now())
	if refusal != nil {
		return nil, nil, refusal
	}
	if lacks := newPicks(picks); len(lacks) > 0 {
		pods, err := a.terminating(ctx, r, r.want(h, held))
		if err != nil {
			return nil, nil, err
		}
		if i := slices.IndexFunc(pods, func(e terminatingPod) bool { return e.replaces(lacks) }); i >= 0 {
			return nil, nil, waitsForPod(r, pods[i].pod)
		}
	}
	if n := len(held) + len(picks); n > 1 {
		h.SetSize = n
	}
	for _, p := range picks {
		h.Slot = p.Slot
		if next, ok := ipam.Bind(p.Current, p.Pool.Params(), h, r.constraints.Retention, a.leases.Now()); ok {
			free = append(free, next)
		}
	}
	return held, free, nil
}
