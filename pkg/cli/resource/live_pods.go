package resource

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/gone"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// LivePods names the pods among the holders that exist and have not ended.
func LivePods(ctx context.Context, s *app.App, held []lease.Lease) ([]string, error) {
	states, failed := podStates(ctx, s, held)
	var names []string
	for i, l := range held {
		if states[i].Lives && !slices.Contains(names, l.Who()) {
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

// PodState is what became of the pod that holds an address.
type PodState struct {
	// Lives: it exists and has not ended, or may be the one that has the address. MayRun: it is no more, and its
	// containers may run all the same.
	Lives, MayRun bool
	// Phase is that of a pod that lives.
	Phase corev1.PodPhase
	// Text goes on after "the pod".
	Text string
}

// PodStates reads the pods of leases; one that cannot be read has an error. Of two attachments the pod counts that is
// nearer to life.
func PodStates(ctx context.Context, s *app.App, leases []lease.Lease) ([]PodState, []error) {
	states, failed := podStates(ctx, s, leases)
	for i, l := range leases {
		if l.Other == nil {
			continue
		}
		other, unread := podStates(ctx, s, []lease.Lease{l.Turned()})
		failed[i] = cmp.Or(failed[i], unread[0])
		if was := states[i]; !was.Lives && (other[0].Lives || other[0].MayRun && !was.MayRun) {
			states[i] = other[0]
			states[i].Text = "to which its virtual machine migrates " + states[i].Text
		}
	}
	return states, failed
}

// podStates reads the pods of the attachments that leases are seen from.
func podStates(ctx context.Context, s *app.App, leases []lease.Lease) ([]PodState, []error) {
	states, failed := make([]PodState, len(leases)), make([]error, len(leases))
	pods := make([]LivePod, len(leases))
	var group errgroup.Group
	group.SetLimit(AtOnce)
	for i, l := range leases {
		if OfPod(l) {
			group.Go(func() error {
				pods[i], failed[i] = ReadPod(ctx, s, l)
				return nil
			})
		}
	}
	_ = group.Wait() // what failed is in failed
	nodes := sync.OnceValues(func() ([]Node, error) { return ListNodes(ctx, s) })
	for i, l := range leases {
		if OfPod(l) && failed[i] == nil {
			states[i], failed[i] = podStateOf(ctx, s, l, pods[i], nodes)
		}
		failed[i] = Explain(s, failed[i])
	}
	return states, failed
}

// OfPod reports whether a lease is in use by a pod.
func OfPod(l lease.Lease) bool { return l.State == lease.Active && l.PodName != "" && l.Owner == "" }

// podStateOf asks package gone about a lease. It looks only once: the pod itself has to show since when something is
// so.
func podStateOf(
	ctx context.Context, s *app.App, l lease.Lease, pod LivePod, nodes func() ([]Node, error),
) (PodState, error) {
	leases, err := s.Leases()
	if err != nil {
		return PodState{}, err
	}
	others, err := SameName(ctx, s, l, pod.Pod)
	if err != nil {
		return PodState{}, err
	}
	e := gone.Evidence{Lease: l, Pod: pod.Pod, Live: true, Others: others, Now: leases.Now()}
	check, _ := gone.Suspect(e)
	if check != "" && check != gone.PodOtherAddress || pod.Pod != nil && pod.Deleting {
		all, err := nodes()
		if err != nil {
			return PodState{}, err
		}
		e.Host = gone.HostOf(Table(all).At(l.Host))
		check, _ = gone.Suspect(e)
	}
	if check == "" || check == gone.PodOtherAddress {
		return PodState{Lives: true, Phase: pod.phase, Text: presence(l, pod)}, nil
	}
	e.Since = gone.Told(check, pod.Pod)
	if !e.Since.IsZero() {
		e.For = e.Now.Sub(e.Since)
	}
	text := map[gone.Check]string{
		gone.PodGone: "is gone", gone.PodReplaced: "is gone; there is another of its name", gone.PodEnded: "has ended (" +
			string(pod.phase) + ")",
	}[check]
	if check == gone.PodGone && pod.Pod != nil {
		text = "is being deleted, and its host is out of service"
	}
	d := gone.Default().Decide(e)
	if d.Verdict == gone.MayRun {
		text += ", but its containers may still run: " + d.Doubt
	}
	return PodState{MayRun: d.Verdict != gone.Gone, Text: text}, nil
}

// presence describes the state of a pod that has an address.
func presence(l lease.Lease, pod LivePod) string {
	switch {
	case pod.Deleting:
		return "is being deleted"
	case l.PodUID != "" && pod.UID != l.PodUID:
		return "is there under another UID, and may be the one"
	}
	return "is " + cmp.Or(string(pod.phase), "there")
}

// SameName finds the leases that name the pod of a lease, where it matters which of them came last.
func SameName(ctx context.Context, s *app.App, l lease.Lease, pod *workload.Pod) (gone.Others, error) {
	var all []lease.Lease
	if pod != nil && l.PodUID != "" && pod.UID != l.PodUID {
		var err error
		all, err = HeldLeases(ctx, s, LeaseQuery{Namespace: l.Namespace, Pod: l.PodName},
			func(o lease.Lease) bool { return o.State == lease.Active })
		if err != nil {
			return nil, err
		}
	}
	return func(lease.Lease, string) []lease.Lease { return all }, nil
}

// LivePod holds a pod as the API server has it, with what its status says of its phase; without one where there is
// none.
type LivePod struct {
	*workload.Pod
	phase corev1.PodPhase
}

// ReadPod reads the pod of a lease from the API server.
func ReadPod(ctx context.Context, s *app.App, l lease.Lease) (LivePod, error) {
	c, err := s.Dynamic()
	if err != nil {
		return LivePod{}, err
	}
	o, err := c.Resource(PodResource()).Namespace(l.Namespace).Get(ctx, l.PodName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return LivePod{}, nil
	case err != nil:
		return LivePod{}, err
	}
	var stored corev1.Pod
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &stored); err != nil {
		return LivePod{}, fmt.Errorf("pod %s cannot be read: %w", l.Who(), err)
	}
	pod := workload.FromObject(&stored)
	return LivePod{&pod, stored.Status.Phase}, nil
}
