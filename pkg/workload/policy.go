package workload

import (
	"net/netip"
	"time"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// Policy is the result of the annotations of a pod, its workload and its namespace: the pod's address, and its fate
// when the pod ends. A pod without annotations has the zero Policy with a Release of ReleaseWithPod.
type Policy struct {
	// Claim is "namespace/name" of the claim that holds the pod's addresses; empty for a plain address. The claim
	// of a shared pool for all namespaces is in the controller's namespace.
	Claim string
	// Named reports whether somebody named the claim, so that it must exist, or created it for the workload. Other
	// claims are created when the first pod needs them.
	Named bool
	// PodWideClaim reports whether the claim was named for the whole pod, not for the interface.
	PodWideClaim bool
	// Shared is the name of a shared pool as its users wrote it; Claim's name is derived from it.
	Shared string
	// ForAll reports whether the shared pool is for all namespaces.
	ForAll bool
	// Identity identifies for whom the address is kept within the claim: a pod's stable name, a primary key, the name
	// of a virtual machine; empty for the app as a whole, whose pods are interchangeable.
	Identity string
	// Release says when the address is returned. ReleaseUnsaid is used only with a Named claim, whose object has the
	// policy.
	Release ReleasePolicy
	// Keep is the time for which a Timed address is kept after its pod ended; zero for other policies.
	Keep time.Duration
	// Pools are the pools to draw from, in the order in which they are tried; empty for any suitable pool. With a Named
	// claim they must be the claim's.
	Pools []string
	// Sets are the sets from each of which the pod gets one address, all or nothing; empty for any address.
	Sets []*netipx.IPSet
	// Gateway replaces the pool's gateway for this pod; zero for the pool's.
	Gateway netip.Addr
	// Families are the requested families of the addresses; may be empty.
	Families ipam.Families
	// Mask is the required prefix length of the pool; 0 for any.
	Mask int
	// Lengths are addresses of Sets with the required prefix length of their pools.
	Lengths []netip.Prefix
	// Workload is the pod's workload, or the IPAMClaim that its networks name for the interface.
	Workload Workload
	// IfName is the interface of that IPAMClaim; empty if the policy is for all interfaces.
	IfName string
	// Replicas is the largest number of addresses of a family that the policy's claim may have; 0 for no limit.
	Replicas int
	// Requests are the addresses of the IPAMClaim's ipRequests with the required prefix lengths of their pools.
	Requests []netip.Prefix
	// Sources are the annotations behind the policy. Unbound are those for other interfaces of the pod.
	Sources []Source
	Unbound []Unbound
	// Ignored are unknown annotations with bcsnet's prefix, such as misspelt ones.
	Ignored []Ignored
}

// ClaimAddresses returns the addresses to which the policy's claim is limited, in the notation of claims; none if it
// has no such limit, or if there is no claim. The addresses of one pod of several do not limit the claim.
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

// ReleasePolicy says when an address is returned.
type ReleasePolicy string

// Release policies.
const (
	// ReleaseUnsaid leaves it to the named claim.
	ReleaseUnsaid ReleasePolicy = ""
	// ReleaseWithPod frees the address when the pod ends.
	ReleaseWithPod ReleasePolicy = "WithPod"
	// ReleaseImmutable keeps it across restarts and moves; scaling down and the end of the workload free it.
	ReleaseImmutable ReleasePolicy = "Immutable"
	// ReleaseNever keeps it until it is released by hand.
	ReleaseNever ReleasePolicy = "Never"
	// ReleaseTimed keeps it for a time after the pod ended.
	ReleaseTimed ReleasePolicy = "Timed"
)

// OwnerField is the Key of a Source for the claim's field with its workload.
const OwnerField = "spec.owner"

// Source is the origin of a part of a policy: an annotation, the owner of a claim, or a field about an IPAMClaim.
type Source struct {
	// Object with the annotation, as in "Deployment shop/web" or "Namespace shop".
	Object string
	// Key and Value of the annotation.
	Key, Value string
	// Gave is the field of the Policy that it decided, as in "Release".
	Gave string
}

// String formats the source for messages.
func (s Source) String() string {
	switch s.Key {
	case OwnerField, ReferenceField, RequestsField:
		return s.Key + " " + s.Value + " of " + s.Object
	}
	return "annotation " + s.Key + "=" + s.Value + " of " + s.Object
}
