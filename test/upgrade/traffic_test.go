package upgrade

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/judge"
	"github.com/bcsnet/bcsnet/test/plugin"
)

// patience is for how long a runtime asks again for one pod before the pod counts as failed.
const patience = 2 * time.Minute

// traffic are plugins that add and delete containers all the time, of any replica that answers.
type traffic struct {
	*site
	callers *plugin.Callers
	history *judge.History
	// done counts operations that were answered, again requests that had to be sent another time.
	done, again atomic.Int64
	parts       sync.WaitGroup
	stop        chan struct{}
}

const (
	workers = 8
	// interfaces is the maximum number of interfaces of a pod.
	interfaces = 3
)

// traffic begins; its pool has fewer addresses than are asked for, so that each goes from hand to hand.
func (s *site) traffic() *traffic {
	s.Helper()
	s.namespace("traffic", workers, subnet(1, 16))
	s.pools("traffic")
	tr := &traffic{site: s, history: judge.NewHistory(), stop: make(chan struct{})}
	tr.callers = &plugin.Callers{
		HTTP: s.caller, URLs: s.urls(), Count: func(string) { tr.again.Add(1) },
		Delay: func(rng *rand.Rand) time.Duration { return time.Duration(rng.IntN(20)) * time.Millisecond },
	}
	for i := range workers {
		tr.parts.Go(func() { tr.work(i) })
	}
	return tr
}

// work adds and deletes the interfaces of a pod until the traffic ends, and deletes the last ones.
func (tr *traffic) work(i int) {
	rng := rand.New(rand.NewPCG(7, uint64(i)))
	held := map[int]wire.AllocateRequest{}
	addrs := map[int]string{}
	for n := 0; ; n++ {
		select {
		case <-tr.stop:
			for of := range held {
				tr.end(rng, i, addrs[of], held[of])
			}
			return
		default:
		}
		of := rng.IntN(interfaces)
		request, has := held[of]
		switch {
		case has && rng.IntN(4) == 0: // asked again, as a runtime does that lost the answer
			if a, ok := tr.add(rng, i, request); ok && a != addrs[of] {
				tr.Errorf("%s has %s and was told %s", request.ContainerID, addrs[of], a)
			}
		case has:
			tr.end(rng, i, addrs[of], request)
			delete(held, of)
		default:
			request = wire.AllocateRequest{
				Host: host, ContainerID: fmt.Sprintf("traffic-%d-%d", i, n), IfName: fmt.Sprintf("eth%d", of),
				PodName: fmt.Sprintf("traffic-%d", i), PodNamespace: "traffic",
			}
			if a, ok := tr.add(rng, i, request); ok {
				held[of], addrs[of] = request, a
			}
		}
	}
}

// add asks for an address. A pool that is exhausted has none, which is no failure, even for as long as the patience
// lasts: all workers may hold two addresses each and wait for a third.
func (tr *traffic) add(rng *rand.Rand, i int, request wire.AllocateRequest) (addr string, ok bool) {
	from := tr.history.Now()
	a, answered := tr.ask(rng, http.MethodPost, request)
	switch {
	case answered && a.Code == 0:
		tr.history.Add(i, judge.Change{
			Addr: a.Address.IPAddr, Pod: request.ContainerID, Container: request.ContainerID, Take: true,
		}, from, tr.history.Now())
		tr.done.Add(1)
		return a.Address.IPAddr, true
	case a.Reason == "PoolExhausted":
		tr.done.Add(1)
	default:
		tr.Errorf("an ADD failed for good: %s: %s: %s", request.ContainerID, a.Reason, a.Message)
	}
	return "", false
}

// end gives an address up.
func (tr *traffic) end(rng *rand.Rand, i int, addr string, request wire.AllocateRequest) {
	from := tr.history.Now()
	a, answered := tr.ask(rng, http.MethodDelete, request)
	if !answered || a.Code != 0 {
		tr.Errorf("a DEL failed for good: %s: %s: %s", request.ContainerID, a.Reason, a.Message)
	}
	tr.history.Add(i, judge.Change{Addr: addr, Pod: request.ContainerID, Container: request.ContainerID}, from, tr.history.Now())
	tr.done.Add(1)
}

func (tr *traffic) ask(rng *rand.Rand, method string, request wire.AllocateRequest) (plugin.Answer, bool) {
	began := time.Now()
	return tr.callers.Ask(context.WithoutCancel(tr.Context()), rng, method, "", request, func() bool {
		return time.Since(began) > patience
	})
}

// goesOn waits until so many more operations were answered.
func (tr *traffic) goesOn(operations int) {
	tr.Helper()
	enough := tr.done.Load() + int64(operations)
	controlplane.Eventually(tr, func() error {
		if n := tr.done.Load(); n < enough {
			return fmt.Errorf("%d operations are missing", enough-n)
		}
		return nil
	})
}

// judge ends the traffic, and judges it.
func (tr *traffic) judge() {
	tr.Helper()
	close(tr.stop)
	tr.parts.Wait()
	if illegal := tr.history.Illegal(); illegal != "" {
		tr.Errorf("an address had two holders: %s", illegal)
	}
	controlplane.Eventually(tr, func() error {
		for _, ip := range tr.leases("traffic") {
			if ip.Status.Status == "Active" {
				return fmt.Errorf("%s is still held by %s", ip.Name, ip.Status.ContainerID)
			}
		}
		return nil
	})
	tr.Logf("%d operations, %d requests", tr.done.Load(), tr.again.Load())
}
