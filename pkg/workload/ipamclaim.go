package workload

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// IPAMClaim has the relevant parts of an IPAMClaim, the Network Plumbing Working Group's object for addresses of a
// machine's interface that outlive the machine's pods.
type IPAMClaim struct {
	Workload
	// Version is its resourceVersion.
	Version string
	// Interface is the interface of the IPAMClaim; empty for any.
	Interface string
	// Requests are the requested addresses of its interface with prefix lengths, at most one per family; empty for any.
	// Newer CRDs have the field.
	Requests []netip.Prefix
	// Problem is the reason why the IPAMClaim cannot be fulfilled; empty if it can.
	Problem string
	Status  IPAMClaimStatus
}

// IPAMClaimStatus is the status of an IPAMClaim. Older CRDs have only the addresses.
type IPAMClaimStatus struct {
	// IPs are the addresses with their prefix lengths.
	IPs []string
	// OwnerPod is the name of the pod with these addresses; empty for none.
	OwnerPod   string
	Conditions []metav1.Condition
}

// IsIPAMClaim reports whether a workload is an IPAMClaim.
func (w Workload) IsIPAMClaim() bool { return w.Group == networksGroup && w.Kind == ipamClaimKind }

// ipamClaimNamed returns the IPAMClaim with a name as a workload, without its UID.
func ipamClaimNamed(namespace, name string) Workload {
	return Workload{Group: networksGroup, Kind: ipamClaimKind, Namespace: namespace, Name: name}
}

// ClaimOfIPAMClaim returns the name of an IPAMClaim's claim in its namespace.
func ClaimOfIPAMClaim(name string) string { return claimName(ipamClaimPrefix, name) }

// ipamClaimOf reads an IPAMClaim. Everything that a CRD allows is either read or a Problem.
func ipamClaimOf(u *unstructured.Unstructured) *IPAMClaim {
	c := &IPAMClaim{Workload: ipamClaimNamed(u.GetNamespace(), u.GetName()), Version: u.GetResourceVersion()}
	c.UID = string(u.GetUID())
	var o struct {
		Spec struct {
			Interface  string   `json:"interface"`
			IPRequests []string `json:"ipRequests"`
		} `json:"spec"`
		Status struct {
			IPs        []string           `json:"ips"`
			OwnerPod   json.RawMessage    `json:"ownerPod"`
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	text, err := u.MarshalJSON()
	if err == nil {
		err = json.Unmarshal(text, &o)
	}
	if err != nil {
		c.Problem = fmt.Sprintf("it cannot be read: %v", err)
		return c
	}
	c.Interface = o.Spec.Interface
	c.Status = IPAMClaimStatus{
		IPs: o.Status.IPs, OwnerPod: ownerPodOf(o.Status.OwnerPod), Conditions: o.Status.Conditions,
	}
	if c.Requests, err = readRequests(o.Spec.IPRequests); err != nil {
		c.Problem = "spec.ipRequests: " + err.Error()
	}
	return c
}

// ownerPodOf reads the name of the pod: a string in some CRDs, an object with a name in others.
func ownerPodOf(text json.RawMessage) (name string) {
	if bytes.HasPrefix(text, []byte("{")) {
		var o struct {
			Name string `json:"name"`
		}
		_ = json.Unmarshal(text, &o) // any other form names no pod
		return o.Name
	}
	_ = json.Unmarshal(text, &name)
	return name
}

// readRequests reads addresses with prefix lengths, at most one per family.
func readRequests(texts []string) (all []netip.Prefix, err error) {
	for _, text := range texts {
		p, err := netip.ParsePrefix(text)
		if err != nil || p.Addr().Is4In6() {
			return nil, fmt.Errorf("%q is not an address with a prefix length, as in 10.0.0.5/24", clip(text))
		}
		if slices.ContainsFunc(all, func(o netip.Prefix) bool { return o.Addr().Is4() == p.Addr().Is4() }) {
			return nil, fmt.Errorf("%s is the second address of %s: it is one of a family at most", p,
				ipaddr.FamilyOf(p.Addr()))
		}
		all = append(all, p)
	}
	return all, nil
}

// ipamClaimRecheck is the time after which the API server is asked again whether it serves IPAMClaims: a pod may be
// waiting.
const ipamClaimRecheck = 2 * time.Second

// ipamClaims returns the kind of IPAMClaims. If the API server serves it, it is watched from then on.
func (o *Owners) ipamClaims(ctx context.Context) (*kind, error) {
	k, err := o.kind(ctx, networksGroup, ipamClaimKind)
	if err != nil || !k.resource.Empty() || o.now().Sub(k.discovered) < ipamClaimRecheck {
		return k, err
	}
	return o.discovered(ctx, schema.GroupKind{Group: networksGroup, Kind: ipamClaimKind})
}

// IPAMClaim returns an IPAMClaim from the watch, else by one read. The error is ErrGone if it does not exist,
// ErrKindGone if the API server does not serve the kind.
func (o *Owners) IPAMClaim(ctx context.Context, namespace, name string) (*IPAMClaim, error) {
	k, err := o.ipamClaims(ctx)
	if err != nil {
		return nil, err
	}
	if at := k.objects.get(namespace, name); at != nil && at.ipamClaim != nil {
		return at.ipamClaim, nil
	}
	if k.resource.Empty() {
		return nil, ErrKindGone
	}
	u, err := o.dynamic.Resource(k.resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		o.forget(k)
		return nil, ErrKindGone
	case apierrors.IsNotFound(err):
		return nil, ErrGone
	case err != nil:
		return nil, fmt.Errorf("reading IPAMClaim %s/%s: %w", namespace, name, err)
	}
	return ipamClaimOf(u), nil
}

// WatchIPAMClaims starts to watch IPAMClaims, if the API server serves them, and returns the known ones. Without this
// call the watch starts when a pod names one.
func (o *Owners) WatchIPAMClaims(ctx context.Context) (known []Workload, err error) {
	k, err := o.ipamClaims(ctx)
	if err != nil {
		return nil, err
	}
	k.objects.mu.RLock()
	defer k.objects.mu.RUnlock()
	for _, at := range k.objects.by {
		if at.ipamClaim != nil {
			known = append(known, at.ipamClaim.Workload)
		}
	}
	return known, nil
}

// IPAMClaimOf returns the IPAMClaim of a claim by the claim's name. If the name was shortened, the watch must have the
// IPAMClaim; otherwise ok is false.
func (o *Owners) IPAMClaimOf(namespace, claim string) (w Workload, ok bool) {
	name, ok := strings.CutPrefix(claim, ipamClaimPrefix+"-")
	if !ok {
		return w, false
	}
	o.mu.RLock()
	k := o.kinds[schema.GroupKind{Group: networksGroup, Kind: ipamClaimKind}]
	o.mu.RUnlock()
	switch {
	case k == nil:
		return w, false
	case len(name) <= longestKept:
		return ipamClaimNamed(namespace, name), true
	}
	k.objects.mu.RLock()
	defer k.objects.mu.RUnlock()
	for _, at := range k.objects.by {
		if c := at.ipamClaim; c != nil && c.Namespace == namespace && ClaimOfIPAMClaim(c.Name) == claim {
			return c.Workload, true
		}
	}
	return w, false
}

// longestKept is the length up to which the name of an IPAMClaim is certainly complete in the name of its claim.
const longestKept = 200
