package leasing

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// SetAside sets addresses aside, or returns them to their pools.
type SetAside struct {
	*app.App
	Output  printer.Output
	Entries []resource.Entry
	Reason  string
	Reserve bool
}

// Run checks all addresses before it changes the first.
func (v *SetAside) Run(ctx context.Context) error {
	leases, err := v.Leases()
	if err != nil {
		return err
	}
	x, err := resource.PoolIndex(ctx, v.App)
	if err != nil {
		return err
	}
	all, err := resource.ReadAddresses(ctx, v.App, leases, resource.AddressesOf(v.Entries))
	if err != nil {
		return err
	}
	todo, err := v.check(x, all)
	if err != nil {
		return err
	}
	return v.write(ctx, x, leases, todo)
}

// check returns the addresses to change. One address that cannot be changed makes it fail.
func (v *SetAside) check(x *index.Index, all []lease.Lease) (todo []lease.Lease, err error) {
	var failed app.Several
	var outside, same []netip.Addr
	var why *ipam.Refusal
	for _, l := range all {
		pool, refusal := x.Candidate(l.Addr, v.Now())
		switch {
		case pool.Name == "" && (v.Reserve || l.Version == 0):
			outside, why = append(outside, l.Addr), refusal
		case l.State == lease.Active:
			failed = append(failed, v.inUse(l))
		case l.IsRetained():
			failed = append(failed, resource.RetainedByClaim(l))
		case l.Deleting:
			failed = append(failed, app.Refuse(ipam.ReasonUnavailable, "the object of address %s is being deleted",
				l.Addr).WithHint("try again in a moment"))
		case v.Reserve && pool.Terminating:
			failed = append(failed, app.Refuse(app.ReasonPoolTerminating,
				"address %s is in pool %s, which is being deleted", l.Addr, pool.Name).
				WithHint("see what it waits for: bcsnetctl pool describe %s", pool.Name))
		case v.Reserve && l.State == lease.Available && x.Pools.Rebuilding(pool.Name) != "":
			failed = append(failed, app.Refuse(ipam.ReasonPoolRebuilding,
				"address %s is in pool %s, which is being rebuilt after its leases were lost, %s",
				l.Addr, pool.Name, x.Pools.Rebuilding(pool.Name)).
				WithHint("try again then; see: bcsnetctl pool describe %s", pool.Name))
		case v.Reserve && l.IsQuarantined():
			todo = append(todo, l) // the quarantine would end and free it
		case (l.State == lease.Reserved) == v.Reserve:
			same = append(same, l.Addr)
		default:
			todo = append(todo, l)
		}
	}
	if failed = append(failed, NoPool(outside, why)...); len(failed) > 0 {
		return nil, resource.NoneDone(v.App, len(all), v.done(), failed)
	}
	if len(same) > 0 {
		state := map[bool]string{true: "reserved already", false: "not reserved"}[v.Reserve]
		if v.Reserve && v.Reason != "" {
			state += ", and the reason stays as it was"
		}
		v.Say.Note("%s: %s", state, resource.Spell(ipaddr.SetOfAddrs(same...)))
	}
	return todo, nil
}

// NoPool returns the error for addresses of no pool. why is the reason for the last of them.
func NoPool(outside []netip.Addr, why *ipam.Refusal) app.Several {
	switch len(outside) {
	case 0:
		return nil
	case 1:
		return app.Several{why}
	default:
		return app.Several{app.Refuse(ipam.ReasonAddressNotInPool, "no pool has these %s: %s",
			humanize.Plural(len(outside), "address"), resource.Spell(ipaddr.SetOfAddrs(outside...))).
			WithHint("see what pools have: bcsnetctl pool list")}
	}
}

func (v *SetAside) inUse(l lease.Lease) error {
	if v.Reserve {
		return app.Refuse(ipam.ReasonAddressInUse, "address %s of pool %s is held by %s", l.Addr, l.Pool, l.Where()).
			WithHint("see what would free it: bcsnetctl ip describe %s", l.Addr)
	}
	return app.Refuse(ipam.ReasonAddressInUse, "address %s of pool %s is not reserved but held by %s", l.Addr, l.Pool,
		l.Where()).
		WithHint("to take it away: bcsnetctl ip release %s", l.Addr)
}

func (v *SetAside) write(ctx context.Context, x *index.Index, leases *store.Client, todo []lease.Lease) error {
	verb := lease.VerbReserve
	if !v.Reserve {
		verb = lease.VerbUnreserve
	}
	change := lease.Change{Verb: verb, Reason: v.Reason}
	if v.DryRun != app.DryRunClient && len(todo) > 0 {
		change = v.Change(ctx, verb, v.Reason)
	}
	changed := make([]lease.Lease, len(todo))
	failed := resource.InBulk(ctx, v.App, todo, v.done(), func(i int, l lease.Lease) (err error) {
		if v.Reserve {
			changed[i], err = v.set(ctx, x, leases, l, change)
		} else {
			changed[i], err = v.unset(ctx, leases, l, change)
		}
		return err
	})
	var stored []lease.Lease
	var addrs []netip.Addr
	for i, l := range changed {
		if failed[i] == nil {
			stored, addrs = append(stored, l), append(addrs, l.Addr)
		}
	}
	if len(addrs) > 0 {
		v.Say.Done("%s %s: %s", humanize.Plural(len(addrs), "address"), v.done(),
			resource.Spell(ipaddr.SetOfAddrs(addrs...)))
	}
	var printed error
	if v.Output.Printer != nil {
		printed = resource.PrintLeases(v.App, &v.Output, nil, stored)
	}
	return app.Several{resource.Unfinished(ctx, v.done(), todo, failed), printed}.Compact()
}

func (v *SetAside) done() string {
	if v.Reserve {
		return "reserved"
	}
	return "unreserved"
}

func (v *SetAside) set(
	ctx context.Context, x *index.Index, leases *store.Client, l lease.Lease, c lease.Change,
) (lease.Lease, error) {
	pool, _ := x.Candidate(l.Addr, v.Now())
	if v.DryRun == app.DryRunClient {
		next, _ := lease.Reserve(l, pool.Params(), leases.Now(), c) // check has seen that it can be
		return next, nil
	}
	now, reserved, err := allocator.ReserveLease(ctx, leases, l, pool.Params(), c)
	if err != nil || reserved || now.State == lease.Reserved {
		return now, err
	}
	if now.Deleting {
		return now, fmt.Errorf("the object of address %s is being deleted", l.Addr)
	}
	return now, v.inUse(now)
}

// unset makes one reserved address available, unless somebody else changed it.
func (v *SetAside) unset(
	ctx context.Context, leases *store.Client, l lease.Lease, c lease.Change,
) (lease.Lease, error) {
	next, _ := lease.Release(l, leases.Now(), c)
	if v.DryRun == app.DryRunClient {
		return next, nil
	}
	released, err := allocator.ReleaseLease(ctx, leases, l, c, func(now lease.Lease) bool {
		return now.State == lease.Reserved && now.Updated.Equal(l.Updated)
	})
	if err == nil && !released {
		err = app.Refuse(app.ReasonLeaseChanged, "%s was not unreserved: it has changed hands meanwhile", l.Addr).
			WithHint("see who has it: bcsnetctl ip describe %s", l.Addr)
	}
	return next, err
}
