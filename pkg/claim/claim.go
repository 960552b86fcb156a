package claim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"go4.org/netipx"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// Managed is the label of claims that the controller made from annotations: it keeps their spec, and removes them
// when they have no address left.
const Managed = "networkextension.bkbcs.tencent.com/managed"

// AllNamespaces in spec.namespaces stands for all.
const AllNamespaces = "*"

// MaxPreallocated is how many addresses of a family a claim takes before pods ask for them.
const MaxPreallocated = 65_536

// Claim is a claim as it is decided on.
type Claim struct {
	// Name is namespace/name.
	Name string
	// Workload whose pods use the claim; its Kind is empty where the claim has no owner. The UID is not known.
	Workload workload.Workload
	Release  v1.ReleasePolicy
	// Keep is how long a Timed address is kept.
	Keep time.Duration
	// Size is how many addresses of a family the claim may have; negative for no bound. Surge is how many more it
	// may have for a while.
	Size, Surge int
	// Addresses that the claim may have; nil for any.
	Addresses *netipx.IPSet
	// Pools of the addresses, in the order in which they are tried; none for any.
	Pools []string
	// Preallocate: it takes its addresses before pods ask for them.
	Preallocate bool
	// SharedName is the name by which pods use the claim as a shared pool; empty for one that is none.
	SharedName string
	// Managed: the controller made it from annotations. Deleting: it has a deletionTimestamp.
	Managed, Deleting bool
	// DeletedAt is when it was deleted, by the API server's time in whole seconds.
	DeletedAt time.Time

	namespace  string
	namespaces []string
}

// FromObject reads a claim. The error says what of its spec cannot be used.
func FromObject(o *v1.BCSNetIPClaim) (Claim, error) {
	c := Claim{
		Name: o.Namespace + "/" + o.Name, Release: cmp.Or(o.Spec.ReleasePolicy, v1.ReleaseImmutable), Size: -1,
		Surge: int(o.Spec.Surge), Pools: o.Spec.PoolNames(),
		Preallocate: o.Spec.Preallocate, SharedName: o.Spec.SharedName,
		Managed: o.Labels[Managed] == "true", Deleting: o.DeletionTimestamp != nil, namespace: o.Namespace,
		namespaces: o.Spec.Namespaces,
	}
	if c.Deleting {
		c.DeletedAt = o.DeletionTimestamp.Time
	}
	if w := o.Spec.Owner; w != nil {
		gv, err := schema.ParseGroupVersion(w.APIVersion)
		if err != nil {
			return c, fmt.Errorf("spec.owner.apiVersion: %w", err)
		}
		c.Workload = workload.Workload{Group: gv.Group, Kind: w.Kind, Namespace: o.Namespace, Name: w.Name}
	}
	if o.Spec.Keep != nil {
		c.Keep = o.Spec.Keep.Duration
	}
	if o.Spec.Replicas != nil {
		c.Size = int(*o.Spec.Replicas)
	}
	if len(o.Spec.Addresses) == 0 {
		return c, nil
	}
	ranges := make([]netipx.IPRange, 0, len(o.Spec.Addresses))
	for i, text := range o.Spec.Addresses {
		r, err := ipaddr.ParseRange(text)
		if err != nil {
			return c, fmt.Errorf("spec.addresses[%d]: %w", i, err)
		}
		ranges = append(ranges, r)
	}
	c.Addresses = ipaddr.SetOf(ranges...)
	if n := ipaddr.SizeOfSet(c.Addresses); c.Preallocate && c.Size < 0 && n > MaxPreallocated {
		return c, fmt.Errorf("spec.preallocate: %d addresses are more than %d: set spec.replicas", n, MaxPreallocated)
	}
	return c, nil
}

// Room returns how many addresses of a family the claim may have, with its surge; 0 for no bound, negative for none at
// all.
func (c Claim) Room() int {
	switch {
	case c.Size < 0:
		return 0
	case c.Size+c.Surge == 0:
		return -1
	}
	return c.Size + c.Surge
}

// Linger returns how much longer a claim that is being deleted stays, whatever it has; zero or less where it may go. A
// request that found the claim before its deletion may still be on its way to an address, as may one at a replica whose
// watch has not delivered the deletion yet. A claim that annotations made need not stay: a pod that gets an address of
// it has it made again.
func (c Claim) Linger(now time.Time) time.Duration {
	if !c.Deleting || c.Managed {
		return 0
	}
	return c.DeletedAt.Add(allocator.MaxRequestTime + time.Second).Sub(now) // the API server stores whole seconds
}

// KeepsAll reports whether nothing of the claim goes back because of its size. What a shared pool has is given up by
// hand, also when the pool is made smaller. What concurrent preallocations took beyond the size goes back all the same.
func (c Claim) KeepsAll() bool { return c.SharedName != "" && c.Release == v1.ReleaseNever }

// Serves reports whether pods of a namespace may use the claim.
func (c Claim) Serves(namespace string) bool {
	return namespace == c.namespace || slices.Contains(c.namespaces, namespace) ||
		slices.Contains(c.namespaces, AllNamespaces)
}

// SameSpec reports whether two specs ask for the same.
func SameSpec(a, b v1.BCSNetIPClaimSpec) bool { return equality.Semantic.DeepEqual(a, b) }

// Derive returns the spec of the claim that a policy asks for.
func Derive(p workload.Policy, versionOf func(workload.Workload) string) v1.BCSNetIPClaimSpec {
	spec := v1.BCSNetIPClaimSpec{ReleasePolicy: v1.ReleasePolicy(p.Release), Pool: strings.Join(p.Pools, ",")}
	switch {
	case p.Shared != "":
		if spec.SharedName = p.Shared; p.ForAll {
			spec.Namespaces = []string{AllNamespaces}
		}
	default:
		spec.Owner = &v1.ClaimOwner{APIVersion: versionOf(p.Workload), Kind: p.Workload.Kind, Name: p.Workload.Name}
	}
	if p.Release == workload.ReleaseTimed {
		spec.Keep = &metav1.Duration{Duration: p.Keep}
	}
	if p.Replicas > 0 {
		spec.Replicas = new(int32(p.Replicas))
	}
	spec.Addresses = p.ClaimAddresses()
	return spec
}
