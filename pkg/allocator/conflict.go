package allocator

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"time"

	"github.com/bcsnet/bcsnet/pkg/explain"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// ConflictReport says that a container which was given an address found somebody else answering for it.
type ConflictReport struct {
	Addr        netip.Addr
	ContainerID string
	// IfName of the interface; empty stands for eth0.
	IfName string
	// MAC that answered, in lower case with colons.
	MAC string
	// OnHosts are the hosts whose containers may report; nil for all.
	OnHosts []netip.Addr
}

// Contested holds what a conflict report led to.
type Contested struct {
	// Was is the lease as the container had it, and Now as it is since.
	Was, Now lease.Lease
	// Repeated: it had been reported before, and nothing was changed.
	Repeated bool
}

// conflictsKey is the lock that has one report at a time judged: each counts those before it.
const conflictsKey = "conflicts"

// ReportConflict takes an address from the container that found somebody else answering for it, and quarantines it,
// unless a brake holds that back: then the address is free. A *ipam.Refusal says why the container keeps it. The same
// report twice has the same answer. What was reported before is read from the leases alone.
func (a *Allocator) ReportConflict(ctx context.Context, r ConflictReport) (Contested, error) {
	r.IfName = cmp.Or(r.IfName, lease.DefaultIfName)
	release, err := a.locks.acquire(ctx, conflictsKey)
	if err != nil {
		return Contested{}, unavailable(err)
	}
	defer release()
	l, err := a.leases.Get(ctx, r.Addr)
	switch {
	case errors.Is(err, store.ErrNotFound):
		if _, known := a.index.Pools.PoolOf(r.Addr); !known {
			return Contested{}, ipam.RefuseFacts(ipam.ReasonAddressNotInPool,
				explain.Facts{Kind: explain.AddressInNoPool, Address: r.Addr})
		}
		l.State = lease.Available
	case err != nil:
		return Contested{}, readFailed(err)
	}
	from, held := l.From(r.holds)
	switch {
	case !held && l.Conflict.From(r.ContainerID, r.MAC) && l.Conflict.Outcome != lease.ConflictKept &&
		within(r.OnHosts, l.Conflict.Host):
		return Contested{Was: l, Now: l, Repeated: true}, nil
	case !held:
		return Contested{}, notHeld(l)
	case from.Other != nil:
		return Contested{}, r.kept(from)
	}
	reported := a.index.Leases.Contested()
	if earlier := reported.Except(r.Addr).From(from.Host, a.leases.Now()); len(earlier) >= ipam.MaxReportsOfHost &&
		from.Host.IsValid() && !from.KeptInConflict() {
		return Contested{}, tooManyReports(from, earlier)
	}
	return a.contest(ctx, r, from, reported)
}

// holds reports whether the container of a report has the address, on its interface.
func (r ConflictReport) holds(l lease.Lease) bool {
	return l.State == lease.Active && r.ContainerID != "" && l.ContainerID == r.ContainerID && l.IfName == r.IfName &&
		within(r.OnHosts, l.Host)
}

// contest writes what the report of a holder leads to.
func (a *Allocator) contest(
	ctx context.Context, r ConflictReport, l lease.Lease, reported ipam.Contested,
) (c Contested, err error) {
	var stored bool
	c.Was = l
	c.Now, stored, err = a.leases.Update(ctx, l, func(l lease.Lease) (lease.Lease, bool) {
		now := a.leases.Now()
		c.Was, _ = l.From(r.holds)
		switch {
		case l.KeptInConflict():
			return lease.NoteConflict(l, r.MAC, now)
		case reported.Braked(l.Addr, r.MAC, l.Pool, a.sizeOf(l.Pool), now):
			return lease.Contest(l, r.MAC, now)
		default:
			return lease.Quarantine(l, r.MAC, now)
		}
	}, func(now lease.Lease) bool {
		_, held := now.From(r.holds)
		return now.Version != 0 && held
	})
	switch {
	case err != nil:
		return c, swapFailed(l.Addr, err)
	case stored:
		letGo(ctx, a.leases, c.Now)
	}
	_, held := c.Now.From(r.holds)
	switch {
	case held:
		c.Repeated = !stored
		return c, r.kept(c.Now)
	case stored && c.Now.Conflict == nil:
		return a.unrecorded(ctx, r, c)
	case stored:
		return c, nil
	case c.Now.Conflict.From(r.ContainerID, r.MAC): // another replica was told the same, and was faster
		c.Repeated = true
		return c, nil
	default: // somebody released it meanwhile
		return c, notHeld(c.Now)
	}
}

// unrecorded frees an address whose report the API server did not store: it drops fields that its CRD does not have.
// Without the report, the address would count as set aside by hand, for good.
func (a *Allocator) unrecorded(ctx context.Context, r ConflictReport, c Contested) (Contested, error) {
	a.log.Warn("an address is not quarantined: the CRD BCSNetIP is of an earlier release and knows no conflicts",
		"address", r.Addr.String(), "mac", r.MAC)
	reserved := c.Now
	if reserved.State == lease.Reserved {
		change := lease.Change{Verb: lease.VerbConflict, By: r.MAC, Reason: "answered; the CRD is an earlier one"}
		if _, err := FreeLease(ctx, a.leases, reserved, change, func(now lease.Lease) bool {
			return now.State == lease.Reserved && now.Updated.Equal(reserved.Updated)
		}); err != nil {
			return c, err
		}
	}
	c.Now.State, c.Now.Conflict = lease.Available, &lease.Conflict{
		MAC: r.MAC, Host: c.Was.Host, ContainerID: r.ContainerID, At: reserved.Updated, Outcome: lease.ConflictReleased,
	}
	return c, nil
}

// sizeOf returns how many addresses a pool has.
func (a *Allocator) sizeOf(pool string) uint64 {
	p, ok := a.index.Pools.Get(pool)
	if !ok || !p.Valid() {
		return 0
	}
	return ipaddr.SizeOfSet(p.Plan.Usable)
}

// kept refuses the report of a holder that keeps its address.
func (r ConflictReport) kept(l lease.Lease) *ipam.Refusal {
	why := "which " + l.Who() + " asked for by name"
	switch {
	case l.Other != nil:
		why = "which pods " + l.Other.Who() + " and " + l.Who() + " both have while their virtual machine migrates"
	case l.KeptOnRelease():
		why = "which claim " + l.Claim + " keeps for " + l.Who()
	}
	return ipam.Refuse(ipam.ReasonAddressConflict, "%s answers for address %s, %s", r.MAC, l.Addr, why).
		WithHint("mostly it is an earlier instance on a node that is cut off: find %s in the network, and stop it; "+
			"the address stays, and is tried again", r.MAC)
}

// tooManyReports refuses the report of a host whose containers have reported many conflicts in the last hour.
func tooManyReports(l lease.Lease, earlier []netip.Addr) *ipam.Refusal {
	return ipam.Refuse(ipam.ReasonTooManyConflicts,
		"host %s has reported conflicts of %d addresses within an hour (%s); that of %s changes nothing", l.Host,
		len(earlier), ipaddr.FormatSet(ipaddr.SetOfAddrs(earlier...)), l.Addr).
		WithHint("bcsnetctl doctor --only proxy-arp,address-quarantined names who answers; it is tried again within %s",
			lease.ConflictWindow.Round(time.Minute))
}
