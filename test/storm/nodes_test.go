package storm_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// pods makes n pods, spread over the hosts. They are bound to no node: the controller reads them live or finds
// them by their UID.
func pods(t *testing.T, n int) []*corev1.Pod {
	t.Helper()
	all := make([]*corev1.Pod, n)
	next := make(chan int)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for i := range next {
				p := &corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("start-%d", i)},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "c"}}},
				}
				if err := admin.Create(t.Context(), p); err != nil {
					t.Error(err)
				}
				all[i] = p
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return all
}

// nodes is how many hosts start at once.
const nodes = 10

// TestNodesStartAtOnce: ten hosts start, with 500 pods each (50 in the short form), and ask for all of their addresses
// in one moment, of two replicas. Each gets an address of its own; what the pool lacks is refused as exhausted; nothing
// else happens. A plugin that hears 503 comes again when it is told to, and one that hears nothing asks the next
// replica, as the API asks of them.
func TestNodesStartAtOnce(t *testing.T) {
	perNode := long(500, 50)
	capacity := nodes*perNode - 40 // less than are asked for
	last := capacity - 1
	name := pool(t, fmt.Sprintf("10.3.0.0-10.3.%d.%d", last/256, last%256), nodes)
	all := pods(t, nodes*perNode)
	began := time.Now()
	results := make([]outcome, len(all))
	var wg sync.WaitGroup
	for i, p := range all {
		wg.Go(func() { results[i] = start(t.Context(), i, host(i%nodes), p) })
	}
	wg.Wait()
	took := time.Since(began).Round(time.Millisecond)
	// Two replicas may both have served a container: what one of them gives back is free then.
	controlplane.EventuallyWithin(t, 2*time.Minute, func() error {
		for askAgain(t, all, results) {
		}
		got := 0
		for _, r := range results {
			if r.addr != "" {
				got++
			}
		}
		if stored := len(active(t, name)); got != capacity || stored != capacity {
			return fmt.Errorf("%d pods have an address and %d leases are stored; the pool has %d for %d pods", got, stored,
				capacity, len(all))
		}
		return nil
	})
	holders, exhausted, again := map[string]int{}, 0, 0
	for i, r := range results {
		again += r.again
		switch {
		case r.err != nil:
			t.Errorf("pod %d: %v", i, r.err)
		case r.addr == "":
			exhausted++
		default:
			if other, ok := holders[r.addr]; ok {
				t.Errorf("pods %d and %d both got %s", other, i, r.addr)
			}
			holders[r.addr] = i
		}
	}
	if len(holders) != capacity || exhausted != len(all)-capacity {
		t.Errorf("%d got an address and %d were refused; the pool has %d for %d pods", len(holders), exhausted, capacity,
			len(all))
	}
	t.Logf("%d requests at once in %s, %d times one asked again", len(all), took, again)
}

// askAgain asks once more for the pods that were refused, as kubelets do, and says whether one of them got an address.
func askAgain(t *testing.T, all []*corev1.Pod, results []outcome) bool {
	t.Helper()
	var some atomic.Bool
	var wg sync.WaitGroup
	for i, r := range results {
		if r.err != nil || r.addr != "" {
			continue
		}
		wg.Go(func() {
			results[i] = start(t.Context(), i, host(i%nodes), all[i])
			some.CompareAndSwap(false, results[i].addr != "")
		})
	}
	wg.Wait()
	return some.Load()
}

// outcome is what a pod's request came to.
type outcome struct {
	addr  string
	again int
	err   error
}

// start is a plugin's ADD: it comes again for as long as a kubelet waits.
func start(ctx context.Context, i int, host string, p *corev1.Pod) (o outcome) {
	ctx, cancel := context.WithTimeout(ctx, 4*time.Minute)
	defer cancel()
	body, err := json.Marshal(wire.AllocateRequest{
		Host: host, ContainerID: "sandbox-" + p.Name, PodName: p.Name, PodNamespace: namespace, PodUID: string(p.UID),
	})
	if err != nil {
		return outcome{err: err}
	}
	for ; ; o.again++ {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, replicas[(i+o.again)%len(replicas)]+wire.Prefix,
			bytes.NewReader(body))
		if err != nil {
			return outcome{err: err}
		}
		resp, err := caller.Do(r)
		if err != nil && ctx.Err() == nil {
			pause(ctx, time.Second)
			continue
		}
		if err != nil {
			return outcome{err: err}
		}
		var e struct {
			wire.Envelope
			Data struct {
				IPAddr string `json:"ipAddr"`
			} `json:"data"`
		}
		err = json.NewDecoder(resp.Body).Decode(&e)
		_ = resp.Body.Close() // it is read
		switch {
		case err != nil:
			return outcome{err: err}
		case e.Code == 0:
			o.addr = e.Data.IPAddr
			return o
		case e.Reason == "PoolExhausted":
			return o
		case resp.StatusCode != http.StatusServiceUnavailable:
			return outcome{err: fmt.Errorf("%d %s: %s", resp.StatusCode, e.Reason, e.Message)}
		}
		seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
		if err != nil {
			return outcome{err: fmt.Errorf("503 without Retry-After: %w", err)}
		}
		pause(ctx, time.Duration(seconds)*time.Second)
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
