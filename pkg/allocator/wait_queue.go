package allocator

import (
	"sync"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// waitQueue holds the requests that wait for a terminating pod, at most one for each interface of a pod.
type waitQueue struct {
	mu sync.Mutex
	by map[string]*wait
}

// wait is one request that waits for a pod.
type wait struct {
	key   string
	pod   workload.Pod
	freed chan struct{} // gets a value when the pod gives up an address
}

func newWaitQueue() *waitQueue { return &waitQueue{by: map[string]*wait{}} }

func waitKey(podUID, ifName string) string { return podUID + "/" + ifName }

// join makes a request wait for the first of some pods that no other request waits for yet; ok is false where there
// is none.
func (q *waitQueue) join(pods []terminatingPod, ifName string) (w *wait, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, e := range pods {
		if key := waitKey(e.pod.UID, ifName); q.by[key] == nil {
			w = &wait{key, e.pod, make(chan struct{}, 1)}
			q.by[key] = w
			return w, true
		}
	}
	return nil, false
}

// leave ends a wait.
func (q *waitQueue) leave(w *wait) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.by, w.key)
}

// wake wakes the request that waits for the pod of a lease, which has given its address up.
func (q *waitQueue) wake(l lease.Lease) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if w := q.by[waitKey(l.PodUID, l.IfName)]; w != nil {
		select {
		case w.freed <- struct{}{}:
		default:
		}
	}
}
