package controller

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/controller/conditions"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// podEvents creates events on pods that got no address. The kubelet creates its own event, with the CNI plugin's
// message around ours; this one can be found by its reason. A request never waits for it: if events come too fast, some
// are dropped.
type podEvents struct {
	// cached is asked first for a pod, live if the watch has not delivered the pod yet.
	cached, live client.Reader
	recorder     events.EventRecorder
	// note is called with each refusal that is taken from the queue, before the limit on events, and with its pod for
	// the requested interface; may be nil.
	note    func(workload.Pod, *ipam.Refusal)
	waiting chan refused
	limit   *rate.Limiter
	// told are the UIDs of pods that have got an event about ignored annotations.
	mu   sync.Mutex
	told map[string]bool
}

type refused struct {
	pod         types.NamespacedName
	uid, ifName string
	network     string
	why         *ipam.Refusal
}

// reasonNotAllocated is the reason of events about refusals.
const reasonNotAllocated = "AddressNotAllocated"

const (
	// eventsWaiting bounds the refusals that wait for their event.
	eventsWaiting = 256
	// eventsPerSecond and eventsAtOnce limit the events: a pool that becomes full refuses every pod of a cluster every
	// few seconds. The event library turns the events of one pod into one series, which is written every few minutes.
	eventsPerSecond, eventsAtOnce = 5, 50
)

func newPodEvents(cached, live client.Reader, recorder events.EventRecorder) *podEvents {
	return &podEvents{
		cached: cached, live: live, recorder: recorder, waiting: make(chan refused, eventsWaiting),
		limit: rate.NewLimiter(rate.Every(time.Second/eventsPerSecond), eventsAtOnce),
	}
}

// refused queues an event about a refusal that requires an operator's action. If the queue is full, the event is
// dropped.
func (e *podEvents) refused(r allocator.Request, why *ipam.Refusal) {
	if !forOperator(why.Reason) {
		return
	}
	select {
	case e.waiting <- refused{
		types.NamespacedName{Namespace: r.Namespace, Name: r.PodName}, r.PodUID, r.IfName, r.Network, why,
	}:
	default:
	}
}

const (
	// reasonIgnored is the reason of events about annotations without effect.
	reasonIgnored = "AnnotationIgnored"
	// maxTold bounds the remembered pods that already got an event.
	maxTold = 4096
)

// ignored creates an event on a pod about annotations without effect, once for each pod.
func (e *podEvents) ignored(pod workload.Pod, all []workload.Ignored) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.told[pod.UID] || !e.limit.Allow() {
		return
	}
	if e.told == nil || len(e.told) >= maxTold {
		e.told = map[string]bool{}
	}
	e.told[pod.UID] = true
	texts := make([]string, 0, len(all))
	for _, i := range all {
		texts = append(texts, i.String())
	}
	regarding := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: types.UID(pod.UID)},
	}
	e.recorder.Eventf(regarding, nil, corev1.EventTypeWarning, reasonIgnored, "Allocate", "%s",
		conditions.Clip(strings.Join(texts, "; "), conditions.MaxNote))
}

// forOperator reports whether a refusal lasts until somebody changes a pool, a claim or the pod's annotations, or
// releases an address.
func forOperator(reason ipam.Reason) bool {
	return slices.Contains([]ipam.Reason{
		ipam.ReasonPoolExhausted, ipam.ReasonHostNotInPool, ipam.ReasonNamespaceNotServed, ipam.ReasonNetworkNotFound,
		ipam.ReasonPoolCordoned, ipam.ReasonHostFull, ipam.ReasonQuotaExceeded, ipam.ReasonAddressNotInPool,
		ipam.ReasonAddressInUse, ipam.ReasonForbidden,
		ipam.ReasonInvalidAnnotation, ipam.ReasonWorkloadUnknown, ipam.ReasonClaimNotFound, ipam.ReasonClaimConflict,
		ipam.ReasonClaimFull,
	}, reason)
}

// Start writes the events until the context ends.
func (e *podEvents) Start(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case r := <-e.waiting:
			e.handle(ctx, r)
		}
	}
}

// NeedLeaderElection returns false: the replica that refuses creates the event.
func (e *podEvents) NeedLeaderElection() bool { return false }

// handle passes a refusal to note, and creates an event about it unless there were too many recently.
func (e *podEvents) handle(ctx context.Context, r refused) {
	pod, ok := e.find(ctx, r)
	if !ok {
		return
	}
	if e.note != nil {
		e.note(workload.FromObject(pod).At(cmp.Or(r.ifName, lease.DefaultIfName), r.network), r.why)
	}
	if !e.limit.Allow() {
		return
	}
	// The reference has no resourceVersion: events of one pod become one series only if they refer to the same object.
	regarding := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}}
	e.recorder.Eventf(regarding, nil, corev1.EventTypeWarning, reasonNotAllocated, "Allocate", "%s",
		conditions.Clip(r.why.Error(), conditions.MaxNote))
}

// find returns the pod of a refusal; ok is false if it is gone, or has been replaced. A pod that was refused within
// milliseconds of its creation is read from the API server, because the request may not be repeated.
func (e *podEvents) find(ctx context.Context, r refused) (pod *corev1.Pod, ok bool) {
	for _, from := range []client.Reader{e.cached, e.live} {
		pod = &corev1.Pod{}
		if err := from.Get(ctx, r.pod, pod); err == nil && (r.uid == "" || r.uid == string(pod.UID)) {
			return pod, true
		}
	}
	return nil, false
}
