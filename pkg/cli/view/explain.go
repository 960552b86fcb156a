package view

import (
	"context"
	"errors"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// explainer explains a pod's addresses. node is the assumed node of the pod; empty means its real one.
type explainer struct {
	*app.App
	node string
}

// Explain explains why a pod has its addresses, would get certain ones, or gets none. node is the assumed node; may be
// empty.
func Explain(ctx context.Context, s *app.App, pod types.NamespacedName, node string) (*Explanation, error) {
	t, err := LineageOf(ctx, s, pod, nil)
	if err != nil {
		return nil, err
	}
	e := &Explanation{Lineage: t}
	return e, (&explainer{s, node}).answer(ctx, e)
}

// Explanation adds to a lineage the present or future addresses of the pod, or why it gets none.
type Explanation struct {
	*Lineage
	// Addresses are those that the pod has, else those that it would get now.
	Addresses []lease.Lease
	has       bool
	// keeps has the addresses that are kept for the pod until it gets them.
	keeps map[netip.Addr]bool
	// none is why there is no address.
	none *ipam.Refusal
	host netip.Addr
	// labels has the labels of the pod's namespace, if they can be read.
	labels map[string]string
}

// answer sets the addresses that the pod has or would get, or the reason why it gets none.
func (v *explainer) answer(ctx context.Context, e *Explanation) error {
	if e.pod == nil {
		e.none = ipam.Refuse(ipam.ReasonPodNotFound, "the pod is gone").
			WithHint("see what is kept for it: bcsnetctl trace %s", e.key)
		return nil
	}
	e.labels, _ = resource.LabelsOfNamespace(ctx, v.App, e.key.Namespace) // may be empty
	for _, l := range e.Leases {
		if l.State == lease.Active {
			e.Addresses, e.has = append(e.Addresses, l), true
		}
	}
	if e.has {
		e.host = e.Addresses[0].Host
	} else if err := v.findHost(ctx, e); err != nil {
		return err
	}
	switch {
	case e.has:
	case e.pod.HostNetwork:
		e.none = ipam.Refuse("", "it uses the network of its host")
	case e.pod.Ended:
		e.none = ipam.Refuse(ipam.ReasonPodEnded, "the pod has ended")
	case errors.As(e.wrong, &e.none):
		if e.none.Reason == ipam.ReasonWorkloadUnknown {
			e.none.Hint = app.HintRights
		}
	case !e.host.IsValid():
		e.none = ipam.Refuse("", "it is on no node yet, and which pools serve it depends on that").
			WithHint("see what it would get on one: bcsnetctl explain %s --node NODE", e.key)
	default:
		return v.propose(ctx, e)
	}
	return nil
}

// findHost finds the host on which the pod asks for addresses.
func (v *explainer) findHost(ctx context.Context, e *Explanation) error {
	name := e.pod.Node
	switch {
	case v.node != "":
		name = v.node
	case len(e.pod.HostIPs) > 0:
		e.host = e.pod.HostIPs[0]
		return nil
	case name == "":
		return nil
	}
	n, err := resource.GetNode(ctx, v.App, name)
	if err == nil && len(n.Addrs) > 0 {
		e.host = n.Addrs[0]
	}
	return err
}

// Lacks reports whether the pod lacks an address and would not get one now.
func (e *Explanation) Lacks() bool {
	return len(e.Addresses) == 0 ||
		slices.ContainsFunc(e.interfaces, func(i *interfaceTerms) bool { return i.none != nil })
}
