package allocator

import (
	"cmp"
	"context"
	"net/netip"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// take picks what the request lacks and commits it. fresh are those of the leases that nobody kept for it.
func (a *Allocator) take(ctx context.Context, r Request, h ipam.Holder, held []ipam.Lease, prefer []netip.Addr) (all, fresh []ipam.Lease, err error) {
	want, kept := r.want(h, held), false
	if len(prefer) == 0 {
		if kept, err = a.waitForTerminating(ctx, r, want); err != nil {
			return nil, nil, err
		}
	}
	picks, err := a.decide(ctx, want, prefer)
	if err != nil {
		return nil, nil, err
	}
	err = r.unreachable(picks)
	if err == nil && kept && len(newPicks(picks)) > 0 { // somebody was faster
		err = errStale
	}
	if err != nil {
		for _, p := range picks {
			a.index.Forget(p.Current.Addr)
		}
		return nil, nil, err
	}
	if n := len(held) + len(picks); n > 1 {
		h.SetSize = n
	}
	for i, p := range picks {
		stored, err := a.commit(ctx, r, h, p)
		if err == nil {
			if held = append(held, stored); p.Current.State == ipam.Available {
				fresh = append(fresh, stored)
			}
			continue
		}
		for _, rest := range picks[i+1:] {
			a.index.Forget(rest.Current.Addr)
		}
		return nil, nil, err
	}
	return held, fresh, nil
}

// unreachable refuses picks from a subnet that the gateway of the request's constraints is not in.
func (r Request) unreachable(picks []ipam.Pick) error {
	g := r.constraints.Gateway
	for _, p := range picks {
		if g.IsValid() && g.Is4() == p.Current.Addr.Is4() && !p.Pool.Plan.Subnet.Contains(g) {
			return ipam.Refuse(ipam.ReasonClaimConflict, "the gateway %s that %s asks for is not in the subnet %s of pool %s", g, r.who(), p.Pool.Plan.Subnet, p.Pool.Name).
				WithHint("name a gateway of that subnet, or a pool of the gateway's")
		}
	}
	return nil
}

// decide picks the preferred addresses, where the request asked for none itself and they are free, else others.
func (a *Allocator) decide(ctx context.Context, want ipam.PickRequest, prefer []netip.Addr) (picks []ipam.Pick, err error) {
	end := a.leases.Begin(ctx, store.StageDecide)
	defer func() { end(err) }()
	if len(prefer) > 0 && len(want.Addrs) == 0 {
		preferred := want
		preferred.Addrs = prefer
		if picks, refusal := a.index.Pick(preferred, a.leases.Now()); refusal == nil {
			return picks, nil
		}
	}
	picks, refusal := a.index.Pick(want, a.leases.Now())
	if refusal != nil {
		return nil, refusal
	}
	return picks, nil
}

// want returns what the request still lacks.
func (r Request) want(h ipam.Holder, held []ipam.Lease) ipam.PickRequest {
	return ipam.PickRequest{
		Host: r.Host, Namespace: r.Namespace, Owner: r.Owner, Pool: cmp.Or(r.Pool, r.constraints.Pool), Network: r.Network, Addrs: r.Addrs, Have: held,
		Claim: r.constraints.Claim, PodPrimaryKey: r.constraints.PodPrimaryKey, IfName: h.IfName, Room: r.constraints.Room, Sets: r.constraints.Sets,
		Key: r.seed(h), Who: r.who(), Holder: h.Who(),
	}
}

// seed decides where in a pool the search for an address begins: at the pod's UID and interface, so that
// replicas that are asked at once agree.
func (r Request) seed(h ipam.Holder) string {
	if h.PodUID != "" {
		return h.PodUID + "/" + h.IfName
	}
	return r.key()
}
