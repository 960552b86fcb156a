package gc

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/controller/node"
	"github.com/bcsnet/bcsnet/pkg/gone"
	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/store"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// Mode is what the garbage collection does.
type Mode string

// Values of Mode.
const (
	// On: takes addresses back whose pod has gone.
	On Mode = "on"
	// DryRun: reports them only.
	DryRun Mode = "dry-run"
	// Off: tells those who ask whether an address is still in use, and does nothing of its own.
	Off Mode = "off"
)

const (
	// collectEvery is how often the leader looks at all leases: what a pod leaves without a DEL is back within some 80 s,
	// also when the breaker takes another look.
	collectEvery = 10 * time.Second
	// parallelCollections is how many addresses are looked at and released at once.
	parallelCollections = 16
)

// Collector takes addresses back whose pod has gone, has ended or has been replaced, by the rule of package gone. The
// write fails if the lease has changed since.
type Collector struct {
	Config

	beats *beats
	waits *waits

	mu          sync.Mutex
	suspects    map[netip.Addr]suspect // changed by the passes alone
	patient     map[netip.Addr]patient // likewise
	collections *prometheus.CounterVec
	due         prometheus.Gauge
}

// suspect is a lease that looks given up.
type suspect struct {
	lease ipam.Lease
	// check is by which check, cause why; since is when this process saw it so first, by the local clock, and first when
	// any did, by the API server's.
	check gone.Check
	cause string
	since time.Time
	first time.Time
	// node is the ready node that the host was when its Lease was looked at first, beat how that was then; renewal is what
	// became of it.
	node, beat string
	renewal    gone.Renewal
	// missed is how long after since the host was seen last not to be in touch.
	missed time.Duration
	// told: a dry run has reported it.
	told bool
}

// Config is what a Collector works with.
type Config struct {
	Mode Mode
	// Every is how often all leases are looked at; 0 for what the documentation promises.
	Every time.Duration
	Rule  gone.Rule
	// Cached, Live and Client are the ways to the objects of the API server. Namespace has the controller's own.
	Cached, Live client.Reader
	Client       client.Client
	Namespace    string
	Pods         *workload.Pods
	Index        *ipam.Index
	Leases       *store.Client
	Nodes        *node.Nodes
	Breaker      *Breaker
	// Event makes an event about the address of a lease.
	Event    func(ctx context.Context, l ipam.Lease, kind, reason, action, note string)
	Ready    func() error
	Registry prometheus.Registerer
	Log      *slog.Logger
}

// New returns a collector that suspects nobody, and registers its metrics.
func New(o Config) *Collector {
	o.Every = cmp.Or(o.Every, collectEvery)
	c := &Collector{
		Config: o, beats: &beats{live: o.Live, log: o.Log},
		waits: &waits{live: o.Live, client: o.Client, namespace: o.Namespace},
		collections: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "bcsnet_collections_total", Help: "Addresses that were taken back because their pod had gone, by the check that found them.",
		}, []string{"check"}),
		due: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "bcsnet_collections_due", Help: "Addresses whose pod has gone and that wait to be taken back: for a second look, for their host, for the brake, or because of a dry run.",
		}),
	}
	for _, check := range []gone.Check{gone.PodGone, gone.PodEnded, gone.PodReplaced} {
		c.collections.WithLabelValues(string(check))
	}
	o.Registry.MustRegister(c.collections, c.due, c.Breaker.gauge)
	return c
}

// Start looks at the leases until the context ends. The manager calls it on the leader alone.
func (c *Collector) Start(ctx context.Context) error {
	c.keep(map[netip.Addr]suspect{}, nil)
	c.waits.forget()
	defer c.keep(nil, nil)
	defer c.Breaker.loosen()
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

// pass looks at all leases once, and takes back those that were seen given up for long enough.
func (c *Collector) pass(ctx context.Context, now time.Time) {
	if err := c.waits.load(ctx); err != nil && ctx.Err() == nil {
		c.Log.Warn("since when addresses wait for their hosts cannot be read: they wait anew", "error", err)
	}
	active := c.observe(ctx, now)
	due := c.ripe(now)
	if c.Mode != Off {
		c.due.Set(float64(len(c.suspects)))
	}
	if err := c.waits.save(ctx, c.waiting()); err != nil && ctx.Err() == nil {
		c.Log.Warn("since when addresses wait for their hosts is not written down: a restart begins anew", "error", err)
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
	group, together := errgroup.WithContext(ctx) // an API server that fails one fails all
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
		if alive[i] { // the cache is behind: no need to ask again at once
			delete(c.suspects, s.lease.Addr)
		}
	}
}

// keep replaces the suspects, and what is known of pods with a long grace period.
func (c *Collector) keep(suspects map[netip.Addr]suspect, all map[netip.Addr]patient) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.suspects, c.patient = suspects, all
}

// patient is a pod with a longer grace period than its lease says, as one of an earlier release does or where the pod
// was deleted with a longer one. It is remembered for when the pod has gone.
type patient struct {
	uid         string
	termination time.Duration
}

// longest returns the longest grace period of a lease's pod that the passes know of.
func (c *Collector) longest(l ipam.Lease) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.patient[l.Addr]; p.uid == l.PodUID {
		return max(p.termination, l.Termination)
	}
	return l.Termination
}

// observe brings the suspects up to date with the caches and the Leases of their hosts, and counts the active leases.
// Leases that carry an older UID of their pod are mended on the way.
func (c *Collector) observe(ctx context.Context, now time.Time) (active int) {
	seen, long := map[netip.Addr]suspect{}, map[netip.Addr]patient{}
	for _, l := range c.Index.Find(func(l ipam.Lease) bool { return l.State == ipam.Active }) {
		active++
		if l.Owner != "" || l.PodName == "" || l.Namespace == "" {
			continue
		}
		pod, err := c.cachedPod(ctx, l.Holder)
		if err != nil {
			continue
		}
		if p, ok := c.patience(l, pod); ok {
			long[l.Addr] = p
		}
		if pod != nil && gone.Misnamed(l, *pod) {
			c.identify(ctx, l)
			continue
		}
		check, cause := gone.Record(l, pod, gone.Indexed(c.Index), c.Leases.Now())
		if check == "" || check == gone.PodOtherAddress {
			continue
		}
		s := suspect{lease: l, check: check, cause: cause, since: now, first: c.Leases.Now()}
		if before, ok := c.suspects[l.Addr]; ok && before.lease.Version == l.Version && before.check == check {
			s.since, s.first, s.told = before.since, before.first, before.told
			s.node, s.beat, s.renewal = before.node, before.beat, before.renewal
			s.missed = before.missed
		}
		if at, ok := c.waits.since(l); ok && at.Before(s.first) {
			s.first = at // an earlier process saw it
		}
		seen[l.Addr] = s
	}
	c.listen(ctx, seen, now)
	c.keep(seen, long)
	return active
}

// patience is what is remembered of a pod while a lease names it, if its grace period is longer than the lease says.
func (c *Collector) patience(l ipam.Lease, pod *workload.Pod) (p patient, ok bool) {
	if pod != nil && pod.UID == l.PodUID {
		p = patient{pod.UID, pod.Termination}
	} else {
		p = c.patient[l.Addr]
	}
	return p, p.uid == l.PodUID && p.termination > max(l.Termination, ipam.UsualTermination)
}

// cachedPod returns the pod of a holder's name; nil when there is none.
func (c *Collector) cachedPod(ctx context.Context, h ipam.Holder) (*workload.Pod, error) {
	var o corev1.Pod
	err := c.Cached.Get(ctx, types.NamespacedName{Namespace: h.Namespace, Name: h.PodName}, &o)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	pod := workload.FromObject(&o)
	return &pod, nil
}

// ripe returns the suspects that nobody has, unless the API server knows better, in the order of their addresses.
func (c *Collector) ripe(now time.Time) (due []suspect) {
	for _, s := range c.suspects {
		if c.doubt(s, now) == "" {
			due = append(due, s)
		}
	}
	slices.SortFunc(due, func(a, b suspect) int { return a.lease.Addr.Compare(b.lease.Addr) })
	return due
}

// evidence returns what the passes know of a suspect.
func (c *Collector) evidence(s suspect, now time.Time) gone.Evidence {
	e := gone.Evidence{
		Lease: s.lease, Others: gone.Indexed(c.Index), Now: c.Leases.Now(), Since: s.first, For: now.Sub(s.since),
		Host: gone.Host{Ready: true, Renewal: s.renewal, Missed: s.missed},
	}
	e.Lease.Termination = c.longest(s.lease)
	if since, away := c.Nodes.AwaySince(s.lease.Host); away {
		e.Host = gone.Host{Away: since}
		if !c.Nodes.Known(s.lease.Host) {
			e.Host.Away = s.first // it may be there for all that is known, as with a second network card
		}
	}
	return e
}

// Judge decides about a lease by what the passes of this leader have seen. live has it ask the API server for the pod;
// without, the cache counts as if it had said so.
func (c *Collector) Judge(ctx context.Context, l ipam.Lease, live bool) (d gone.Decision, err error) {
	now := time.Now()
	c.mu.Lock()
	s, ok := c.suspects[l.Addr]
	c.mu.Unlock()
	if !ok || s.lease.Version != l.Version {
		s = suspect{lease: l, since: now, first: c.Leases.Now()}
	}
	e := c.evidence(s, now)
	if e.Live = true; live {
		e.Pod, err = c.livePod(ctx, l)
	} else {
		e.Pod, err = c.cachedPod(ctx, l.Holder)
	}
	return c.timed().Decide(e), err
}

// doubt says why the containers of a suspect may still run, as far as the API server is not asked for its pod.
func (c *Collector) doubt(s suspect, now time.Time) string {
	e := c.evidence(s, now)
	e.Live = true
	return c.timed().Doubt(e, s.check)
}

// timed returns the rule for looks that are not to the millisecond: one that comes early is not another interval too
// early.
func (c *Collector) timed() gone.Rule {
	r, early := c.Rule, c.Every/10
	r.Apart, r.Margin = r.Apart-early, r.Margin-early
	return r
}

// waiting returns the suspects that wait for their host's grace period and that nothing but this process can tell since
// when.
func (c *Collector) waiting() (all []suspect) {
	for _, s := range c.suspects {
		if !c.Nodes.Known(s.lease.Host) || s.check == gone.PodGone && workload.Static(s.lease.PodUID) {
			all = append(all, s)
		}
	}
	return all
}

// report says once of each what would be taken back.
func (c *Collector) report(due []suspect) {
	for _, s := range due {
		if s.told {
			continue
		}
		s.told = true
		c.mu.Lock()
		c.suspects[s.lease.Addr] = s
		c.mu.Unlock()
		c.Log.Info("would take an address back (--garbage-collection is dry-run)", s.fields()...)
	}
}

func (s suspect) fields() []any {
	l := s.lease
	return []any{
		"address", l.Addr.String(), "pool", l.Pool, "pod", l.Who(), "pod_uid", l.PodUID, "container", l.ContainerID,
		"host", l.Host.String(), "check", string(s.check), "cause", s.cause,
	}
}

// livePod returns the pod of a lease as the API server has it; nil when there is none.
func (c *Collector) livePod(ctx context.Context, l ipam.Lease) (*workload.Pod, error) {
	pod, err := c.Pods.FindLive(ctx, l.Namespace, l.PodName, "")
	switch {
	case errors.Is(err, workload.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &pod, nil
}

// itsOwn reports whether a collection failed because of its lease: what the API server would not store, as it was
// written by hand or by another release, or what a policy forbids. Other leases are not concerned.
func itsOwn(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) && !store.ForbiddenByRole(err)
}

// collect asks the API server for the pod and takes the address back if that says the same; alive means that
// it does not.
func (c *Collector) collect(ctx context.Context, s suspect, now time.Time) (alive bool, err error) {
	l := s.lease
	ctx, cancel := context.WithTimeout(ctx, allocator.MaxRequestTime)
	defer cancel()
	e := c.evidence(s, now)
	if e.Pod, e.Live, err = c.lastLook(ctx, l); err != nil {
		return false, err
	}
	d := c.timed().Decide(e)
	if d.Verdict != gone.Gone {
		return true, nil
	}
	s.check, s.cause = d.Check, d.Cause
	change := ipam.Change{Verb: ipam.VerbCollect, By: "bcsnet-controller", Reason: string(s.check)}
	released, err := allocator.ReleaseLease(ctx, c.Leases, l, change, l.SameHolding)
	if released {
		c.Breaker.took(time.Now())
		c.collections.WithLabelValues(string(s.check)).Inc()
		c.Log.Info("took an address back", s.fields()...)
		c.Event(ctx, l, corev1.EventTypeNormal, v1.ReasonAddressCollected, "Collect", "took "+l.Addr.String()+" back: "+s.cause)
	}
	return false, err
}
