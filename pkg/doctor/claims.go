package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

func claimChecks() []Check {
	return []Check{{
		ID: "claim-missing", Group: GroupClaims, Severity: Warning, Needs: []Part{PartClaims, PartAddresses},
		run:   claimsMissing,
		Title: "addresses are kept for a claim that does not exist",
		Meaning: "For more than a minute, addresses have named a claim that does not exist: it was lost in a " +
			"deletion or a restore. A claim that annotations ask for is created again from the pods that have its " +
			"addresses.",
		Impact: "what no pod has is kept for good, and counted against its pool",
		Remedy: "Create the claim again from its manifest, or return its addresses: `bcsnetctl claim release " +
			"NAMESPACE/NAME`.",
	}, {
		ID: "claim-conflict", Group: GroupClaims, Severity: Warning, Needs: []Part{PartClaims},
		run:   eachClaim(claimConflict),
		Title: "a claim cannot have what its spec says",
		Meaning: "Its addresses are in no pool, another claim names them, somebody else has them, its pools are too " +
			"small, or its spec is invalid. The cause names the other party.",
		Impact: "pods of the claim get no address, or not the one that they were promised",
		Remedy: "Change the claim, or the other party that the cause names.",
	}, {
		ID: "claim-short", Group: GroupClaims, Severity: Warning, Needs: []Part{PartClaims}, run: eachClaim(claimShort),
		Title:   "a claim that preallocates lacks addresses",
		Meaning: "It could not take all its addresses; the cause says why. It takes the rest when it can.",
		Impact:  "its last pods get no address",
		Remedy:  "Add addresses to its pool, release some, or reduce the claim.",
	}, {
		ID: "owner-missing", Group: GroupClaims, Severity: Warning, Needs: []Part{PartAddresses, PartOwners},
		run:   ownersMissing,
		Title: "an address is held for an object that does not exist",
		Meaning: "For more than a minute, a lease has had the owner `capi/NAMESPACE/NAME` or " +
			"`service/NAMESPACE/NAME`, and there is no such IPAddressClaim, or no such Service that wants an " +
			"address. Somebody took the finalizer off the Service or the IPAddress: by force, or because " +
			"`clusterctl move` moved the IPAddress to another cluster, and the machine still uses the " +
			"address. Or the controller no longer gives addresses to Services.",
		Impact: "nobody else gets the address",
		Remedy: "If no machine has the address, release it. If its cluster is managed elsewhere now, take the " +
			"address out of the pool first.",
	}}
}

// claimsMissing finds claims that addresses name but that do not exist, with one finding for each.
func claimsMissing(f *facts) (out []Finding) {
	there := make(map[string]bool, len(f.Claims))
	for _, c := range f.Claims {
		there[c.Namespace+"/"+c.Name] = true
	}
	missing := map[string][]lease.Lease{}
	for _, l := range f.Leases {
		if l.Claim != "" && l.State != lease.Available && !there[l.Claim] && !settling(l.Updated, f.Now) {
			missing[l.Claim] = append(missing[l.Claim], l)
		}
	}
	for name, leases := range missing {
		used := 0
		var pools, addresses []string
		for _, l := range leases {
			if l.State == lease.Active {
				used++
			}
			if !slices.Contains(pools, l.Pool) {
				pools = append(pools, l.Pool)
			}
			addresses = append(addresses, l.Addr.String())
		}
		slices.Sort(pools)
		out = append(out, Finding{
			Object: claimObject(name), Pools: pools,
			Cause: fmt.Sprintf("it does not exist, and has %s (%s), %d of them in use", humanize.Plural(len(leases),
				"address"),
				humanize.List(addresses), used),
			Fix: "bcsnetctl claim release " + name,
		})
	}
	slices.SortFunc(out, func(a, b Finding) int { return cmp.Compare(a.Object.Name, b.Object.Name) })
	return out
}

// ownersMissing finds leases whose owner is an object that does not exist.
func ownersMissing(f *facts) (out []Finding) {
	there := sets.New(f.Owners...)
	for _, l := range f.Leases {
		o, ok := workload.ParseOwner(l.Owner)
		if !ok || l.State != lease.Active || settling(l.Updated, f.Now) || there.Has(l.Owner) ||
			o.Kind == workload.OwnerService && f.Shown.Has(Shown{o.Namespace, l.Addr}) {
			continue
		}
		missing := "does not exist"
		if o.Kind == workload.OwnerService {
			missing = "does not exist, or is not a LoadBalancer of our class"
		}
		out = append(out, Finding{
			Object: ip(l.Addr), Pools: []string{l.Pool},
			Cause: fmt.Sprintf("%s, and the %s %s/%s %s", held(l, f.Now), o.What(), o.Namespace, o.Name, missing),
			Fix:   "bcsnetctl ip release " + l.Addr.String(),
		})
	}
	slices.SortFunc(out, func(a, b Finding) int { return cmp.Compare(a.Object.Name, b.Object.Name) })
	return out
}

func claimObject(name string) Object { return Object{"claim", name} }

// eachClaim runs a check over all claims that are not being deleted.
func eachClaim(check func(*v1.BCSNetIPClaim) (cause string)) func(*facts) []Finding {
	return func(f *facts) (out []Finding) {
		for _, c := range f.Claims {
			if c.DeletionTimestamp != nil {
				continue
			}
			cause := check(c)
			if cause == "" {
				continue
			}
			name := c.Namespace + "/" + c.Name
			found := Finding{Object: claimObject(name), Cause: cause, Fix: "bcsnetctl claim describe " + name}
			found.Pools = c.Spec.PoolNames()
			out = append(out, found)
		}
		slices.SortStableFunc(out, func(a, b Finding) int { return cmp.Compare(a.Object.Name, b.Object.Name) })
		return out
	}
}

func claimConflict(c *v1.BCSNetIPClaim) string {
	var causes []string
	if ready := meta.FindStatusCondition(c.Status.Conditions, v1.ConditionReady); ready != nil &&
		ready.Status == metav1.ConditionFalse && ready.Reason == v1.ReasonInvalidSpec {
		causes = append(causes, ready.Message)
	}
	if conflict := meta.FindStatusCondition(c.Status.Conditions, v1.ConditionConflict); conflict != nil &&
		conflict.Status == metav1.ConditionTrue {
		causes = append(causes, conflict.Message)
	}
	return strings.Join(causes, "; ")
}

func claimShort(c *v1.BCSNetIPClaim) string {
	taken := meta.FindStatusCondition(c.Status.Conditions, v1.ConditionPreallocated)
	if taken == nil || taken.Status != metav1.ConditionFalse || taken.Reason == v1.ReasonTaking ||
		taken.Reason == v1.ReasonInvalidSpec {
		return ""
	}
	return taken.Message
}
