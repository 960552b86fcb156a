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

// LivePods names the pods among the holders that exist and have not ended, and counts those that are Running.
func LivePods(ctx context.Context, s *app.App, held []lease.Lease) (names []string, running int, unread error) {
	states, failed := Looks{Side: true}.PodStates(ctx, s, held)
	for i, l := range held {
		if states[i].Lives && !slices.Contains(names, l.Who()) {
			names = append(names, l.Who())
			if states[i].Phase == corev1.PodRunning {
				running++
			}
		}
		unread = cmp.Or(unread, failed[i]) // the first by address, so that the same is said every time
	}
	return names, running, unread
}

// PodState is what became of the pod that holds an address.
type PodState struct {
	// Lives: it exists and has not ended, or may be the one that has the address. MayRun: it is no more, and its
	// containers may run all the same.
	Lives, MayRun bool
	// Phase is that of a pod that lives.
	Phase corev1.PodPhase
	// Check has the evidence against the lease of a pod that does not live.
	Check gone.Check
	// Text goes on after "the pod".
	Text string
}

// Looks is how pods are looked at; the zero value looks once, and takes a pod's own word for since when it is no more.
type Looks struct {
	// First and Between are for two looks: when the first one is, by the API server's time, and how much later the
	// second one is, at least.
	First   time.Time
	Between time.Duration
	// Side looks, of two attachments, at the one alone that the lease is seen from. Without it the pod counts that is
	// nearer to life.
	Side bool
}

// Decide asks package gone about a lease.
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

// PodStates looks once at the pods of leases; one that cannot be read has an error.
func PodStates(ctx context.Context, s *app.App, leases []lease.Lease) ([]PodState, []error) {
	return Looks{}.PodStates(ctx, s, leases)
}

// PodStates looks at the pods of leases; one that cannot be read has an error.
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

// podStates reads the pods of the attachments that leases are seen from.
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

// manyPods is from how many leases on the pods of all namespaces are listed, and not read one by one.
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

// OfPod reports whether a lease is in use by a pod.
func OfPod(l lease.Lease) bool { return l.State == lease.Active && l.PodName != "" && l.Owner == "" }

// podStateOf asks package gone about a lease. Of very many leases it compares each with the others alone, and asks the
// API server for none: what that misses is taken to live.
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
		return PodState{Lives: true, Phase: pod.phase, Text: presence(l, pod)}, nil
	}
	text := map[gone.Check]string{
		gone.PodGone: "is gone", gone.PodReplaced: "is gone; there is another of its name",
		gone.PodEnded: "has ended (" +
			cmp.Or(string(pod.phase), "Succeeded or Failed") + ")",
	}[d.Check]
	if d.Check == gone.PodGone && pod.Pod != nil {
		text = "is being deleted, and its host is out of service"
	}
	if d.Verdict == gone.MayRun {
		text += ", but its containers may still run: " + d.Doubt
	}
	return PodState{MayRun: d.Verdict != gone.Gone, Check: d.Check, Text: text}, nil
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
