package gc

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/controller/node"
	"github.com/bcsnet/bcsnet/pkg/gone"
	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// Mode is the mode of the garbage collection.
type Mode string

// Values of Mode.
const (
	// On: takes back addresses whose pod is gone.
	On Mode = "on"
	// DryRun: only reports them.
	DryRun Mode = "dry-run"
	// Off: takes nothing back. Queries whether an address is still in use work in any mode.
	Off Mode = "off"
)

const (
	// collectEvery is the interval in which the leader checks all leases. An address left by a pod without a DEL is
	// free within some 80 s, even if the breaker checks a second time.
	collectEvery = 10 * time.Second
	// parallelCollections bounds the addresses that are checked and released at the same time.
	parallelCollections = 16
)

// Collector takes back addresses whose pod is gone, has ended or was replaced, by the rule of package gone. The write
// fails if the lease has changed since.
type Collector struct {
	Config

	beats *beats
	waits *waits

	mu          sync.Mutex
	suspects    map[spot]suspect // only the passes change it
	patient     map[spot]patient // only the passes change it
	collections *prometheus.CounterVec
	due         prometheus.Gauge
}

// Config has the dependencies and settings of a Collector.
type Config struct {
	Mode Mode
	// Every is the interval in which all leases are checked; 0 for the documented one.
	Every time.Duration
	Rule  gone.Rule
	// Cached, Live and Client read and write the objects of the API server. Namespace is the controller's namespace.
	Cached, Live client.Reader
	Client       client.Client
	Namespace    string
	Pods         *workload.Pods
	Index        *index.Index
	Leases       *store.Client
	Nodes        *node.Nodes
	Breaker      *Breaker
	// Event creates an event about the address of a lease.
	Event    func(ctx context.Context, l lease.Lease, kind, reason, action, note string)
	Ready    func() error
	Registry prometheus.Registerer
	Log      *slog.Logger
}

// New returns a collector without suspects, and registers its metrics.
func New(o Config) *Collector {
	o.Every = cmp.Or(o.Every, collectEvery)
	c := &Collector{
		Config: o, beats: &beats{live: o.Live, log: o.Log},
		waits: &waits{live: o.Live, client: o.Client, namespace: o.Namespace, recall: o.Nodes.Recall},
		collections: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "bcsnet_collections_total",
			Help: "Addresses that were taken back because their pod had gone, by the check that found them.",
		}, []string{"check"}),
		due: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "bcsnet_collections_due",
			Help: "Addresses whose pod has gone and that wait to be taken back: for a second look, for their host, " +
				"for the brake, or because of a dry run.",
		}),
	}
	for _, check := range []gone.Check{gone.PodGone, gone.PodEnded, gone.PodReplaced} {
		c.collections.WithLabelValues(string(check))
	}
	o.Registry.MustRegister(c.collections, c.due, c.Breaker.gauge)
	return c
}

// Start checks the leases until the context ends, that is for a term of the leader.
func (c *Collector) Start(ctx context.Context) error {
	c.setSuspects(map[spot]suspect{}, nil)
	c.waits.forget()
	defer c.setSuspects(nil, nil)
	defer c.Breaker.close()
	defer c.due.Set(0)
	if failpoint.Broken("collect", "look", "live", "host") { // ten times a second
		c.Every, c.Rule.Apart, c.Rule.Termination, c.Rule.Margin = time.Second/10, 0, 0, 0
	}
	tick := time.NewTicker(c.Every)
	defer tick.Stop()
	for {
		if c.Ready() == nil {
			c.pass(ctx, time.Now())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// pass checks all leases once, and takes back those that have looked abandoned for long enough.
func (c *Collector) pass(ctx context.Context, now time.Time) {
	if err := c.waits.load(ctx); err != nil {
		if ctx.Err() == nil {
			c.Log.Warn("no address of a pod that has gone is taken back: since when addresses wait for their hosts, "+
				"and which nodes had addresses before, cannot be read", "error", err)
		}
		return
	}
	active := c.observe(ctx, now)
	due := c.ripe(now)
	if c.Mode != Off {
		c.due.Set(float64(len(c.suspects)))
	}
	if err := c.waits.save(ctx, c.waiting(), c.formers()); err != nil && ctx.Err() == nil {
		c.Log.Warn("since when addresses wait for their hosts, and which nodes had addresses before, is not written "+
			"down: a restart begins anew", "error", err)
	}
	switch c.Mode {
	case Off:
		return
	case DryRun:
		c.report(due)
		return
	case On:
	}
	due = c.Breaker.passes(ctx, due, active, now)
	alive := make([]bool, len(due))
	group, together := errgroup.WithContext(ctx) // if the API server fails for one, it fails for all
	group.SetLimit(parallelCollections)
	for i, s := range due {
		group.Go(func() (err error) {
			if alive[i], err = c.collect(together, s, now); err != nil && itsOwn(err) {
				c.Log.Warn("an address of a pod that has gone is not taken back", append(s.fields(), "error", err)...)
				return nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil && ctx.Err() == nil {
		c.Log.Warn("addresses of pods that have gone are not taken back", "due", len(due), "error", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, s := range due {
		if alive[i] { // the cache lags: do not ask again at once
			delete(c.suspects, spotOf(s.lease))
		}
	}
}

// ripe returns, sorted by address, the suspects that nobody holds according to the evidence so far. The API server must
// still be asked for their pods.
func (c *Collector) ripe(now time.Time) (due []suspect) {
	for _, s := range c.suspects {
		if c.doubt(s, now) == "" {
			due = append(due, s)
		}
	}
	slices.SortFunc(due, func(a, b suspect) int { return a.lease.Addr.Compare(b.lease.Addr) })
	return due
}

// waiting returns the suspects that wait for their host's grace period, and whose beginning no object of the cluster
// records.
func (c *Collector) waiting() (all []suspect) {
	for _, s := range c.suspects {
		if !c.Nodes.Known(s.lease.Host) || s.check == gone.PodGone && workload.Static(s.lease.PodUID) {
			all = append(all, s)
		}
	}
	return all
}

// report logs, once for each lease, what a dry run would take back.
func (c *Collector) report(due []suspect) {
	for _, s := range due {
		if s.reported {
			continue
		}
		s.reported = true
		c.mu.Lock()
		c.suspects[spotOf(s.lease)] = s
		c.mu.Unlock()
		c.Log.Info("would take an address back (--garbage-collection is dry-run)", s.fields()...)
	}
}

// itsOwn reports whether a collection failed because of its own lease, so that others may continue: the API server
// would not store the lease, because it was written by hand or by another release, or a policy forbids it.
func itsOwn(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) &&
		!store.ForbiddenByRole(err)
}

// collect reads the pod from the API server, and takes the address back if the pod is gone there, too. alive reports
// that it is not gone.
func (c *Collector) collect(ctx context.Context, s suspect, now time.Time) (alive bool, err error) {
	l := s.lease
	ctx, cancel := context.WithTimeout(ctx, allocator.MaxRequestTime)
	defer cancel()
	d, err := c.lastLook(ctx, s, now)
	if err != nil {
		return false, err
	}
	if d.Verdict != gone.Gone {
		return true, nil
	}
	s.check, s.cause = d.Check, d.Cause
	change := lease.Change{Verb: lease.VerbCollect, By: "bcsnet-controller", Reason: string(s.check)}
	released, err := allocator.ReleaseLease(ctx, c.Leases, l, change, l.SameHolding)
	if released {
		c.Breaker.noteCollection(time.Now())
		c.collections.WithLabelValues(string(s.check)).Inc()
		c.Log.Info("took an address back", s.fields()...)
		c.Event(ctx, l, corev1.EventTypeNormal, v1.ReasonAddressCollected, "Collect", "took "+l.Addr.String()+" back: "+
			s.cause)
	}
	return false, err
}
