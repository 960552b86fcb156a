package view

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// interfaceTerms is the result of the annotations for one interface of a pod.
type interfaceTerms struct {
	// ifName is empty for a single interface. network is the network in the interface's request, if known.
	ifName, network string
	policy          workload.Policy
	// wrong is the error of the annotations, none the reason why there is no address.
	wrong error
	none  *ipam.Refusal
}

// resolve sets the terms of the pod's interfaces: first the one with an IPAMClaim or the default one, then those that
// have an address or whose network attachment uses bcsnet.
func (t *Lineage) resolve(ctx context.Context, s *app.App, r *workload.Resolver) error {
	main := cmp.Or(firstReference(t.pod), lease.DefaultIfName)
	names := []string{main}
	networks := map[string]string{}
	for _, l := range t.Leases {
		if l.State == lease.Active && l.IfName != "" {
			names, networks[l.IfName] = append(names, l.IfName), r.Index.Pools.NetworkOf(l)
		}
	}
	for _, i := range t.pod.Interfaces {
		if _, known := networks[i.IfName]; known {
			continue
		}
		if network, asks := resource.NetworkOfInterface(ctx, s, t.key.Namespace, i); asks {
			names, networks[i.IfName] = append(names, i.IfName), network
		}
	}
	slices.Sort(names[1:])
	for i, name := range names {
		if i > 0 && (name == main || name == names[i-1]) {
			continue
		}
		one := &interfaceTerms{ifName: name, network: networks[name]}
		if err := one.resolve(ctx, s, *t.pod, r); err != nil {
			return err
		}
		t.interfaces = append(t.interfaces, one)
	}
	t.policy, t.wrong = t.interfaces[0].policy, t.interfaces[0].wrong
	return nil
}

// firstReference returns the first interface for which a pod names an IPAMClaim; empty if there is none.
func firstReference(pod *workload.Pod) string {
	if len(pod.References) > 0 {
		return pod.References[0].IfName
	}
	return ""
}

func (i *interfaceTerms) resolve(ctx context.Context, s *app.App, pod workload.Pod, r *workload.Resolver) error {
	pod = pod.At(i.ifName, i.network)
	i.policy, i.wrong = r.Resolve(ctx, pod)
	if r.IPAMClaims && len(pod.References) > 0 && apierrors.IsForbidden(i.wrong) { // optional
		s.Say.Warn("what the pod's networks say of IPAMClaims is left out: %v", resource.Explain(s, i.wrong))
		r.IPAMClaims = false
		i.policy, i.wrong = r.Resolve(ctx, pod)
	}
	if _, refused := errors.AsType[*ipam.Refusal](i.wrong); i.wrong != nil && !refused {
		return resource.Explain(s, i.wrong)
	}
	return nil
}

// policyOf returns the policy of an address's interface.
func (t *Lineage) policyOf(l lease.Lease) workload.Policy {
	for _, i := range t.interfaces {
		if i.ifName == l.IfName {
			return i.policy
		}
	}
	return t.policy
}

// facts adds the policy of an interface, its sources, and annotations that do not bind it.
func (i *interfaceTerms) facts(s *app.App, f *Facts, t *Lineage) {
	if len(t.interfaces) > 1 {
		text := i.ifName
		if i.network != "" {
			text += " of network " + i.network
		}
		f.add("Interface", "%s", text)
	}
	if i.wrong != nil {
		f.add("Policy", "none: what annotations and claims say cannot be followed")
		if first := t.interfaces[0].wrong; first == nil || first.Error() != i.wrong.Error() { // which is printed anyway
			f.wrong(s, i.wrong)
		}
		return
	}
	if p := i.policy.Workload; i == t.interfaces[0] || p != t.interfaces[0].policy.Workload {
		f.add("Workload", "%s", p)
	}
	f.add("Policy", "%s", t.policyText(i.policy))
	for _, from := range i.policy.Sources {
		f.add("", "from %s (%s)", strings.TrimPrefix(from.String(), "annotation "), gives(from))
	}
	for _, more := range policyParts(i.policy) {
		f.add("", "%s", more)
	}
	for _, u := range i.policy.Unbound {
		f.add("Unbound", "%s: %s", strings.TrimPrefix(u.String(), "annotation "), u.Why)
	}
	if i != t.interfaces[0] {
		t.claimFact(f, i.policy.Claim)
	}
}

// object returns the terms of an interface for -o json and similar formats.
func (i *interfaceTerms) object() map[string]any {
	o := map[string]any{"interface": i.ifName, "network": i.network}
	if i.wrong != nil {
		o["problem"] = i.wrong.Error()
		return o
	}
	unbound := []any{}
	for _, u := range i.policy.Unbound {
		unbound = append(unbound, map[string]any{"object": u.Object, "annotation": u.Key, "value": u.Value,
			"why": u.Why})
	}
	if i.none != nil {
		o["reason"], o["message"], o["hint"] = string(i.none.Reason), i.none.Message, i.none.Hint
	}
	o["policy"], o["unbound"] = policyObject(i.policy), unbound
	return o
}
