package allocator

import (
	"context"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// commit writes the picked addresses as leases of the request, and ends their assumptions.
func (a *Adder) commit(ctx context.Context, t *attempt) error {
	h := t.holder
	if n := len(t.held) + len(t.picks); n > 1 {
		h.SetSize = n
	}
	for i, p := range t.picks {
		h.Slot, h.AddressNamed, h.Given = p.Slot, t.asksFor(p.Current.Addr), a.answers.give(t, p.Current.Addr, p.Pool)
		next, ok := lease.Bind(p.Current, p.Pool.Params(), h, t.constraints.Retention, a.engine.leases.Now())
		stored, err := a.writer.write(ctx, t.key(), p.Current, next, ok)
		if err != nil {
			a.writer.forget(t.picks[i+1:])
			return err
		}
		if t.held = append(t.held, stored); p.Current.State == lease.Available {
			t.fresh = append(t.fresh, stored)
		}
	}
	return nil
}
