package faults_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

const (
	crowdNamespace = "crowd"
	crowdPool      = "crowd"
	// patience is the time for which a kubelet of the crowd waits for an answer.
	patience = 300 * time.Millisecond
)

// crowd starts many pods at once, some times of what the API server stores: kubelets give up, send a DEL, and come back
// with another container. They have a pool of their own, and are not judged while the store is put back: nobody of
// them would know.
func (r *round) crowd(rng *rand.Rand) {
	if !pause(r.load, r.length/4+time.Duration(rng.Int64N(int64(r.length/2)))) {
		return
	}
	r.steady.RLock()
	defer r.steady.RUnlock()
	r.spared.RLock()
	defer r.spared.RUnlock()
	if !r.loading() {
		return
	}
	r.journaled("three times the capacity", "", func() {
		ctx, enough := context.WithTimeout(r.load, min(3*time.Minute, r.length/6))
		defer enough()
		var all sync.WaitGroup
		for i := range crowdSize(len(r.slots)) {
			seed := rng.Uint64()
			all.Go(func() { r.member(ctx, i, rand.New(rand.NewPCG(seed, 0))) })
		}
		all.Wait()
	})
}

// crowdSize is the number of pods that the crowd has beside so many others.
func crowdSize(pods int) int { return min(4*pods, 500) }

// member is one pod of the crowd, with one container after the other.
func (r *round) member(ctx context.Context, i int, rng *rand.Rand) {
	name, h := fmt.Sprintf("crowd-%d", i), i%hosts
	uid, _, ok := r.makePod(crowdNamespace, name, h)
	if !ok {
		return
	}
	for ctx.Err() == nil {
		b := r.container(rng.Uint64(), rng.Uint64(), crowdNamespace, name, uid, h)
		b.client = 100_000 + i
		if r.ADD(ctx, b, rng, patience) {
			r.Count("operation ADD")
			pause(ctx, time.Duration(rng.IntN(300))*time.Millisecond)
			if rng.IntN(20) == 0 {
				r.conflict(ctx, b, rng)
			} else {
				r.again(ctx, b, rng)
			}
		} else {
			r.Count("container given up")
		}
		r.DEL(b, rng, r.history.Now())
		pause(ctx, time.Duration(rng.IntN(300))*time.Millisecond)
	}
	r.removePod(crowdNamespace, name, uid)
}

// hurry has half of all calls given up for a time, again and again: late answers and repeated calls are the rule then.
func (r *round) hurry(rng *rand.Rand) {
	defer r.callers.SetImpatient(false)
	for r.between(rng, r.length/10) {
		r.fault("half of the calls given up", "", func() {
			r.callers.SetImpatient(true)
			r.while(rng, r.length/20, r.length/10)
			r.callers.SetImpatient(false)
		})
	}
}

// ADD is one attempt of an impatient kubelet at one replica.
func (r *round) ADD(ctx context.Context, b *sandbox, rng *rand.Rand, patience time.Duration) (ok bool) {
	from := r.history.Now()
	a, err := r.callers.Hurried(ctx, rng, r.anyURL(rng), http.MethodPost, "", r.add(b), patience)
	if err != nil || a.Code != 0 {
		return false
	}
	b.addr = addrOf(a)
	r.note(b, b.addr, true, from, r.history.Now())
	return true
}

// again asks for what a container has.
func (r *round) again(ctx context.Context, b *sandbox, rng *rand.Rand) {
	a, err := r.callers.Once(ctx, rng, r.anyURL(rng), http.MethodPost, "", r.add(b))
	switch {
	case err != nil, a.Code != 0 && a.Temporary():
	case a.Code != 0:
		r.Wrong("the repeated ADD of container %.8s of %s is refused: %s: %s", b.id, b.who(), a.Reason, a.Message)
	case addrOf(a) != b.addr:
		r.Wrong("container %.8s of %s has %s and was told %s", b.id, b.who(), b.addr, addrOf(a))
	default:
		r.Count("operation repeated ADD")
	}
}

func (r *round) anyURL(rng *rand.Rand) string { return r.callers.URLs[rng.IntN(len(r.callers.URLs))] }
