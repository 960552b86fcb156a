package faults_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/test/judge"
)

const (
	storms    = "storms" // the namespace
	stormTime = 20 * time.Minute
)

// TestStorm is a plan in which nothing goes wrong but that very many ask at once: no address has two holders, all that
// a pool has is given, refusals are as the API promises, and nothing stays behind. With FAULTS_MINUTES it is played in
// full.
func TestStorm(t *testing.T) {
	v := judge.NewVerdict()
	play(t, newFixture(t, 0, build{}), v, plan{
		seed: 1, length: stormTime, actors: func(r *round) []func(*rand.Rand) { return []func(*rand.Rand){r.storm} },
	})
	t.Log(v)
	for _, text := range v.Violations() {
		t.Error(text)
	}
	wanted := []string{"refusal PoolExhausted", "operation ADD", "operation repeated ADD", "operation DEL"}
	if !testing.Short() {
		wanted = append(wanted, "refusal Overloaded")
	}
	for _, count := range wanted {
		if v.Counts()[count] == 0 {
			t.Errorf("the test is too gentle: no %s", count)
		}
	}
}

// inFull returns how much of something a storm has: all with FAULTS_MINUTES, else what fits beside the other tests.
func inFull(all, short int) int {
	if os.Getenv("FAULTS_MINUTES") != "" {
		return all
	}
	return short
}

// storm is one after the other.
func (r *round) storm(rng *rand.Rand) {
	defer r.enough()
	until(r.ctx, func(ctx context.Context) error {
		return r.site.create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: storms}})
	})
	r.interfaces("interfaces", inFull(8000, 2000), rng)
	r.cycles("cycles", inFull(10_000, 500), rng)
	r.stampede("stampede", inFull(5000, 500), rng)
	if !testing.Short() {
		r.overload("overload", 2000, rng)
	}
}

// each does something so many times at once.
func each(n int, rng *rand.Rand, do func(i int, rng *rand.Rand)) {
	var all sync.WaitGroup
	for i := range n {
		seed := rng.Uint64()
		all.Go(func() { do(i, rand.New(rand.NewPCG(seed, 0))) })
	}
	all.Wait()
}

// stormPool makes a pool for a storm, with a network of its own, and waits until each replica knows it.
func (r *round) stormPool(name, first string, size int) {
	p := &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.BCSNetPoolSpec{
		Net: "10.0.0.0", Mask: 8, Gateway: "10.255.255.254", AvailableIPs: []string{span(first, 0, size)}, Network: name,
		Default: new(false),
	}}
	for h := range hosts {
		p.Spec.Hosts = append(p.Spec.Hosts, host(h))
	}
	until(r.ctx, func(ctx context.Context) error { return r.site.create(ctx, p.DeepCopy()) })
	for _, one := range r.site.replicas {
		until(r.ctx, func(ctx context.Context) error {
			a, err := r.callers.Once(ctx, rand.New(rand.NewPCG(0, 0)), one.URL, http.MethodGet, "/pool/"+name, nil)
			if err == nil && a.Code != 0 {
				err = fmt.Errorf("%s: %s", a.Reason, a.Message)
			}
			return err
		})
	}
}

// pods makes so many, of which every second one is bound to its node.
func (r *round) pods(network string, n int, rng *rand.Rand) []*sandbox {
	all := make([]*sandbox, n)
	const workers = 16
	each(workers, rng, func(w int, rng *rand.Rand) {
		for i := w; i < n; i += workers {
			pod, h := fmt.Sprintf("%s-%d", network, i), i%hosts
			if i%2 == 0 {
				h = unbound
			}
			uid, _, _ := r.makePod(storms, pod, h)
			all[i] = r.inStorm(r.container(rng.Uint64(), rng.Uint64(), storms, pod, uid, i%hosts), i, network)
		}
	})
	return all
}

func (r *round) inStorm(b *sandbox, client int, network string) *sandbox {
	b.client, b.network, b.by = client, network, 0
	return b
}

// next is another container of the pod of one.
func (r *round) next(b *sandbox, rng *rand.Rand) *sandbox {
	return r.inStorm(r.container(rng.Uint64(), rng.Uint64(), b.namespace, b.pod, b.uid, b.host), b.client, b.network)
}

func (r *round) removePods() {
	until(r.ctx, func(ctx context.Context) error {
		return r.site.admin.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(storms), client.GracePeriodSeconds(0))
	})
}

// serve is a plugin's ADD, as long as a kubelet waits: it comes again when it is told to. It is false if the pool is
// exhausted.
func (r *round) serve(b *sandbox, rng *rand.Rand) bool {
	from := r.history.Now()
	for n := rng.IntN(len(r.callers.URLs)); !r.Failed(); n++ {
		a, err := r.callers.Once(r.ctx, rng, r.callers.URLs[n%len(r.callers.URLs)], http.MethodPost, "", r.add(b))
		switch {
		case err != nil:
			pause(r.ctx, time.Second)
		case a.Code == 0:
			b.addr = addrOf(a)
			r.note(b, b.addr, true, from, r.history.Now())
			r.Count("operation ADD")
			return true
		case a.Reason == ipam.ReasonPoolExhausted:
			return false
		case a.Status != http.StatusServiceUnavailable:
			r.Wrong("ADD of container %.8s of %s: %d %s: %s", b.id, b.who(), a.Status, a.Reason, a.Message)
		default:
			pause(r.ctx, a.RetryAfter)
		}
	}
	return false
}

// interfaces: 64 callers, each with up to eight interfaces, on one pool of 256, which runs full again and again.
func (r *round) interfaces(network string, operations int, rng *rand.Rand) {
	const callers = 64
	r.stormPool(network, "10.101.0.0", 256)
	pods := r.pods(network, callers, rng)
	var left atomic.Int64
	left.Store(int64(operations))
	each(callers, rng, func(i int, rng *rand.Rand) {
		held := map[string]*sandbox{}
		for left.Add(-1) >= 0 && !r.Failed() {
			name := fmt.Sprintf("eth%d", rng.IntN(8))
			switch b := held[name]; {
			case b == nil:
				b = r.next(pods[i], rng)
				if b.ifName = name; r.serve(b, rng) {
					held[name] = b
				}
			case rng.IntN(4) == 0:
				r.again(r.ctx, b, rng)
			default:
				r.DEL(b, rng, r.history.Now())
				delete(held, name)
			}
		}
		for _, b := range held {
			r.DEL(b, rng, r.history.Now())
		}
	})
	r.removePods()
}

// cycles: ADD and DEL without a pause, each at any replica. The system that bcsnet takes over from leaks the address in
// every second such cycle.
func (r *round) cycles(network string, n int, rng *rand.Rand) {
	const callers = 16
	r.stormPool(network, "10.102.0.0", 1024)
	pods := r.pods(network, callers, rng)
	each(callers, rng, func(i int, rng *rand.Rand) {
		for range n / callers {
			if b := r.next(pods[i], rng); r.serve(b, rng) {
				r.DEL(b, rng, r.history.Now())
			} else if !r.Failed() {
				r.Wrong("ADD of container %.8s of %s is refused: the pool has enough for all", b.id, b.who())
			}
		}
	})
	r.removePods()
	r.awaitActive(network, nil)
}

// stampede: all pods ask in one moment, for more than the pool has. Each gets an address of its own, and what the pool
// lacks is refused as exhausted.
func (r *round) stampede(network string, n int, rng *rand.Rand) {
	capacity := n - 40
	r.stormPool(network, "10.103.0.0", capacity)
	pods := r.pods(network, n, rng)
	// Two replicas may both have served a container: what one of them gives back is free then, and kubelets ask again.
	for began := time.Now(); len(withAddress(pods)) < capacity && time.Since(began) < settled && !r.Failed(); {
		each(n, rng, func(i int, rng *rand.Rand) {
			if !pods[i].addr.IsValid() {
				r.serve(pods[i], rng)
			}
		})
		pause(r.ctx, 100*time.Millisecond)
	}
	held := withAddress(pods)
	if len(held) != capacity {
		r.Wrong("%d pods have an address; the pool has %d for %d", len(held), capacity, n)
	}
	r.awaitActive(network, held)
	each(n, rng, func(i int, rng *rand.Rand) { r.DEL(pods[i], rng, r.history.Now()) })
	r.removePods()
}

// overload: so many containers ask at once, and wait for less than it takes to serve them all. Whoever is refused
// deletes the container and comes again with another one, as kubelets do. All get an address in the end, and what was
// written for callers who had gone is free again.
func (r *round) overload(network string, n int, rng *rand.Rand) {
	const patience = 1500 * time.Millisecond
	r.stormPool(network, "10.105.0.0", 4096)
	holds := make([]*sandbox, n)
	each(n, rng, func(i int, rng *rand.Rand) {
		for try := 0; holds[i] == nil && !r.Failed(); try++ {
			b := r.inStorm(r.container(rng.Uint64(), rng.Uint64(), "", "", "", i%hosts), i, network)
			b.owner = fmt.Sprint("over-", i)
			from := r.history.Now()
			a, err := r.callers.Hurried(r.ctx, rng, r.anyURL(rng), http.MethodPost, "", r.add(b), patience)
			switch {
			case err == nil && a.Code == 0:
				b.addr, holds[i] = addrOf(a), b
				r.note(b, b.addr, true, from, r.history.Now())
				r.Count("operation ADD")
			case err == nil && a.Status != http.StatusServiceUnavailable:
				r.Wrong("ADD of %s: %d %s: %s", b.owner, a.Status, a.Reason, a.Message)
			default:
				pause(r.ctx, time.Second<<min(try, 3))
				r.DEL(b, rng, from)
			}
		}
	})
	r.awaitActive(network, holds)
	each(n, rng, func(i int, rng *rand.Rand) { // owners' leases stay until somebody gives them up
		if holds[i] != nil {
			r.DEL(holds[i], rng, r.history.Now())
		}
	})
}

func withAddress(all []*sandbox) []*sandbox {
	return slices.DeleteFunc(slices.Clone(all), func(b *sandbox) bool { return b == nil || !b.addr.IsValid() })
}
