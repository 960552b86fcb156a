package workload

import (
	"net/netip"
	"time"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// Policy is what a pod's annotations, those of its workload and those of its namespace come to: which
// address the pod is to get, and what becomes of it when the pod ends. The zero Policy with a Release of
// ReleaseWithPod is that of a pod without annotations.
type Policy struct {
	// Claim is "namespace/name" of the claim that holds the pod's addresses; empty for a plain address. The claim
	// of a shared pool for all namespaces is in the controller's namespace.
	Claim string
	// Named: somebody named the claim, so it has to exist, or made it for the workload. Any other is made when the first
	// pod needs it.
	Named bool
	// PodWideClaim: the claim was named for the whole pod, not for the interface.
	PodWideClaim bool
	// Shared is the name of a shared pool as its users wrote it; Claim's name is derived from it.
	Shared string
	// ForAll: the shared pool is for all namespaces.
	ForAll bool
	// Identity is what the address is kept for within the claim: a pod's stable name, a primary key, the name
	// of a virtual machine. Empty: for the app as a whole, whose pods are interchangeable.
	Identity string
	// Release is what ends the holding. ReleaseUnsaid stands only beside a Named claim, whose object says it.
	Release ReleasePolicy
	// Keep is how long a Timed address is kept after its pod ended; zero for other policies.
	Keep time.Duration
	// Pools to draw from, in the order in which they are tried; none for any that fits. Beside a Named claim they have to
	// be the claim's.
	Pools []string
	// Sets: one address out of each, all or nothing; none for any address.
	Sets []*netipx.IPSet
	// Gateway for this pod in place of the pool's; the zero Addr for the pool's.
	Gateway netip.Addr
	// Families of the addresses, as far as they are said.
	Families ipam.Families
	// Mask is the prefix length that the pool has to have; 0 for any.
	Mask int
	// Lengths are addresses of Sets that were written with the prefix length which their pools have to have.
	Lengths []netip.Prefix
	// Workload is who the pod belongs to, or the IPAMClaim that its networks name for the interface.
	Workload Workload
	// IfName is the interface of that IPAMClaim; empty where the policy is for all interfaces.
	IfName string
	// Replicas is how many addresses of a family the claim may have that is made for the policy; 0 for no bound.
	Replicas int
	// Requests are the addresses of the IPAMClaim's ipRequests with the prefix lengths that their pools have to have.
	Requests []netip.Prefix
	// Sources are the annotations that all this is from. Unbound are those that are about other interfaces of the pod.
	Sources []Source
	Unbound []Unbound
	// Ignored are annotations with bcsnet's own prefix that are unknown, as misspelt ones are.
	Ignored []Ignored
}

// Sticky reports whether the pod's address outlives it.
func (p *Policy) Sticky() bool { return p.Release != ReleaseWithPod }

// ClaimAddresses returns the addresses that bound the claim which is made for the policy, as claims name them; none
// where the claim is bounded by none, or there is none to make. What one pod of several may have is no bound of the
// claim.
func (p *Policy) ClaimAddresses() (all []string) {
	for _, r := range p.Requests {
		all = append(all, r.Addr().String())
	}
	if len(all) > 0 || p.Claim == "" || p.Named || p.Shared != "" || p.Identity != "" || len(p.Sets) != 1 {
		return all
	}
	for _, r := range p.Sets[0].Ranges() {
		for _, part := range ipaddr.Sliced(r) {
			text := part.String()
			if part.From() == part.To() {
				text = part.From().String()
			}
			all = append(all, text)
		}
	}
	return all
}

// ReleasePolicy is what ends the holding of an address.
type ReleasePolicy string

// Release policies.
const (
	// ReleaseUnsaid leaves it to the claim that was named.
	ReleaseUnsaid ReleasePolicy = ""
	// ReleaseWithPod frees the address when the pod ends.
	ReleaseWithPod ReleasePolicy = "WithPod"
	// ReleaseImmutable keeps it over restarts and moves; scaling down and the end of the workload free it.
	ReleaseImmutable ReleasePolicy = "Immutable"
	// ReleaseNever keeps it until it is released by hand.
	ReleaseNever ReleasePolicy = "Never"
	// ReleaseTimed keeps it for a while after the pod ended.
	ReleaseTimed ReleasePolicy = "Timed"
)

// OwnerField stands as Key of a Source for the field of a claim that says which workload it is for.
const OwnerField = "spec.owner"

// Source is what a part of a policy is from: an annotation, the owner of a claim, or a field that has to do with an
// IPAMClaim.
type Source struct {
	// Object that has it, as in "Deployment shop/web" or "Namespace shop".
	Object string
	// Key and Value of the annotation.
	Key, Value string
	// Gave is the field of the Policy that it decided, as in "Release".
	Gave string
}

// String names it as messages do.
func (s Source) String() string {
	switch s.Key {
	case OwnerField, ReferenceField, RequestsField:
		return s.Key + " " + s.Value + " of " + s.Object
	}
	return "annotation " + s.Key + "=" + s.Value + " of " + s.Object
}
