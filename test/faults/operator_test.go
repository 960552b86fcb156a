package faults_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/judge"
	"github.com/bcsnet/bcsnet/test/plugin"
)

// operate is an operator at work: addresses and hosts released by hand, pools edited, shrunk and grown. What
// fails because the API server is away is left as it is.
func (r *round) operate(rng *rand.Rand) {
	edit := func(pool, patch string) func() {
		return func() { _ = r.patch(pool, patch) }
	}
	all := []choice{
		{4, "ip release --force", func() { r.takeAddress(rng, true) }},
		{2, "ip release of a live pod", func() { r.takeAddress(rng, false) }},
		{2, "release-host", func() { r.takeHost(rng) }},
		{2, "pool shrunk", func() { _, _ = r.site.bcsnetctl(r.ctx, soon, "pool", "remove-ip", rangePool, r.site.rangeTail) }},
		{3, "pool grown", func() { _, _ = r.site.bcsnetctl(r.ctx, soon, "pool", "add-ip", rangePool, r.site.rangeTail) }},
		{1, "gateway changed", edit(rangePool, fmt.Sprintf(`{"spec":{"gateway":"10.1.0.%d"}}`, 1+rng.IntN(5)))},
		{1, "MTU changed", edit(demandPool, fmt.Sprintf(`{"spec":{"mtu":%d}}`, 1400+rng.IntN(100)))},
		{2, "group carved and dropped", func() { r.carve(rng) }},
		{3, "collection of a host's network", func() { r.collectNetwork(rng) }},
		{1, "pool cordoned", func() {
			_ = r.patch(demandPool, `{"spec":{"cordoned":true}}`)
			r.while(rng, time.Second/2, 2*time.Second)
			until(context.WithoutCancel(r.ctx), func(context.Context) error {
				return r.patch(demandPool,
					`{"spec":{"cordoned":false}}`)
			})
		}},
	}
	for r.between(rng, 3*time.Second) {
		c := choose(rng, all)
		r.fault(c.what, "", c.do)
	}
	r.dropGroups()
	until(r.ctx, func(context.Context) error {
		return r.patch(rangePool, fmt.Sprintf(`{"spec":{"availableIPs":[%q]}}`, r.site.rangeAddrs))
	})
}

func (r *round) patch(pool, patch string) error {
	p := &v1.BCSNetPool{}
	p.Name = pool
	ctx, cancel := context.WithTimeout(r.ctx, plugin.Attempt)
	defer cancel()
	return r.site.admin.Patch(ctx, p, client.RawPatch(types.MergePatchType, []byte(patch)))
}

// takeAddress releases the address of a live pod by hand: by force, and then the pod is over; or without, and
// then nothing happens.
func (r *round) takeAddress(rng *rand.Rand, force bool) {
	s := r.slots[rng.IntN(len(r.slots))]
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.sandbox
	if b == nil || s.taken || !r.loading() {
		return
	}
	args := []string{"ip", "release", b.addr.String(), "--yes"}
	if force {
		s.take()
		args = append(args, "--force")
	}
	out, err := r.site.bcsnetctl(r.ctx, soon, args...)
	if err == nil && !force {
		r.Wrong("ip release without --force took %s of live pod %s: %s", b.addr, b.who(), out)
	}
}

// take notes that the address of a slot may go from now on. The slot's lock is held.
func (s *slot) take() {
	b := s.sandbox
	s.last(b)
	s.taken = true
	s.note(b, b.addr, false, s.since(b), judge.Never)
}

// takeHost releases a host, whose pods are over, by the command line or over HTTP. Nothing is taken once the load is
// over: the last pods of some slots are there to stay. Nor while a tenant or the crowd has pods, which are not told.
func (r *round) takeHost(rng *rand.Rand) {
	if !r.spared.TryLock() {
		return
	}
	defer r.spared.Unlock()
	h := rng.IntN(hosts)
	var its []*slot
	for _, s := range r.slots {
		if s.home != h && (s.home+1)%hosts != h {
			continue // its pods are never there
		}
		s.mu.Lock()
		defer s.mu.Unlock() //nolint:gocritic // all are held until the host is released
		if s.host == h {
			its = append(its, s)
		}
	}
	if !r.loading() {
		return
	}
	r.takeIsland(h)
	for _, s := range its {
		if s.sandbox != nil && !s.taken {
			s.take()
		}
	}
	if rng.IntN(2) == 0 {
		_, _ = r.site.bcsnetctl(r.ctx, soon, "release-host", host(h), "--force")
		return
	}
	if a, ok := r.callers.Ask(r.ctx, rng, http.MethodDelete, "/host/"+host(h), nil,
		func() bool { return !r.loading() }); ok && a.Code != 0 {
		r.Wrong("release of host %s is refused: %s: %s", host(h), a.Reason, a.Message)
	}
	r.Count("operation host release")
}
