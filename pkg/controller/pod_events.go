package controller

import (
	"context"
	"slices"
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
)

// podEvents makes events on pods that got no address. The kubelet makes an event of its own, with the message of the
// CNI plugin around ours; this one can be searched for by its reason. A request never waits for it: what comes too fast
// is dropped.
type podEvents struct {
	pods     client.Reader
	recorder events.EventRecorder
	waiting  chan refused
	limit    *rate.Limiter
}

type refused struct {
	pod types.NamespacedName
	uid string
	why *ipam.Refusal
}

// reasonNotAllocated is the reason of the events.
const reasonNotAllocated = "AddressNotAllocated"

const (
	// eventsWaiting is how many refusals may wait for their event.
	eventsWaiting = 256
	// eventsPerSecond and eventsAtOnce bound the events: a pool that becomes full refuses every pod of a cluster every
	// few seconds. Of one pod the event library makes one series, written every few minutes.
	eventsPerSecond, eventsAtOnce = 5, 50
)

func newPodEvents(pods client.Reader, recorder events.EventRecorder) *podEvents {
	return &podEvents{
		pods: pods, recorder: recorder, waiting: make(chan refused, eventsWaiting),
		limit: rate.NewLimiter(rate.Every(time.Second/eventsPerSecond), eventsAtOnce),
	}
}

// refused queues an event about a refusal that an operator has to do something about. When the queue is full, it
// drops the event.
func (e *podEvents) refused(r allocator.Request, why *ipam.Refusal) {
	if !forOperator(why.Reason) {
		return
	}
	select {
	case e.waiting <- refused{types.NamespacedName{Namespace: r.Namespace, Name: r.PodName}, r.PodUID, why}:
	default:
	}
}

// forOperator reports whether a refusal lasts until somebody changes a pool, a claim or the pod's annotations, or an
// address is given up.
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
			if e.limit.Allow() {
				e.write(ctx, r)
			}
		}
	}
}

// NeedLeaderElection returns false: the replica that refuses makes the event.
func (e *podEvents) NeedLeaderElection() bool { return false }

func (e *podEvents) write(ctx context.Context, r refused) {
	var pod corev1.Pod
	if err := e.pods.Get(ctx, r.pod, &pod); err != nil || r.uid != "" && r.uid != string(pod.UID) {
		return // the pod has gone, or is another
	}
	// Without the resourceVersion: events of one pod are one series only if they regard the same object.
	regarding := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}}
	e.recorder.Eventf(regarding, nil, corev1.EventTypeWarning, reasonNotAllocated, "Allocate", "%s",
		conditions.Clip(r.why.Error(), conditions.MaxNote))
}
