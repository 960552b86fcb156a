package allocator

import (
	"context"
	"net/netip"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// maxInterfaces limits the interfaces on which a pod has addresses. Without it whoever makes a pod, and so writes its
// list of networks, could take a whole pool.
const maxInterfaces = 64

// pick chooses the addresses that the request lacks, and assumes them for it. Where they are of a block that does not
// exist yet it makes that.
func (a *Adder) pick(ctx context.Context, t *attempt) error {
	if complete(t.held) {
		return nil
	}
	if len(t.held) == 0 && t.holder.PodUID != "" && a.interfaces(t.holder) >= maxInterfaces {
		return ipam.Refuse(ipam.ReasonQuotaExceeded, "%s has addresses on %d interfaces, the most that a pod may have",
			t.who(), maxInterfaces).WithHint("attach the pod to fewer networks")
	}
	picks, err := a.decide(ctx, t.want(t.held), t.prefer)
	if err != nil {
		return err
	}
	err = t.unreachable(picks)
	if err == nil && t.kept && len(newPicks(picks)) > 0 { // somebody was faster
		err = errStale
	}
	if err == nil {
		err = a.blocks.makeAll(ctx, picks)
	}
	if err != nil {
		a.writer.forget(picks)
		return err
	}
	t.picks = picks
	return nil
}

// interfaces returns the number of interfaces on which the pod of a holder has addresses.
func (a *Adder) interfaces(h lease.Holder) int {
	names := map[string]bool{}
	h.IfName = ""
	for _, l := range a.engine.index.Leases.ByAttachment(h) {
		if l.State == lease.Active {
			names[l.IfName] = true
		}
	}
	return len(names)
}

// unreachable refuses picks from a subnet that the gateway of the request's constraints is not in.
func (t *attempt) unreachable(picks []ipam.Pick) error {
	g := t.constraints.Gateway
	for _, p := range picks {
		if g.IsValid() && g.Is4() == p.Current.Addr.Is4() && !ipaddr.Reaches(p.Pool.Plan.Subnet, g) {
			return ipam.Refuse(ipam.ReasonClaimConflict,
				"the gateway %s that %s asks for is not in the subnet %s of pool %s", g,
				t.who(), p.Pool.Plan.Subnet, p.Pool.Name).
				WithHint("name a gateway of that subnet, or a pool of the gateway's")
		}
	}
	return nil
}

// decide tries the preferred addresses first, unless the request names addresses itself. If they cannot be had, it
// picks any.
func (a *Adder) decide(
	ctx context.Context, want ipam.PickRequest, prefer []netip.Addr,
) (picks []ipam.Pick, err error) {
	end := a.engine.leases.Begin(ctx, store.StageDecide)
	defer func() { end(err) }()
	if len(prefer) > 0 && len(want.Addrs) == 0 {
		preferred := want
		preferred.Addrs = prefer
		if picks, refusal := a.engine.index.Pick(preferred, a.engine.leases.Now()); refusal == nil {
			return picks, nil
		}
	}
	picks, refusal := a.engine.index.Pick(want, a.engine.leases.Now())
	if refusal != nil {
		return nil, refusal
	}
	return picks, nil
}

// want returns what the request lacks beside the leases that it holds.
func (t *attempt) want(held []lease.Lease) ipam.PickRequest {
	pools := t.constraints.Pools
	switch {
	case t.Pool != "":
		pools = []string{t.Pool}
	case t.Owner != "":
		pools = t.Pools
	}
	return ipam.PickRequest{
		Host: t.Host, Namespace: t.Namespace, Owner: t.Owner,
		Pools: pools, Network: t.Network, Families: t.families,
		Addrs: t.Addrs, Have: held,
		Ahead: t.Owner != "" && t.ForObject,
		Claim: t.constraints.Claim, PodPrimaryKey: t.constraints.PodPrimaryKey, IfName: t.holder.IfName,
		PodUID: t.holder.PodUID,
		Keeps:  t.constraints.Claim != "" && t.constraints.Fixed,
		Room:   t.constraints.Room, Sets: t.constraints.Sets,
		Key: t.seed(), Who: t.who(), Holder: t.holder.Who(),
	}
}

// seed determines where in a pool the search for an address begins: at the pod's UID and interface, so that
// replicas that are asked at once agree.
func (t *attempt) seed() string {
	if t.holder.PodUID != "" {
		return t.holder.PodUID + "/" + t.holder.IfName
	}
	return t.key()
}
