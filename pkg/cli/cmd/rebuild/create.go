package rebuild

import (
	"context"
	"net/netip"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/leasing"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/recovery"
)

// rebuilt is the participle in messages about addresses.
const rebuilt = "rebuilt"

// create stores leases. It returns those that their pods hold now, and a conflict for each that somebody else holds.
func (v *verb) create(
	ctx context.Context, a *leasing.Allocator, todo []lease.Lease,
) (made []lease.Lease, late []recovery.Conflict, err error) {
	stored := make([]lease.Lease, len(todo))
	failed := resource.InBulk(ctx, v.App, todo, rebuilt, func(i int, l lease.Lease) (err error) {
		if stored[i] = l; v.DryRun != app.DryRunClient {
			stored[i], _, err = recovery.Create(ctx, a.Leases, l)
		}
		return resource.Explain(v.App, err)
	})
	var addrs []netip.Addr
	for i, l := range stored {
		want := todo[i]
		switch {
		case failed[i] != nil:
		// Created here or by a controller.
		case l.State == lease.Active && l.PodUID == want.PodUID && l.Owner == want.Owner:
			made, addrs = append(made, l), append(addrs, l.Addr)
		case l.State == lease.Active:
			late = append(late, recovery.Conflict{Addr: l.Addr, Pool: want.Pool, Pod: want.Who(), Cause: l.Who() +
				" holds it now"})
		case l.State == lease.Reserved:
			late = append(late, recovery.Conflict{
				Addr: l.Addr, Pool: want.Pool, Pod: want.Who(), Cause: "it is reserved by now",
			})
		default:
			v.Say.Note("%s is left free: %s had it and gave it up meanwhile, or its object is being deleted", l.Addr,
				want.Who())
		}
	}
	v.warnConflicts(late)
	if len(addrs) > 0 {
		v.Say.Done("%s %s: %s", humanize.Plural(len(addrs), "address"), rebuilt,
			resource.Spell(ipaddr.SetOfAddrs(addrs...)))
	}
	return made, late, resource.Unfinished(ctx, rebuilt, todo, failed)
}
