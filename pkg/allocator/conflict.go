package allocator

import (
	"cmp"
	"context"
	"errors"
	"net/netip"

	"github.com/bcsnet/bcsnet/pkg/explain"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// ConflictReport is a container's report that another machine answers for its address.
type ConflictReport struct {
	Addr        netip.Addr
	ContainerID string
	// IfName names the interface; empty means eth0.
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

// Reporter judges conflict reports, one at a time.
type Reporter struct{ engine *engine }

// ReportConflict takes an address from the container that found somebody else answering for it, and quarantines it,
// unless a brake holds that back: then the address is free. A *ipam.Refusal says why the container keeps it. The same
// report twice has the same answer. What was reported before is read only from the leases.
func (j *Reporter) ReportConflict(ctx context.Context, r ConflictReport) (Contested, error) {
	r.IfName = cmp.Or(r.IfName, lease.DefaultIfName)
	release, err := j.engine.locks.acquire(ctx, conflictsKey)
	if err != nil {
		return Contested{}, unavailable(err)
	}
	defer release()
	l, err := j.engine.leases.Get(ctx, r.Addr)
	switch {
	case errors.Is(err, store.ErrNotFound):
		if _, known := j.engine.index.Pools.PoolOf(r.Addr); !known {
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
	reported := j.engine.index.Leases.Contested()
	earlier := reported.Except(r.Addr).From(from.Host, j.engine.leases.Now())
	if len(earlier) >= ipam.MaxReportsOfHost && from.Host.IsValid() && !from.KeptInConflict() {
		return Contested{}, tooManyReports(from, earlier)
	}
	return j.contest(ctx, r, from, reported)
}

// holds reports whether the container of a report has the address, on its interface.
func (r ConflictReport) holds(l lease.Lease) bool {
	return l.State == lease.Active && r.ContainerID != "" && l.ContainerID == r.ContainerID && l.IfName == r.IfName &&
		within(r.OnHosts, l.Host)
}

// contest writes what the report of a holder leads to.
func (j *Reporter) contest(
	ctx context.Context, r ConflictReport, l lease.Lease, reported ipam.Contested,
) (c Contested, err error) {
	var stored bool
	c.Was = l
	c.Now, stored, err = j.engine.leases.Update(ctx, l, func(l lease.Lease) (lease.Lease, bool) {
		now := j.engine.leases.Now()
		c.Was, _ = l.From(r.holds)
		switch {
		case l.KeptInConflict():
			return lease.NoteConflict(l, r.MAC, now)
		case reported.Braked(l.Addr, r.MAC, l.Pool, j.sizeOf(l.Pool), now):
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
		letGo(ctx, j.engine.leases, c.Now)
	}
	_, held := c.Now.From(r.holds)
	switch {
	case held:
		c.Repeated = !stored
		return c, r.kept(c.Now)
	case stored && c.Now.Conflict == nil:
		return j.unrecorded(ctx, r, c)
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
func (j *Reporter) unrecorded(ctx context.Context, r ConflictReport, c Contested) (Contested, error) {
	j.engine.log.Warn("an address is not quarantined: the CRD BCSNetIP is of an earlier release and knows no conflicts",
		"address", r.Addr.String(), "mac", r.MAC)
	reserved := c.Now
	if reserved.State == lease.Reserved {
		change := lease.Change{Verb: lease.VerbConflict, By: r.MAC, Reason: "answered; the CRD is an earlier one"}
		if _, err := FreeLease(ctx, j.engine.leases, reserved, change, func(now lease.Lease) bool {
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
func (j *Reporter) sizeOf(pool string) uint64 {
	p, ok := j.engine.index.Pools.Get(pool)
	if !ok || !p.Valid() {
		return 0
	}
	return ipaddr.SizeOfSet(p.Plan.Usable)
}
