package cli

import (
	"cmp"
	"context"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/words"
)

// warnLive says which of the pods that hold addresses of a host still exist.
func (v *releaseHost) warnLive(ctx context.Context, h netip.Addr, held []ipam.Lease) {
	live, err := v.livePods(ctx, held)
	if err != nil && ctx.Err() == nil {
		v.say.warn("host %s: it is unknown whether its pods still exist: %v", h, err)
	}
	if len(live) > 0 {
		v.say.warn("host %s: %s on it still %s and %s the address: %s", h, words.Plural(len(live), "pod"),
			words.OneOr(len(live), "exists", "exist"), words.OneOr(len(live), "loses", "lose"), words.List(live))
	}
}

// livePods names the pods among the holders that exist and have not ended.
func (s *session) livePods(ctx context.Context, held []ipam.Lease) ([]string, error) {
	states, failed := s.podStates(ctx, held)
	var names []string
	for i, l := range held {
		if states[i].lives && !slices.Contains(names, l.Who()) {
			names = append(names, l.Who())
		}
	}
	for _, err := range failed {
		if err != nil { // the first by address, so that the same is said every time
			return names, err
		}
	}
	return names, nil
}

// podState is what became of the pod that holds an address.
type podState struct {
	// lives: it exists and has not ended.
	lives bool
	// phase is that of a pod that lives.
	phase corev1.PodPhase
	// text goes on after "the pod".
	text string
}

// podStateOf reads the pod of a lease, which has one.
func podStateOf(ctx context.Context, pods dynamic.NamespaceableResourceInterface, l ipam.Lease) (podState, error) {
	o, err := pods.Namespace(l.Namespace).Get(ctx, l.PodName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return podState{text: "is gone"}, nil
	case err != nil:
		return podState{}, err
	case l.PodUID != "" && string(o.GetUID()) != l.PodUID:
		return podState{text: "is gone; there is another of its name"}, nil
	}
	phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
	switch {
	case phase == string(corev1.PodSucceeded), phase == string(corev1.PodFailed):
		return podState{text: "has ended (" + phase + ")"}, nil
	case o.GetDeletionTimestamp() != nil:
		return podState{lives: true, phase: corev1.PodPhase(phase), text: "is being deleted"}, nil
	}
	return podState{lives: true, phase: corev1.PodPhase(phase), text: "is " + cmp.Or(phase, "there")}, nil
}
