package scheduling

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Resources are the names of the extended resources by which pods ask for an address.
type Resources []corev1.ResourceName

// MaxResources bounds the number of resources.
const MaxResources = 8

// ParseResources parses names from a flag. An empty list is valid.
func ParseResources(names []string) (r Resources, err error) {
	for _, name := range names {
		domain, _, qualified := strings.Cut(name, "/")
		switch {
		case len(validation.IsQualifiedName(name)) > 0 || !qualified:
			return nil, fmt.Errorf("%q is not the name of an extended resource, such as example.com/address", name)
		case domain == "kubernetes.io" || strings.HasSuffix(domain, ".kubernetes.io"):
			return nil, fmt.Errorf("%q is a name of Kubernetes' own", name)
		case strings.HasPrefix(name, corev1.DefaultResourceRequestsPrefix):
			return nil, fmt.Errorf("%q begins with %s, which quotas use", name, corev1.DefaultResourceRequestsPrefix)
		case slices.Contains(r, corev1.ResourceName(name)):
			return nil, fmt.Errorf("%q is named twice", name)
		case len(r) == MaxResources:
			return nil, fmt.Errorf("there are more than %d names", MaxResources)
		}
		r = append(r, corev1.ResourceName(name))
	}
	return r, nil
}

// asked replaces all requests of a pod after it is known that one of the resources is among them. All pods share it.
//
//nolint:gochecknoglobals // never changed
var asked = &corev1.ResourceRequirements{Requests: corev1.ResourceList{"bcsnet/address": *resource.NewQuantity(1,
	resource.DecimalSI)}}

// Mark records on a trimmed pod, which has lost its containers, that the whole pod requests one of the resources.
func (r Resources) Mark(trimmed, whole *corev1.Pod) {
	if r.Requested(whole) {
		trimmed.Spec.Resources = asked
	}
}

// Requested reports whether a pod, whole or marked, requests one of the resources.
func (r Resources) Requested(p *corev1.Pod) bool {
	if p.Spec.Resources == asked {
		return true
	}
	in := func(l corev1.ResourceList) bool {
		return slices.ContainsFunc(r, func(name corev1.ResourceName) bool {
			q, ok := l[name]
			return ok && q.Sign() > 0
		})
	}
	requests := func(c corev1.Container) bool { return in(c.Resources.Requests) || in(c.Resources.Limits) }
	return slices.ContainsFunc(p.Spec.Containers, requests) || slices.ContainsFunc(p.Spec.InitContainers, requests) ||
		p.Spec.Resources != nil && (in(p.Spec.Resources.Requests) || in(p.Spec.Resources.Limits))
}
