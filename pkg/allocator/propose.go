package allocator

import (
	"context"
	"errors"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Propose decides as Allocate does, but writes nothing. It returns what the request holds already, and what it would
// get beside that by the index at this moment. The addresses that it would get are of the version that a write of
// them would replace.
func (a *Adder) Propose(ctx context.Context, r Request) (held, free []lease.Lease, err error) {
	t := a.begin(ctx, r)
	if err := a.resolve(ctx, t); err != nil {
		return nil, nil, err
	}
	h := t.holder
	held = slices.DeleteFunc(a.engine.index.Leases.ByAttachment(h),
		func(l lease.Lease) bool { return l.State != lease.Active })
	if refusal := holdsOther(t.Request, held, a.engine.index); refusal != nil {
		return nil, nil, refusal
	}
	switch {
	case complete(held):
		return held, nil, nil
	case t.refused != nil:
		return nil, nil, t.refused
	}
	if len(held) == 0 && t.constraints.PodPrimaryKey != "" {
		for _, l := range a.engine.index.Leases.ByKey(t.constraints.Claim, t.constraints.PodPrimaryKey) {
			next, ok, err := a.succession.successor(ctx, t, l)
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
	picks, refusal := a.engine.index.Propose(t.want(held), a.engine.leases.Now())
	if refusal != nil {
		return nil, nil, refusal
	}
	if lacks := newPicks(picks); len(lacks) > 0 {
		pods, err := a.departures.of(ctx, t, t.want(held))
		if err != nil {
			return nil, nil, err
		}
		if i := slices.IndexFunc(pods, func(e terminatingPod) bool { return e.replaces(lacks) }); i >= 0 {
			return nil, nil, waitsForPod(t, pods[i].pod)
		}
	}
	if n := len(held) + len(picks); n > 1 {
		h.SetSize = n
	}
	for _, p := range picks {
		h.Slot, h.Given = p.Slot, a.answers.give(t, p.Current.Addr, p.Pool)
		if next, ok := lease.Bind(p.Current, p.Pool.Params(), h, t.constraints.Retention, a.engine.leases.Now()); ok {
			free = append(free, next)
		}
	}
	return held, free, nil
}
