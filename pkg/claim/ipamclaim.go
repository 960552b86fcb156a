package claim

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// Type and reasons of the condition of an IPAMClaim, as other IPAMs write them.
const (
	ConditionIPsAllocated      = "IPsAllocated"
	ReasonSuccessfulAllocation = "SuccessfulAllocation"
	// ReasonReleased: the addresses of the IPAMClaim were released by hand, or not requested again.
	ReasonReleased = "Released"
)

// IPAMClaimStatus returns the desired status of an IPAMClaim: the addresses of its claim, the pod that has them, and a
// condition. Without addresses the condition has the last refusal, nil for none. The status and conditions of others
// stay: addresses of no pool (ours reports whether a pool has one) are kept while the claim has none.
func IPAMClaimStatus(
	c *workload.IPAMClaim, leases []lease.Lease, refused *Problem, ours func(netip.Addr) bool, now time.Time,
) workload.IPAMClaimStatus {
	next := workload.IPAMClaimStatus{Conditions: slices.Clone(c.Status.Conditions)}
	for _, l := range attached(leases, c.Name) {
		next.IPs = append(next.IPs, netip.PrefixFrom(l.Addr, l.Bits).String())
		if l.State == lease.Active {
			next.OwnerPod = l.PodName
		}
	}
	condition := metav1.Condition{
		Type: ConditionIPsAllocated, Status: metav1.ConditionFalse,
		LastTransitionTime: metav1.NewTime(now).Rfc3339Copy(),
	}
	switch {
	case len(next.IPs) > 0:
		condition.Status, condition.Reason = metav1.ConditionTrue, ReasonSuccessfulAllocation
		condition.Message = fmt.Sprintf("%s of pool %s", strings.Join(next.IPs, " and "), poolsOf(leases))
	case len(c.Status.IPs) > 0 && !slices.ContainsFunc(c.Status.IPs,
		func(text string) bool { return isOurs(text, ours) }):
		return c.Status // it belongs to another IPAM
	case refused != nil:
		condition.Reason, condition.Message = refused.Reason, refused.Message
	case len(c.Status.IPs) > 0:
		condition.Reason, condition.Message = ReasonReleased, "the addresses were released; the next pod gets others"
	default:
		return c.Status // nobody has asked yet
	}
	meta.SetStatusCondition(&next.Conditions, condition)
	return next
}

// attached returns the addresses of an IPAMClaim, one of each family, preferring the one in use to one that is kept.
func attached(leases []lease.Lease, name string) (all []lease.Lease) {
	for _, f := range ipaddr.Families() {
		best := -1
		for i, l := range leases {
			if l.PodPrimaryKey != name || ipaddr.FamilyOf(l.Addr) != f || l.State == lease.Available {
				continue
			}
			if best < 0 || l.State == lease.Active && leases[best].State != lease.Active {
				best = i
			}
		}
		if best >= 0 {
			all = append(all, leases[best])
		}
	}
	return all
}

// poolsOf names the pools of addresses.
func poolsOf(leases []lease.Lease) string {
	var names []string
	for _, l := range leases {
		names = append(names, l.Pool)
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), " and ")
}

// isOurs reports whether an address with a prefix length is in a pool.
func isOurs(text string, ours func(netip.Addr) bool) bool {
	p, err := netip.ParsePrefix(text)
	return err == nil && ours(p.Addr().Unmap())
}
