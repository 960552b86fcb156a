package sticky_test

import (
	"errors"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// start makes the app and waits until it runs.
func (a *app) start(t *testing.T) picture {
	t.Helper()
	a.apply(t)
	return a.expect(t, "the app to run", want{pods: int(a.replicas)})
}

// deletePod deletes one pod, with the time that it has for its end, or without: then the kubelet comes after the fact.
func (a *app) deletePod(t *testing.T, before picture, force bool) picture {
	t.Helper()
	names := slices.Sorted(maps.Keys(before.pods))
	victim := a.pod(t, names[a.below(len(names))])
	opts := []client.DeleteOption{client.Preconditions{UID: &victim.UID}}
	what := "a deleted pod to be replaced"
	if force {
		opts, what = append(opts, client.GracePeriodSeconds(0)), "a pod deleted by force to be replaced"
	}
	if err := a.admin.Delete(t.Context(), victim, opts...); err != nil {
		t.Fatal(err)
	}
	if a.kind == barePod {
		a.makePods(t)
	}
	gone := map[types.UID]bool{victim.UID: true}
	if force {
		return a.expect(t, what, a.replaced(before, gone, len(before.pods)))
	}
	return a.expect(t, what, a.passedOn(before, gone, 0))
}

func (a *app) pod(t *testing.T, name string) *corev1.Pod {
	t.Helper()
	var p corev1.Pod
	if err := a.admin.Get(t.Context(), types.NamespacedName{Namespace: a.namespace, Name: name}, &p); err != nil {
		t.Fatal(err)
	}
	return &p
}

// loseNode takes the node of a pod away, and deletes by force what was there, as the documents say.
func (a *app) loseNode(t *testing.T, before picture) picture {
	t.Helper()
	names := slices.Sorted(maps.Keys(before.pods))
	node := a.pod(t, names[a.below(len(names))]).Spec.NodeName
	a.kubelet.lose(t, node)
	all, err := a.pods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	gone := map[types.UID]bool{}
	for i := range all {
		if all[i].Spec.NodeName == node {
			gone[all[i].UID] = true
			if err := a.admin.Delete(t.Context(), &all[i], client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
		}
	}
	pods := len(before.pods)
	switch a.kind {
	case barePod:
		a.makePods(t)
	case daemonSet:
		pods--
	default:
	}
	return a.expect(t, "pods of a lost node to be replaced", a.replaced(before, gone, pods))
}

// roll updates the app.
func (a *app) roll(t *testing.T, before picture, surge intstr.IntOrString) picture {
	t.Helper()
	a.rev, a.surge = a.rev+1, surge
	a.apply(t)
	beyond, err := intstr.GetScaledValueFromIntOrPercent(&surge, int(a.replicas), true)
	if err != nil {
		t.Fatal(err)
	}
	return a.expect(t, "a rolling update to end", a.passedOn(before, before.uids, beyond))
}

// scale takes the app down to n pods and back.
func (a *app) scale(t *testing.T, before picture, n int32) picture {
	t.Helper()
	all := a.replicas
	a.replicas = n
	a.apply(t)
	a.keeps(t, "the app to scale down", a.scaled(before, int(n)))
	a.replicas = all
	a.apply(t)
	return a.expect(t, "the app to scale up again", a.scaledBack(before, int(n)))
}

// recreate deletes the app and makes it again when nothing of it is left but what is kept.
func (a *app) recreate(t *testing.T, before picture, how metav1.DeletionPropagation) picture {
	t.Helper()
	a.delete(t, how)
	a.keeps(t, "the app's end", a.scaled(before, 0))
	a.apply(t)
	return a.expect(t, "the app to come again", a.scaledBack(before, 0))
}

// operation is something that happens to an app.
type operation string

const (
	podDelete     operation = "pod-delete"
	forceDelete   operation = "force-delete"
	nodeLoss      operation = "node-loss"
	rollInPlace   operation = "roll-surge-0"
	rollWithSurge operation = "roll-surge-25%"
	scaleToOne    operation = "scale-3-1-3"
	scaleToZero   operation = "scale-3-0-3"
	foreground    operation = "recreate-foreground"
	background    operation = "recreate-background"
	// What follows happens in the random runs alone.
	flap    operation = "scale-3-n-3-at-once"
	flicker operation = "recreate-at-once"
	storm   operation = "roll-and-delete-pods"
)

var errUnknown = errors.New("no such operation")

// do does an operation and checks what comes of it.
func (a *app) do(t *testing.T, op operation, before picture) picture {
	t.Helper()
	switch op {
	case podDelete, forceDelete:
		return a.deletePod(t, before, op == forceDelete)
	case nodeLoss:
		return a.loseNode(t, before)
	case rollInPlace:
		return a.roll(t, before, intstr.FromInt32(0))
	case rollWithSurge:
		return a.roll(t, before, intstr.FromString("25%"))
	case scaleToOne:
		return a.scale(t, before, 1)
	case scaleToZero:
		return a.scale(t, before, 0)
	case foreground:
		return a.recreate(t, before, metav1.DeletePropagationForeground)
	case background:
		return a.recreate(t, before, metav1.DeletePropagationBackground)
	case flap:
		return a.flap(t, before)
	case flicker:
		return a.flicker(t, before)
	case storm:
		return a.storm(t, before)
	}
	t.Fatal(errUnknown, op)
	return before
}
