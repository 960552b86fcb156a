package controller

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/doctor"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/store"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// CollectionMode says what the garbage collection does.
type CollectionMode string

// Values of CollectionMode.
const (
	// CollectionOn: takes addresses back whose pod has gone.
	CollectionOn CollectionMode = "on"
	// CollectionDryRun: reports them only.
	CollectionDryRun CollectionMode = "dry-run"
	// CollectionOff: does not look.
	CollectionOff CollectionMode = "off"
)

const (
	// collectEvery is how often the leader looks at all leases, collectAfter how long one must look given up: what
	// a pod leaves without a DEL is back within a minute, also when the brake takes another look.
	collectEvery = 10 * time.Second
	collectAfter = 20 * time.Second
	// parallelCollections is how many addresses are looked at and released at once.
	parallelCollections = 16
)

// collector takes addresses back whose pod has gone, has ended or has been replaced. It believes what it sees
// twice in its caches and then once more at the API server; the write fails if the lease has changed since.
type collector struct {
	mode         CollectionMode
	every, after time.Duration
	hostGrace    time.Duration
	cached       client.Reader
	pods         *workload.Pods
	index        *ipam.Index
	leases       *store.Client
	nodes        *nodes
	brake        *brake
	// tell makes an event about the address of a lease.
	tell  func(ctx context.Context, l ipam.Lease, kind, reason, action, note string)
	ready func() error
	log   *slog.Logger

	suspects    map[netip.Addr]suspect
	collections *prometheus.CounterVec
	due         prometheus.Gauge
}

// suspect is a lease that looks given up.
type suspect struct {
	lease ipam.Lease
	// check is by which check, cause why; since is when it was first seen so, by the local clock.
	check, cause string
	since        time.Time
	// told: a dry run has reported it.
	told bool
}

// register makes the collector's metrics.
func (c *collector) register(r prometheus.Registerer) {
	c.collections = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "bcsnet_collections_total", Help: "Addresses that were taken back because their pod had gone, by the check that found them.",
	}, []string{"check"})
	c.due = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "bcsnet_collections_due", Help: "Addresses whose pod has gone and that wait to be taken back: for a second look, for their host, for the brake, or because of a dry run.",
	})
	for _, check := range []string{doctor.LeakPodGone, doctor.LeakPodEnded, doctor.LeakPodReplaced} {
		c.collections.WithLabelValues(check)
	}
	r.MustRegister(c.collections, c.due, c.brake.gauge)
}

// Start looks at the leases until the context ends. The manager calls it on the leader alone.
func (c *collector) Start(ctx context.Context) error {
	if c.mode == CollectionOff {
		return nil
	}
	c.suspects = map[netip.Addr]suspect{}
	defer c.brake.loosen()
	defer c.due.Set(0)
	if hasty {
		c.every, c.after = time.Second/10, 0
	}
	tick := time.NewTicker(c.every)
	defer tick.Stop()
	for {
		if c.ready() == nil {
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
func (c *collector) pass(ctx context.Context, now time.Time) {
	active := c.observe(ctx, now)
	due := c.ripe(now)
	c.due.Set(float64(len(c.suspects)))
	if c.mode == CollectionDryRun {
		c.report(due)
		return
	}
	if c.brake.stops(ctx, due, active, now) {
		return
	}
	alive := make([]bool, len(due))
	group, together := errgroup.WithContext(ctx) // an API server that fails one fails all
	group.SetLimit(parallelCollections)
	for i, s := range due {
		group.Go(func() (err error) {
			if alive[i], err = c.collect(together, s); err != nil && itsOwn(err) {
				c.log.Warn("an address of a pod that has gone is not taken back", append(s.fields(), "error", err)...)
				return nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil && ctx.Err() == nil {
		c.log.Warn("addresses of pods that have gone are not taken back", "due", len(due), "error", err)
	}
	for i, s := range due {
		if alive[i] { // the cache is behind: no need to ask again at once
			delete(c.suspects, s.lease.Addr)
		}
	}
}

// observe brings the suspects up to date with the caches and counts the active leases.
func (c *collector) observe(ctx context.Context, now time.Time) (active int) {
	seen := map[netip.Addr]suspect{}
	for _, l := range c.index.Find(func(l ipam.Lease) bool { return l.State == ipam.Active }) {
		active++
		if l.Owner != "" || l.PodName == "" || l.Namespace == "" {
			continue
		}
		pod, err := c.cachedPod(ctx, l.Holder)
		if err != nil {
			continue
		}
		check, cause := doctor.Judge(l, pod, c.others, c.leases.Now())
		if !collectable(check) {
			continue
		}
		s := suspect{lease: l, check: check, cause: cause, since: now}
		if before, ok := c.suspects[l.Addr]; ok && before.lease.Version == l.Version && before.check == check {
			s.since, s.told = before.since, before.told
		}
		seen[l.Addr] = s
	}
	c.suspects = seen
	return active
}

// others are the leases of a pod, and those on a lease's host.
func (c *collector) others(l ipam.Lease, uid string) []ipam.Lease {
	return append(c.index.ByAttachment(ipam.Holder{PodUID: uid, IfName: l.IfName}), c.index.ByHost(l.Host)...)
}

// collectable says whether a finding is one that needs nobody's judgement.
func collectable(check string) bool {
	return check == doctor.LeakPodGone || check == doctor.LeakPodEnded || check == doctor.LeakPodReplaced
}

// cachedPod is the pod of a holder's name; nil when there is none.
func (c *collector) cachedPod(ctx context.Context, h ipam.Holder) (*workload.Pod, error) {
	var o corev1.Pod
	err := c.cached.Get(ctx, types.NamespacedName{Namespace: h.Namespace, Name: h.PodName}, &o)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	pod := workload.FromObject(&o)
	return &pod, nil
}

// ripe are the suspects that have been seen for long enough, in the order of their addresses. Looks are not to the
// millisecond: one that comes early is not another interval too early.
func (c *collector) ripe(now time.Time) (due []suspect) {
	for _, s := range c.suspects {
		if now.Sub(s.since) >= c.after-c.every/2 && !c.mayRun(s, now) {
			due = append(due, s)
		}
	}
	slices.SortFunc(due, func(a, b suspect) int { return a.lease.Addr.Compare(b.lease.Addr) })
	return due
}

// mayRun says whether the containers of a suspect may still run although the API server does not know of them: on
// a host that is away for less than the grace period, and those of a static pod.
func (c *collector) mayRun(s suspect, now time.Time) bool {
	if since, away := c.nodes.awaySince(s.lease.Host); away {
		return c.hostGrace == 0 || c.leases.Now().Sub(since) < c.hostGrace
	}
	if s.check == doctor.LeakPodGone && workload.Static(s.lease.PodUID) {
		return c.hostGrace == 0 || now.Sub(s.since) < c.hostGrace
	}
	return false
}

// report says once of each what would be taken back.
func (c *collector) report(due []suspect) {
	for _, s := range due {
		if s.told {
			continue
		}
		s.told = true
		c.suspects[s.lease.Addr] = s
		c.log.Info("would take an address back (--garbage-collection is dry-run)", s.fields()...)
	}
}

func (s suspect) fields() []any {
	l := s.lease
	return []any{
		"address", l.Addr.String(), "pool", l.Pool, "pod", l.Who(), "pod_uid", l.PodUID, "container", l.ContainerID,
		"host", l.Host.String(), "check", s.check, "cause", s.cause,
	}
}

// itsOwn says whether a collection failed because of its lease: what the API server would not store, as it was written
// by hand or by another release. Other leases are not concerned.
func itsOwn(err error) bool { return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) }

// collect asks the API server for the pod and takes the address back if that says the same; alive means that
// it does not.
func (c *collector) collect(ctx context.Context, s suspect) (alive bool, err error) {
	l := s.lease
	ctx, cancel := context.WithTimeout(ctx, allocator.MaxRequestTime)
	defer cancel()
	pod, err := c.pods.FindLive(ctx, l.Namespace, l.PodName, "")
	switch {
	case hasty:
	case errors.Is(err, workload.ErrNotFound):
		s.check, s.cause = doctor.Judge(l, nil, c.others, c.leases.Now())
	case err != nil:
		return false, err
	default:
		s.check, s.cause = doctor.Judge(l, &pod, c.others, c.leases.Now())
	}
	if !collectable(s.check) {
		return true, nil
	}
	change := ipam.Change{Verb: ipam.VerbCollect, By: "bcsnet-controller", Reason: s.check}
	released, err := allocator.ReleaseLease(ctx, c.leases, l, change, l.SameHolding)
	if released {
		c.brake.took(time.Now())
		c.collections.WithLabelValues(s.check).Inc()
		c.log.Info("took an address back", s.fields()...)
		c.tell(ctx, l, corev1.EventTypeNormal, v1.ReasonAddressCollected, "Collect", "took "+l.Addr.String()+" back: "+s.cause)
	}
	return false, err
}
