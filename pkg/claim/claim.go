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

// Managed is the label of claims that the controller created from annotations. It maintains their spec, and deletes
// them when they have no address left.
const Managed = "networkextension.bkbcs.tencent.com/managed"

// AllNamespaces in spec.namespaces means all namespaces.
const AllNamespaces = "*"

// MaxPreallocated is the largest number of addresses of a family that a claim preallocates.
const MaxPreallocated = 65_536

// Claim is a BCSNetIPClaim in the form that decisions use.
type Claim struct {
	// Name is namespace/name.
	Name string
	// Workload is the workload whose pods use the claim; without an owner, its Kind is empty. The UID is unknown.
	Workload workload.Workload
	Release  v1.ReleasePolicy
	// Keep is the time for which a Timed address is kept.
	Keep time.Duration
	// Size is the largest number of addresses of a family that the claim may have; negative for no limit. Surge is the
	// number that it may have temporarily beyond that.
	Size, Surge int
	// Addresses are the addresses that the claim may have; nil for any.
	Addresses *netipx.IPSet
	// Pools are the pools of the addresses, in the order in which they are tried; empty for any.
	Pools []string
	// Preallocate reports whether the claim takes its addresses before pods ask for them.
	Preallocate bool
	// SharedName is the name by which pods use the claim as a shared pool; empty for other claims.
	SharedName string
	// Managed reports whether the controller created the claim from annotations, Deleting whether it has a
	// deletionTimestamp.
	Managed, Deleting bool
	// DeletedAt is the time of the deletion, by the API server's clock in whole seconds.
	DeletedAt time.Time

	namespace  string
	namespaces []string
}

// FromObject reads a claim. The error names the invalid part of its spec.
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

// Room returns the largest number of addresses of a family that the claim may have, including its surge; 0 for no
// limit, negative for no addresses.
func (c Claim) Room() int {
	switch {
	case c.Size < 0:
		return 0
	case c.Size+c.Surge == 0:
		return -1
	}
	return c.Size + c.Surge
}

// Linger returns the remaining time for which a deleted claim must stay, even without addresses; zero or less if it may
// disappear. A request that found the claim before its deletion may still be in progress, as may one at a replica whose
// watch has not delivered the deletion yet. A claim from annotations need not stay: it is created again if a pod gets
// an address of it.
func (c Claim) Linger(now time.Time) time.Duration {
	if !c.Deleting || c.Managed {
		return 0
	}
	return c.DeletedAt.Add(allocator.MaxRequestTime + time.Second).Sub(now) // the API server stores whole seconds
}

// KeepsAll reports whether the claim keeps addresses beyond its size. Addresses of a shared pool are released by hand,
// even after the pool was made smaller. Addresses that concurrent preallocations took beyond the size are still
// returned.
func (c Claim) KeepsAll() bool { return c.SharedName != "" && c.Release == v1.ReleaseNever }

// Serves reports whether pods of a namespace may use the claim.
func (c Claim) Serves(namespace string) bool {
	return namespace == c.namespace || slices.Contains(c.namespaces, namespace) ||
		slices.Contains(c.namespaces, AllNamespaces)
}

// SameSpec reports whether two specs have the same meaning.
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
