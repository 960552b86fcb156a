package faults_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/bcsnet/bcsnet/pkg/gone"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/test/judge"
)

// island is a host that is cut off, with the containers on it whose pods were deleted by force.
type island struct {
	none       sync.Mutex // held while a host is cut off, or must not be
	mu         sync.Mutex
	containers []*sandbox
	// taken are those whose address an operator took.
	taken map[*sandbox]bool
}

// isolate cuts hosts off, one at a time: their containers run on, their kubelets ask nobody and renew no Lease. An
// operator deletes most of the pods by force, and those of the same names start on another host. When the host is back
// its kubelet learns of it, and ends the containers in the grace period of their pods.
func (r *round) isolate(rng *rand.Rand) {
	for first := true; first || r.between(rng, 30*time.Second); first = false {
		pause(r.load, time.Duration(rng.IntN(2000))*time.Millisecond)
		r.island.none.Lock()
		r.life(rng.IntN(hosts), rng)
		r.island.none.Unlock()
	}
}

// kept is for how long the addresses are nobody else's of containers whose kubelet has just heard that their pod is no
// more: for as long as it may take to end them. The product waits for some seconds more.
func (f *fixture) kept() time.Duration {
	if f.hurried {
		return collectAfter * 4 / 5
	}
	return lease.UsualTermination + gone.Margin/2
}

// keep notes until when a container has its address whose pod is no more since a time. Most end before, but whoever
// holds up the suite holds up their kubelets, too.
func (r *round) keep(b *sandbox, since time.Time) {
	end := since.Add(r.site.kept())
	b.until = r.history.Now() + time.Until(end)
	r.ledger.Until(b.addr, b.id, end)
}

// since is when a container that ends now may have lost its address at the earliest.
func (r *round) since(b *sandbox) time.Duration {
	if b.until != 0 {
		return min(r.history.Now(), b.until)
	}
	return r.history.Now()
}

// life is that of a host that is cut off. It is no longer ready after some 45 seconds, as long as the node lifecycle
// controller waits.
func (r *round) life(h int, rng *rand.Rand) {
	r.fault("host cut off", host(h), func() { r.cutOff(h, rng) })
	r.while(rng, min(r.length/8, 15*time.Second), min(r.length/4, 45*time.Second))
	if rng.IntN(2) == 0 { // for the others it is over before
		r.fault("host is not ready", host(h), func() { r.setReady(h, corev1.ConditionUnknown) })
		r.while(rng, 0, r.length/10)
	}
	r.fault("host is back", host(h), func() {
		r.keepIsland() // before its first renewal
		r.site.cut.Store(0)
		r.setReady(h, corev1.ConditionTrue)
	})
	r.endIsland(rng)
}

// keepIsland notes until when the containers have their addresses whose host is about to be back.
func (r *round) keepIsland() {
	r.island.mu.Lock()
	defer r.island.mu.Unlock()
	for _, b := range r.island.containers {
		r.keep(b, time.Now())
	}
}

// cutOff cuts a host off and deletes most of its pods. Those stay that a request is under way for: it may take minutes
// to be answered, and a host that is cut off for so long does not stay ready.
func (r *round) cutOff(h int, rng *rand.Rand) {
	r.site.cut.Store(int64(h) + 1)
	for _, s := range r.slots {
		if !s.mu.TryLock() {
			continue
		}
		if b := s.sandbox; s.host == h && b != nil && !s.taken && s.orphan.IsZero() && r.known(b) &&
			rng.IntN(4) > 0 {
			r.island.mu.Lock()
			r.island.containers = append(r.island.containers, b)
			r.island.mu.Unlock()
			s.deletePod()
			r.Count("pod deleted on a host that is cut off")
		}
		s.mu.Unlock()
	}
}

// setReady says of a host whether it is ready, as the node lifecycle controller does.
func (r *round) setReady(h int, status corev1.ConditionStatus) {
	until(context.WithoutCancel(r.ctx), func(ctx context.Context) error {
		return r.site.setReady(ctx, h, status)
	})
}

// endIsland ends the containers whose pods are no more, after the host has come back: with a DEL, or without any as
// where the host was started anew.
func (r *round) endIsland(rng *rand.Rand) {
	r.island.mu.Lock()
	each := r.site.kept() * 3 / 2 / time.Duration(1+len(r.island.containers)) // most have ended by then
	r.island.mu.Unlock()
	for {
		r.while(rng, 0, each)
		b, from, taken := r.endOne()
		switch {
		case b == nil:
			return
		case taken:
		case rng.IntN(4) == 0 && r.forgetful():
			r.Count("pod deleted without DEL")
			r.note(b, b.addr, false, from, judge.Never)
		default:
			r.DEL(b, rng, from)
		}
	}
}

// endOne ends the first of the containers; nil when there is none. It may have lost its address from a time on. taken:
// an operator took that before.
func (r *round) endOne() (b *sandbox, from time.Duration, taken bool) {
	r.calm.RLock()
	defer r.calm.RUnlock()
	r.island.mu.Lock()
	defer r.island.mu.Unlock()
	if len(r.island.containers) == 0 {
		return nil, 0, false
	}
	b = r.island.containers[0]
	r.island.containers = r.island.containers[1:]
	from = r.since(b)
	if taken = r.island.taken[b]; !taken {
		r.last(b)
	}
	return b, from, taken
}

// takeIsland notes that an operator takes what containers on a host have that is cut off.
func (r *round) takeIsland(h int) {
	r.island.mu.Lock()
	defer r.island.mu.Unlock()
	for _, b := range r.island.containers {
		if b.host == h && !r.island.taken[b] {
			r.last(b)
			r.note(b, b.addr, false, r.since(b), judge.Never)
			r.island.taken[b] = true
		}
	}
}
