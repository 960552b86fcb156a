package cli

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/gone"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// warnLive says which of the pods that hold addresses of a host still exist.
func (v *releaseHost) warnLive(ctx context.Context, h netip.Addr, held []ipam.Lease) {
	live, err := livePods(ctx, v.App, held)
	if err != nil && ctx.Err() == nil {
		v.Say.Warn("host %s: it is unknown whether its pods still exist: %v", h, err)
	}
	if len(live) > 0 {
		v.Say.Warn("host %s: %s on it still %s and %s the address: %s", h, humanize.Plural(len(live), "pod"),
			humanize.OneOr(len(live), "exists", "exist"), humanize.OneOr(len(live), "loses", "lose"), humanize.List(live))
	}
}

// livePods names the pods among the holders that exist and have not ended.
func livePods(ctx context.Context, s *app.App, held []ipam.Lease) ([]string, error) {
	states, failed := podStates(ctx, s, held)
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
	// lives: it exists and has not ended, or may be the one that has the address. mayRun: it is no more, and its containers
	// may run all the same.
	lives, mayRun bool
	// phase is that of a pod that lives.
	phase corev1.PodPhase
	// text goes on after "the pod".
	text string
}

// podStates reads the pods of leases; one that cannot be read has an error.
func podStates(ctx context.Context, s *app.App, leases []ipam.Lease) ([]podState, []error) {
	states, failed := make([]podState, len(leases)), make([]error, len(leases))
	pods := make([]livePod, len(leases))
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i, l := range leases {
		if ofPod(l) {
			group.Go(func() error {
				pods[i], failed[i] = readPod(ctx, s, l)
				return nil
			})
		}
	}
	_ = group.Wait() // what failed is in failed
	nodes := sync.OnceValues(func() ([]node, error) { return listNodes(ctx, s) })
	for i, l := range leases {
		if ofPod(l) && failed[i] == nil {
			states[i], failed[i] = podStateOf(ctx, s, l, pods[i], nodes)
		}
		failed[i] = explainError(s, failed[i])
	}
	return states, failed
}

// ofPod reports whether a lease is in use by a pod.
func ofPod(l ipam.Lease) bool { return l.State == ipam.Active && l.PodName != "" && l.Owner == "" }

// podStateOf asks package gone about a lease. This is one look: what was so before, the pod itself has to tell.
func podStateOf(ctx context.Context, s *app.App, l ipam.Lease, pod livePod, nodes func() ([]node, error)) (podState, error) {
	leases, err := s.Leases()
	if err != nil {
		return podState{}, err
	}
	others, err := sameName(ctx, s, l, pod.Pod)
	if err != nil {
		return podState{}, err
	}
	e := gone.Evidence{Lease: l, Pod: pod.Pod, Live: true, Others: others, Now: leases.Now()}
	check, _ := gone.Record(l, pod.Pod, others, e.Now)
	if check == "" || check == gone.PodOtherAddress {
		return podState{lives: true, phase: pod.phase, text: presence(l, pod)}, nil
	}
	e.Since = gone.Told(check, pod.Pod)
	if !e.Since.IsZero() {
		e.For = e.Now.Sub(e.Since)
	}
	all, err := nodes()
	if err != nil {
		return podState{}, err
	}
	for _, n := range all {
		if slices.Contains(n.addrs, l.Host) {
			e.Host = gone.Host{Ready: n.state == hostReady, Away: n.since, Renewal: gone.NoLease}
		}
	}
	text := map[gone.Check]string{
		gone.PodGone: "is gone", gone.PodReplaced: "is gone; there is another of its name", gone.PodEnded: "has ended (" + string(pod.phase) + ")",
	}[check]
	d := gone.Default().Decide(e)
	if d.Verdict == gone.MayRun {
		text += ", but its containers may still run: " + d.Doubt
	}
	return podState{mayRun: d.Verdict != gone.Gone, text: text}, nil
}

// presence says how a pod is that has an address.
func presence(l ipam.Lease, pod livePod) string {
	switch {
	case pod.Deleting:
		return "is being deleted"
	case l.PodUID != "" && pod.UID != l.PodUID:
		return "is there under another UID, and may be the one"
	}
	return "is " + cmp.Or(string(pod.phase), "there")
}

// sameName finds the leases that name the pod of a lease, where it matters which of them came last.
func sameName(ctx context.Context, s *app.App, l ipam.Lease, pod *workload.Pod) (gone.Others, error) {
	var all []ipam.Lease
	if pod != nil && l.PodUID != "" && pod.UID != l.PodUID {
		var err error
		all, err = heldLeases(ctx, s, leaseQuery{namespace: l.Namespace, pod: l.PodName}, func(o ipam.Lease) bool { return o.State == ipam.Active })
		if err != nil {
			return nil, err
		}
	}
	return func(ipam.Lease, string) []ipam.Lease { return all }, nil
}

// livePod is a pod as the API server has it, with what its status says of its phase; without one where there is none.
type livePod struct {
	*workload.Pod
	phase corev1.PodPhase
}

// readPod reads the pod of a lease from the API server.
func readPod(ctx context.Context, s *app.App, l ipam.Lease) (livePod, error) {
	c, err := s.Dynamic()
	if err != nil {
		return livePod{}, err
	}
	o, err := c.Resource(podResource()).Namespace(l.Namespace).Get(ctx, l.PodName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return livePod{}, nil
	case err != nil:
		return livePod{}, err
	}
	var stored corev1.Pod
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &stored); err != nil {
		return livePod{}, fmt.Errorf("pod %s cannot be read: %w", l.Who(), err)
	}
	pod := workload.FromObject(&stored)
	return livePod{&pod, stored.Status.Phase}, nil
}
