package resource

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/gone"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// LivePods names the holders that are existing pods and have not ended, counts the running ones, and names the nodes
// that they are bound to.
func LivePods(
	ctx context.Context, s *app.App, held []lease.Lease,
) (names []string, running int, nodes []string, unread error) {
	states, failed := Looks{Side: true}.PodStates(ctx, s, held)
	for i, l := range held {
		if states[i].Lives && !slices.Contains(names, l.Who()) {
			names = append(names, l.Who())
			if states[i].Phase == corev1.PodRunning {
				running++
			}
			if n := states[i].Node; n != "" && !slices.Contains(nodes, n) {
				nodes = append(nodes, n)
			}
		}
		unread = cmp.Or(unread, failed[i]) // the first by address, so that messages are stable
	}
	return names, running, nodes, unread
}

// PodState is the state of the pod that holds an address.
type PodState struct {
	// Lives: the pod exists and has not ended, or may be the holder. MayRun: it is gone, but its containers may still
	// run.
	Lives, MayRun bool
	// Phase is that of a pod that lives.
	Phase corev1.PodPhase
	// Node names the node that the pod is bound to; empty if there is no such pod.
	Node string
	// Check is the evidence that a pod is gone.
	Check gone.Check
	// Text goes on after "the pod".
	Text string
}

// Looks says how pods are checked. The zero value checks once, and trusts the pod's own timestamps for how long it has
// been gone.
type Looks struct {
	// First and Between describe two checks: the time of the first one, by the API server's clock, and the minimum time
	// until the second one.
	First   time.Time
	Between time.Duration
	// Side checks only the attachment from which the lease is seen. Without it, the pod that is more alive decides.
	Side bool
}

// Decide asks package gone for a decision about a lease.
func (k Looks) Decide(e gone.Evidence) gone.Decision {
	if k.First.IsZero() {
		check, _ := gone.Suspect(e)
		if e.Since = gone.Told(check, e.Pod); !e.Since.IsZero() {
			e.For = e.Now.Sub(e.Since)
		}
		return gone.Default().Decide(e)
	}
	e.Since, e.For = k.First, k.Between
	return gone.Rule{
		Apart: k.Between, Margin: min(k.Between, gone.Margin), Silence: k.Between, Grace: gone.Grace,
	}.Decide(e)
}

// PodStates checks the pods of leases once. It returns an error for each pod that cannot be read.
func PodStates(ctx context.Context, s *app.App, leases []lease.Lease) ([]PodState, []error) {
	return Looks{}.PodStates(ctx, s, leases)
}

// PodStates checks the pods of leases. It returns an error for each pod that cannot be read.
func (k Looks) PodStates(ctx context.Context, s *app.App, leases []lease.Lease) ([]PodState, []error) {
	states, failed := k.podStates(ctx, s, leases)
	for i, l := range leases {
		if l.Other == nil || k.Side {
			continue
		}
		other, unread := k.podStates(ctx, s, []lease.Lease{l.Turned()})
		failed[i] = cmp.Or(failed[i], unread[0])
		if was := states[i]; !was.Lives && (other[0].Lives || other[0].MayRun && !was.MayRun) {
			states[i] = other[0]
			states[i].Text = "to which its virtual machine migrates " + states[i].Text
		}
	}
	return states, failed
}

// podStates checks the pods of the attachments from which the leases are seen.
func (k Looks) podStates(ctx context.Context, s *app.App, leases []lease.Lease) ([]PodState, []error) {
	states := make([]PodState, len(leases))
	pods, failed := podsOf(ctx, s, leases)
	nodes := sync.OnceValues(func() ([]Node, error) { return ListNodes(ctx, s) })
	for i, l := range leases {
		if OfPod(l) && failed[i] == nil {
			states[i], failed[i] = k.podStateOf(ctx, s, l, pods[i], leases, nodes)
		}
		failed[i] = Explain(s, failed[i])
	}
	return states, failed
}

// manyPods is the number of leases from which the pods of all namespaces are listed instead of being read one by one.
const manyPods = 512

// podsOf reads the pods of leases.
func podsOf(ctx context.Context, s *app.App, leases []lease.Lease) ([]LivePod, []error) {
	defer s.Say.WaitLater("reading pods")()
	pods, failed := make([]LivePod, len(leases)), make([]error, len(leases))
	if len(leases) >= manyPods {
		all, err := AllPods(ctx, s)
		named := map[types.NamespacedName]*workload.Pod{}
		for _, p := range all {
			named[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}] = &p
		}
		for i, l := range leases {
			pods[i].Pod = named[types.NamespacedName{Namespace: l.Namespace, Name: l.PodName}]
			if OfPod(l) {
				failed[i] = err
			}
		}
		return pods, failed
	}
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
	return pods, failed
}

// OfPod reports whether a pod holds the address.
func OfPod(l lease.Lease) bool { return l.State == lease.Active && l.PodName != "" && l.Owner == "" }

// podStateOf asks package gone for a decision about a lease. From manyPods leases on, it compares the lease only with
// the given ones and sends no request for others. A pod that is not recognized as gone counts as alive.
func (k Looks) podStateOf(
	ctx context.Context, s *app.App, l lease.Lease, pod LivePod, all []lease.Lease, nodes func() ([]Node, error),
) (PodState, error) {
	leases, err := s.Leases()
	if err != nil {
		return PodState{}, err
	}
	others := func(lease.Lease, string) []lease.Lease { return all }
	if len(all) < manyPods {
		if others, err = SameName(ctx, s, l, pod.Pod); err != nil {
			return PodState{}, err
		}
	}
	e := gone.Evidence{Lease: l, Pod: pod.Pod, Live: true, Others: others, Now: leases.Now()}
	check, _ := gone.Suspect(e)
	if check != "" && check != gone.PodOtherAddress || pod.Pod != nil && pod.Deleting {
		all, err := nodes()
		if err != nil {
			return PodState{}, err
		}
		e.Host = gone.HostOf(Table(all).At(l.Host))
	}
	d := k.Decide(e)
	if d.Verdict == gone.Held {
		state := PodState{Lives: true, Phase: pod.phase, Text: presence(l, pod)}
		if pod.Pod != nil {
			state.Node = pod.Node
		}
		return state, nil
	}
	text := map[gone.Check]string{
		gone.PodGone: "is gone", gone.PodReplaced: "is gone; there is another of its name",
		gone.PodEnded: "has ended (" + cmp.Or(string(pod.phase), "Succeeded or Failed") + ")",
	}[d.Check]
	if d.Check == gone.PodGone && pod.Pod != nil {
		text = "is being deleted, and its host is out of service"
	}
	if d.Verdict == gone.MayRun {
		text += ", but its containers may still run: " + d.Doubt
	}
	return PodState{MayRun: d.Verdict != gone.Gone, Check: d.Check, Text: text}, nil
}

// presence describes the state of an existing pod.
func presence(l lease.Lease, pod LivePod) string {
	switch {
	case pod.Deleting:
		return "is being deleted"
	case l.PodUID != "" && pod.UID != l.PodUID:
		return "is there under another UID, and may be the one"
	}
	return "is " + cmp.Or(string(pod.phase), "there")
}

// SameName returns the leases that name the same pod, if it matters which of them is the latest.
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

// LivePod is a pod with the phase of its status. Pod is nil if it does not exist.
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

// GoneByPool counts the leases of each pool whose pods are gone.
func GoneByPool(ctx context.Context, s *app.App, all []lease.Lease) (map[string]int, error) {
	states, unread := PodStates(ctx, s, all)
	by := map[string]int{}
	for i, l := range all {
		if unread[i] != nil {
			return nil, unread[i]
		}
		if states[i].Check != "" {
			by[l.Pool]++
		}
	}
	return by, nil
}
