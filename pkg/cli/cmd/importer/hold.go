package importer

import (
	"context"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/importer"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// hold reserves free addresses here that the other system still has for somebody: it could give them to a pod of the
// same name.
func (v *takeOver) hold(ctx context.Context, here map[string]*v1.BCSNetPool, shares []importer.Share) error {
	leases, err := v.Leases()
	if err != nil {
		return err
	}
	h := importer.Here{System: v.system.Name, By: v.Author(ctx)}
	for _, s := range shares {
		if len(s.Hold) == 0 {
			continue
		}
		params := store.Pool(here[s.Pool.Name]).Params()
		failed := resource.InBulk(ctx, v.App, s.Hold, "reserved", func(i int, l lease.Lease) error {
			_, _, err := allocator.ReserveLease(ctx, leases, l, params, h.Hold(s.For[i]))
			return resource.Explain(v.App, err)
		})
		if err := resource.Unfinished(ctx, "reserved", s.Hold, failed); err != nil {
			return err
		}
		n := len(s.Hold)
		v.Say.Note("pool %s: %s reserved here until %s no longer has %s", s.Pool.Name,
			humanize.Plural(n, "free address"), v.system.Title, humanize.OneOr(n, "it", "them"))
	}
	return nil
}

// lift frees addresses that were reserved because the other system still had them.
func (v *takeOver) lift(ctx context.Context, shares []importer.Share) error {
	leases, err := v.Leases()
	if err != nil {
		return err
	}
	h := importer.Here{System: v.system.Name, Now: leases.Now(), By: v.Author(ctx)}
	var all []lease.Lease
	for _, s := range shares {
		all = append(all, s.Lift...)
	}
	failed := resource.InBulk(ctx, v.App, all, "freed", func(_ int, l lease.Lease) error {
		_, _, err := leases.Update(ctx, l, h.Lift, func(now lease.Lease) bool {
			_, ok := h.Lift(now)
			return ok
		})
		return resource.Explain(v.App, err)
	})
	return resource.Unfinished(ctx, "freed", all, failed)
}
