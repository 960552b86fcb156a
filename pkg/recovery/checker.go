package recovery

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

const (
	// rebuildEvery is the interval in which waiting pools are checked, checkEvery the time after which a failed check
	// is repeated.
	rebuildEvery, checkEvery = time.Second, 100 * time.Millisecond
	// recheckTime is the time for which the check is repeated after a restore of the store, because the caches of pods
	// and pools follow it separately.
	recheckTime = time.Minute
	// clockError bounds how far the estimates of the API server's time in two processes may differ.
	clockError = 2 * time.Second
)

// Checker finds out whether leases were lost while no controller ran, before this replica serves: at every start, and
// after a restore of the store to an older state. It then creates the leases of running pods again. A pool that lost
// leases allocates nothing until all pods that may have one of its addresses have reported theirs. Other pools serve at
// once.
type Checker struct {
	CheckerConfig

	// troubles limits how often repeated failures are logged.
	troubles rate.Sometimes
	// checked is the number of restarts at the last check, plus one; 0 before the first.
	checked atomic.Uint64
	// rebuiltAt is when somebody else rebuilt a pool; pods created after that are not waited for.
	rebuiltAt map[string]time.Time
	// fewer has the evidence of the first check.
	fewer map[string]bool
}

// CheckerConfig has the dependencies of a Checker.
type CheckerConfig struct {
	Cache  client.Reader
	Index  *index.Index
	Leases *store.Client
	Pods   *workload.Pods
	// Objects are the addresses that objects say they have; nil for none.
	Objects func() iter.Seq[Object]
	// Synced returns an error that names the lists that have not arrived yet; nil if all have.
	Synced func() error
	// Changed is called after a pool starts or stops waiting.
	Changed func(pool string)
	// Restarts returns how often the store was restored to an older state.
	Restarts func() uint64
	Log      *slog.Logger
}

// NewChecker returns a checker that is not ready, as it has not checked anything yet.
func NewChecker(c CheckerConfig) *Checker {
	return &Checker{CheckerConfig: c, troubles: rate.Sometimes{Interval: 10 * time.Second}}
}

// Ready returns an error that says what the check waits for; nil once it is done.
func (c *Checker) Ready() error {
	if err := c.Synced(); err != nil {
		return err
	}
	if c.checked.Load() != c.Restarts()+1 {
		return errors.New("it is being checked whether leases were lost")
	}
	return nil
}

// Run checks at the start and after each restore of the store, and continues to rebuild the waiting pools.
func (c *Checker) Run(ctx context.Context) error {
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	waiting := map[string]time.Time{}
	var again time.Time // until when it is checked again and again
	var looked time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		restarts := c.Restarts()
		fresh := c.checked.Load() != restarts+1
		switch now := time.Now(); {
		case c.Synced() != nil, !fresh && now.Sub(looked) < rebuildEvery:
		case fresh, now.Before(again):
			found, lone, err := c.check(ctx, waiting, fresh)
			if err != nil {
				c.troubles.Do(func() { c.Log.Warn("could not check whether leases were lost", "error", err) })
				continue
			}
			if fresh && restarts > 0 {
				c.Log.Warn("the API server's store was put back to an older state; the leases were read anew")
				again = now.Add(recheckTime)
			}
			if fresh && lone { // other nodes may report, too
				again = now.Add(MaxWait)
			}
			waiting, looked = found, now
			c.checked.Store(restarts + 1)
		case len(waiting) > 0:
			c.resume(ctx, waiting)
			looked = now
		}
	}
}

// check finds the pools that lost leases, and until when they wait for their pods. first reports whether this is the
// first check since the start, or since the last restore of the store. lone reports whether pods report addresses that
// nobody holds and only their node vouches for it, so that the check must be repeated for MaxWait.
func (c *Checker) check(
	ctx context.Context, waiting map[string]time.Time, first bool,
) (until map[string]time.Time, lone bool, err error) {
	e, err := c.evidence(ctx)
	if err != nil {
		return nil, false, err
	}
	if !first && !e.putBack { // the status of a pool follows what is allocated
		e.lost, e.fewer = map[string]time.Time{}, c.fewer
	}
	until, c.fewer = e.lost, e.fewer
	plan, err := c.plan(ctx, until)
	if err != nil {
		return nil, false, err
	}
	if first {
		c.rebuilt(until, e, plan)
	}
	maps.Copy(until, waiting)
	reports, err := c.reports(ctx, until, e, plan)
	if err != nil {
		return nil, false, err
	}
	for pool, nodes := range reports {
		for _, l := range c.Index.Leases.Find(lease.Lease.Rebuilt) {
			if c.poolOf(l) == pool && c.recent(l) {
				nodes[c.nodeOf(l.Host)] = true
			}
		}
		if e.enough(pool, nodes, plan) {
			delete(c.rebuiltAt, pool)
			until[pool] = c.Leases.Now().Add(MaxWait)
		}
	}
	if plan, err = c.plan(ctx, until); err != nil {
		return nil, false, err
	}
	if first {
		c.doubts(plan.Conflicts)
	}
	c.rebuild(ctx, plan, until)
	return until, c.alone(ctx, plan, until), nil
}

// reports returns, for each pool that is not known to have lost leases, the nodes with pods that really report
// addresses that nobody holds. Reports that would prove nothing are skipped.
func (c *Checker) reports(
	ctx context.Context, until map[string]time.Time, e evidence, plan Plan,
) (map[string]map[string]bool, error) {
	said, confirmed := map[string]map[string]bool{}, map[string]map[string]bool{}
	note := func(in map[string]map[string]bool, pool, node string) {
		if in[pool] == nil {
			in[pool] = map[string]bool{}
		}
		in[pool][node] = true
	}
	all := slices.DeleteFunc(slices.Concat(plan.Create, plan.Doubtful), func(l lease.Lease) bool {
		_, known := until[c.poolOf(l)]
		return known && c.rebuiltAt[c.poolOf(l)].IsZero()
	})
	for _, l := range all {
		note(said, c.poolOf(l), plan.Reporters[l.Addr])
	}
	for _, l := range c.Index.Leases.Find(lease.Lease.Rebuilt) {
		if pool := c.poolOf(l); said[pool] != nil && c.recent(l) {
			note(said, pool, c.nodeOf(l.Host))
		}
	}
	all = slices.DeleteFunc(all, func(l lease.Lease) bool { return !e.enough(c.poolOf(l), said[c.poolOf(l)], plan) })
	lost, err := c.confirm(ctx, all)
	if err != nil {
		return nil, err
	}
	for _, l := range all {
		if lost[l.Addr] {
			note(confirmed, c.poolOf(l), plan.Reporters[l.Addr])
		}
	}
	return confirmed, nil
}

// alone creates the leases that pods report in pools without other evidence of lost leases. Such a pool allocates
// meanwhile. some reports whether there are such reports.
func (c *Checker) alone(ctx context.Context, plan Plan, until map[string]time.Time) (some bool) {
	for _, l := range plan.Doubtful {
		if _, lost := until[c.poolOf(l)]; !lost {
			some = true
		}
	}
	create := slices.DeleteFunc(slices.Clone(plan.Create), func(l lease.Lease) bool {
		_, lost := until[c.poolOf(l)]
		return lost || c.Index.Pools.Rebuilding(c.poolOf(l)) != ""
	})
	really, err := c.confirm(ctx, create)
	if err != nil {
		c.Log.Warn("could not create leases again", "leases", len(create), "error", err)
		return true
	}
	for _, l := range create {
		if current, _ := c.Index.Leases.Get(l.Addr); current.State == lease.Available && !named(current, l.Who()) &&
			offer(c.Index, l, c.Leases.Now()) != nil {
			continue // what was made before counts for the bounds of the pool
		}
		if !really[l.Addr] {
			continue
		}
		_, made, err := Create(ctx, c.Leases, l)
		switch {
		case err != nil:
			c.Log.Warn("could not create a lease again", "address", l.Addr.String(), "holder", l.Who(),
				"error", err)
		case made:
			c.Log.Info("made a lease again from its pod", "address", l.Addr.String(), "holder", l.Who(), "pool", l.Pool)
		}
	}
	return some || len(create) > 0
}

// doubts logs the reports that contradict the store, or are not believed.
func (c *Checker) doubts(all []Conflict) {
	for _, d := range all[:min(len(all), maxNamed)] {
		c.Log.Warn("a pod reports an address that is not its own by the leases", "address", d.Addr.String(), "pod",
			d.Pod, "pool", d.Pool, "cause", d.Cause)
	}
	if more := len(all) - maxNamed; more > 0 {
		c.Log.Warn("more pods report addresses that are not their own; bcsnetctl rebuild --dry-run=client names all",
			"more", more)
	}
}

func (c *Checker) poolOf(l lease.Lease) string { return c.Index.Pools.CountedAs(l.Pool) }

// recent reports whether a lease was created again so recently that its pool may still wait for pods.
func (c *Checker) recent(l lease.Lease) bool { return l.Updated.Add(MaxWait).After(c.Leases.Now()) }

// nodeOf names the node of a host; the host itself if no Node has it.
func (c *Checker) nodeOf(host netip.Addr) string {
	if node, ok := c.Index.Pools.NodeOf(host); ok {
		return node
	}
	return host.String()
}

// plan makes a plan that believes all reports in the pools that lost leases.
func (c *Checker) plan(ctx context.Context, lost map[string]time.Time) (Plan, error) {
	now := c.Leases.Now()
	var pods corev1.PodList
	if err := c.Cache.List(ctx, &pods); err != nil {
		return Plan{}, err
	}
	var objects iter.Seq[Object]
	if c.Objects != nil {
		objects = c.Objects()
	}
	return Make(Input{
		Now: now, Index: c.Index, RebuiltAt: c.rebuiltAt, Objects: objects,
		Pods: func(yield func(workload.Pod) bool) {
			for i := range pods.Items {
				if !yield(workload.FromObject(&pods.Items[i])) {
					return
				}
			}
		},
		Hosts: func(p workload.Pod) []netip.Addr { return c.Pods.NodeAddrs(p.Node) },
		Lost:  func(pool string) bool { _, ok := lost[pool]; return ok },
	}), nil
}
