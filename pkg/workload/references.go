package workload

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Annotations with a pod's networks for Multus: the further networks, and the first one.
const (
	networksAnnotation       = "k8s.v1.cni.cncf.io/networks"
	defaultNetworkAnnotation = "v1.multus-cni.io/default-network"
)

// ReferenceField is the field of an element of these annotations that names an IPAMClaim. It is also the Key of a
// Source.
const ReferenceField = "ipam-claim-reference"

// Reference is an element of a pod's Multus annotations that names an IPAMClaim for an interface.
type Reference struct {
	IfName string
	// Claim is the name of the IPAMClaim in the pod's namespace.
	Claim string
	// First reports whether it is the pod's first network, whose interface has another name in an IPAMClaim.
	First bool
}

// references returns the elements that name an IPAMClaim, in order. An interface without a name gets Multus' name for
// its position: net1, net2. problem is the reason why an annotation that seems to name an IPAMClaim cannot be read.
func references(annotations map[string]string) (all []Reference, problem string) {
	for _, key := range []string{defaultNetworkAnnotation, networksAnnotation} {
		text := annotations[key]
		if !strings.Contains(text, ReferenceField) {
			continue
		}
		var elements []element
		if err := json.Unmarshal([]byte(text), &elements); err != nil {
			return nil, fmt.Sprintf("annotation %s is not a JSON list of networks: %v", key, err)
		}
		for i, e := range elements {
			first := key == defaultNetworkAnnotation
			switch {
			case e.Reference == "":
				continue
			case first:
				e.Interface = lease.DefaultIfName
			default:
				e.Interface = e.ifName(i)
			}
			all = append(all, Reference{IfName: e.Interface, Claim: e.Reference, First: first})
		}
	}
	return all, ""
}

// reference returns the IPAMClaim that the pod names for the requested interface, or the first one if no interface is
// requested. ok is false if it names none.
func (p Pod) reference() (ref Reference, ok bool, refusal *ipam.Refusal) {
	refuse := func(format string, args ...any) (Reference, bool, *ipam.Refusal) {
		return Reference{}, false, ipam.Refuse(ipam.ReasonInvalidAnnotation, "pod %s/%s: %s", p.Namespace, p.Name,
			fmt.Sprintf(format, args...)).
			WithHint("correct annotation %s of the pod, or of its owner", networksAnnotation)
	}
	if p.ReferenceProblem != "" {
		return refuse("%s", p.ReferenceProblem)
	}
	at := slices.IndexFunc(p.References, func(r Reference) bool { return p.IfName == "" || r.IfName == p.IfName })
	if at < 0 {
		return ref, false, nil
	}
	ref = p.References[at]
	if len(validation.IsDNS1123Subdomain(ref.Claim)) > 0 {
		return refuse("%s %q of interface %s is not the name of an object", ReferenceField, clip(ref.Claim), ref.IfName)
	}
	for _, r := range p.References {
		switch {
		case r.IfName == ref.IfName && r.Claim != ref.Claim:
			return refuse("its networks name two IPAMClaims for interface %s: %s and %s", r.IfName, clip(ref.Claim),
				clip(r.Claim))
		case r.IfName != ref.IfName && r.Claim == ref.Claim:
			return refuse("its networks name IPAMClaim %s for two interfaces, %s and %s: each needs its own claim",
				r.Claim, clip(ref.IfName), clip(r.IfName))
		}
	}
	return ref, true, nil
}

// IPAMClaim returns the name of the IPAMClaim that the pod names for the requested interface; ok is false if it names
// none, or an invalid one.
func (p Pod) IPAMClaim() (name string, ok bool) {
	ref, ok, refusal := p.reference()
	return ref.Claim, ok && refusal == nil
}

// String formats the reference for messages.
func (r Reference) String() string {
	return ReferenceField + " " + r.Claim + " of interface " + r.IfName
}
