package allocator

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/explain"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// Constraints hold what the claim and the annotations of a pod say about its addresses. A pod that says nothing has the
// zero Constraints.
type Constraints struct {
	// Retention is stored on the addresses. It names the claim also where that does not exist yet: the controller makes
	// the claim from the addresses.
	lease.Retention
	// Room bounds how many addresses of a family the claim may have in all; 0 for no bound, negative for none at all.
	Room int
	// Pools that addresses come from, in the order in which they are tried; none for any.
	Pools []string
	// Sets restrict the addresses, one of each; none for any.
	Sets []*netipx.IPSet
	// Gateway in place of the pool's; invalid for that.
	Gateway netip.Addr
	// IfName is the interface that they are for where they are not for all; empty where they are.
	IfName string
	// Families that the pod wants, as far as it says.
	Families ipam.Families
}

// Pools tells the pools of addresses: those of the index do.
type Pools interface {
	// OfPools reports whether a lease is of one of some pools, or of a block of one.
	OfPools(l lease.Lease, pools []string) bool
}

// RetentionFor returns the retention to store on a lease already held; none if the claim may not have that address,
// which would count as one of those that it may have.
func (t Constraints) RetentionFor(x Pools, l lease.Lease) lease.Retention {
	if t.Claim != l.Claim && (len(t.Pools) > 0 && !x.OfPools(l, t.Pools) || len(t.Sets) > 0 &&
		!slices.ContainsFunc(t.Sets, func(s *netipx.IPSet) bool { return s.Contains(l.Addr) })) {
		return lease.Retention{}
	}
	return t.Retention
}

// ConstraintsFinder finds the constraints of pods; the one of package claim does. Its errors are *ipam.Refusal where
// the pod's claim or annotations are wrong.
type ConstraintsFinder interface {
	Of(ctx context.Context, pod workload.Pod) (Constraints, error)
}

// asksFor reports whether the request, or an annotation of its pod, names the address and no other.
func (t *attempt) asksFor(a netip.Addr) bool {
	return slices.Contains(t.Addrs, a) || slices.ContainsFunc(t.constraints.Sets, func(s *netipx.IPSet) bool {
		return s.Contains(a) && ipaddr.SizeOfSet(s) == 1
	})
}

// agree refuses a request for something else than its pod's constraints allow. What the request does not say about
// families, the constraints say.
func (t *attempt) agree() *ipam.Refusal {
	c, facts := t.constraints, explain.Facts{Who: t.who(), Pod: t.Namespace + "/" + t.PodName}
	families, ok := t.Families.With(c.Families)
	if !ok {
		return ipam.Refuse(ipam.ReasonClaimConflict, "the request says %s, and the annotations for %s say %s",
			t.Families, t.who(), c.Families).WithHint("say it in one of the two places")
	}
	if err := families.Admit(t.Addrs); err != nil {
		return ipam.Refuse(ipam.ReasonClaimConflict, "the request and the annotations for %s contradict each other: %v",
			t.who(), err).WithHint("say it in one of the two places")
	}
	t.families = families
	if t.Pool != "" && len(c.Pools) > 0 && !slices.Contains(c.Pools, t.Pool) {
		facts.Kind, facts.Pool, facts.Other = explain.ConstraintsOnPool, t.Pool, strings.Join(c.Pools, ",")
		return ipam.RefuseFacts(ipam.ReasonClaimConflict, facts)
	}
	for _, a := range t.Addrs {
		if len(c.Sets) > 0 && !slices.ContainsFunc(c.Sets, func(s *netipx.IPSet) bool { return s.Contains(a) }) {
			facts.Kind, facts.Address, facts.Ranges = explain.ConstraintsOnAddress, a, ipaddr.FormatSet(c.Sets[0])
			return ipam.RefuseFacts(ipam.ReasonClaimConflict, facts)
		}
	}
	return nil
}
