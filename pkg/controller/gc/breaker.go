package gc

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bcsnet/bcsnet/pkg/controller/node"
	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Bounds of the circuit breaker: within breakerWindow, at most breakerCount leases may be taken back, or one in
// breakerOneIn of the active ones if that is more.
const (
	breakerCount  = 10
	breakerOneIn  = 20
	breakerWindow = time.Minute
)

// Breaker is a circuit breaker: it stops the collection if more leases than usual look abandoned at the same time. An
// API server that is empty, or was restored, shows no pods at all. While the breaker is open, it passes only leases
// whose namespace and node exist, after a second check. It closes when only few are due again: somebody has released
// the others by hand by then. For a host that has been away for longer than its grace period, no node is required.
type Breaker struct {
	live client.Reader
	// nodes returns the nodes that claim the address of a host.
	nodes   func(host netip.Addr) []node.Claim
	gauge   prometheus.Gauge
	changed func(pool string)
	log     *slog.Logger

	mu sync.Mutex
	// taken has the times of the last minute's collections.
	taken []time.Time
	// pools has the number of waiting leases per pool; empty while the breaker is closed. why is the reason for
	// waiting.
	pools map[string]int
	why   string
	// looked has the leases that were due at the last check.
	looked map[spot]lease.Lease
}

// NewBreaker returns a closed breaker. changed is called for a pool when leases of it begin or cease to wait.
func NewBreaker(
	live client.Reader, nodes func(netip.Addr) []node.Claim, changed func(pool string), log *slog.Logger,
) *Breaker {
	return &Breaker{live: live, nodes: nodes, changed: changed, log: log,
		gauge: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "bcsnet_collection_braked",
			Help: "1 while no addresses are taken back because there are too many at once.",
		})}
}

func (b *Breaker) noteCollection(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.taken = append(b.taken, now)
}

// passes returns the due leases that need not wait.
func (b *Breaker) passes(ctx context.Context, due []suspect, active int, now time.Time) []suspect {
	b.mu.Lock()
	b.taken = slices.DeleteFunc(b.taken, func(t time.Time) bool { return now.Sub(t) >= breakerWindow })
	many := len(due) > 0 && len(due)+len(b.taken) > max(breakerCount, active/breakerOneIn)
	b.mu.Unlock()
	if !many || failpoint.Broken("brake") {
		b.close()
		return due
	}
	again, fresh := b.splitRepeated(due) // leases due for the first time have not been checked twice
	seen, unseen, why := b.verify(ctx, again)
	if len(unseen)+len(fresh) == 0 {
		b.close()
		return due
	}
	b.open(append(unseen, fresh...), cmp.Or(why, "a second look"))
	return seen
}

// splitRepeated separates the leases that the previous check already showed as due, with the same holding, from the
// newly due ones. It does so even if others have waited for long: the API server may have lost its pods once more.
func (b *Breaker) splitRepeated(due []suspect) (again, fresh []suspect) {
	now := make(map[spot]lease.Lease, len(due))
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range due {
		now[spotOf(s.lease)] = s.lease
		if before, ok := b.looked[spotOf(s.lease)]; ok && sameHolding(before, s.lease) {
			again = append(again, s)
		} else {
			fresh = append(fresh, s)
		}
	}
	b.looked = now
	return again, fresh
}

// open stops the collection, and logs this if the breaker was closed.
func (b *Breaker) open(due []suspect, why string) {
	pools := map[string]int{}
	for _, s := range due {
		pools[s.lease.Pool]++
	}
	b.mu.Lock()
	before := b.pools
	if b.why != why || before == nil {
		b.log.Warn("addresses are not taken back: too many pods have gone at once", "waiting", len(due), "waiting_for",
			why, "hint", "bcsnetctl doctor --only leaks; if they have gone indeed: bcsnetctl doctor --fix --only leaks")
	}
	turned := b.why != why
	b.pools, b.why = pools, why
	b.mu.Unlock()
	b.gauge.Set(1)
	if turned {
		before = nil // notify all of them
	}
	b.notifyPools(before, pools)
}

// close resumes the collection.
func (b *Breaker) close() {
	b.mu.Lock()
	before := b.pools
	b.pools, b.why, b.looked = nil, "", nil
	b.mu.Unlock()
	b.gauge.Set(0)
	b.notifyPools(before, nil)
	if before != nil {
		b.log.Info("addresses are taken back again")
	}
}

// notifyPools calls changed for the pools whose number of waiting leases has changed.
func (b *Breaker) notifyPools(before, after map[string]int) {
	all := maps.Clone(before)
	if all == nil {
		all = map[string]int{}
	}
	maps.Copy(all, after)
	for pool := range all {
		if before[pool] != after[pool] {
			b.changed(pool)
		}
	}
}

// Waiting returns the number of a pool's leases that wait for the breaker, and the reason.
func (b *Breaker) Waiting(pool string) (n int, why string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pools[pool], b.why
}

// object identifies a namespace or a node.
type object struct{ kind, name string }

// verify reads the namespaces and nodes of the leases from the API server, and separates the leases for which both
// exist. why names the first object that does not exist.
func (b *Breaker) verify(ctx context.Context, due []suspect) (seen, unseen []suspect, why string) {
	wanted := map[object]error{}
	of := func(s suspect) []object {
		all := []object{{"Namespace", s.lease.Namespace}}
		for _, n := range b.nodes(s.lease.Host) {
			if n.Ready {
				all = append(all, object{"Node", n.Name})
			}
		}
		return all
	}
	for _, s := range due {
		for _, o := range of(s) {
			wanted[o] = nil
		}
	}
	for _, w := range slices.SortedFunc(maps.Keys(wanted),
		func(a, b object) int { return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name)) }) {
		if wanted[w] = b.missing(ctx, w); wanted[w] != nil && why == "" {
			why = wanted[w].Error()
		}
	}
	for _, s := range due {
		if slices.ContainsFunc(of(s), func(o object) bool { return wanted[o] != nil }) {
			unseen = append(unseen, s)
		} else {
			seen = append(seen, s)
		}
	}
	return seen, unseen, why
}

// missing returns an error if an object does not exist at the API server, or the API server did not answer; nil if it
// exists.
func (b *Breaker) missing(ctx context.Context, w object) error {
	var o metav1.PartialObjectMetadata
	o.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(w.kind))
	switch err := b.live.Get(ctx, types.NamespacedName{Name: w.name}, &o); {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%s %s, which does not exist", strings.ToLower(w.kind), w.name)
	case err != nil:
		return fmt.Errorf("%s %s, which cannot be read: %w", strings.ToLower(w.kind), w.name, err)
	}
	return nil
}
