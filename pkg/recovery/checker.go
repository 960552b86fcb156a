package recovery

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

const (
	// rebuildEvery is how often pools that wait are looked at; checkEvery is how soon a check that failed is tried
	// again.
	rebuildEvery, checkEvery = time.Second, 100 * time.Millisecond
	// recheckTime is how long the check is repeated after the store was put back: the caches of pods and pools follow on
	// their own.
	recheckTime = time.Minute
	// clockError is how far apart two processes may be in what they take for the API server's time.
	clockError = 2 * time.Second
)

// Checker finds out whether leases were lost while nobody watched: before this replica serves, at every start and when
// the store was put back to an older state. Then it makes those of running pods again. A pool that lost leases
// allocates nothing while pods that may have an address of it have not reported theirs. Pools that lost nothing serve
// at once.
type Checker struct {
	CheckerConfig

	// troubles keeps what fails again and again from filling the log.
	troubles rate.Sometimes
	// checked is the number of restarts at the last check, plus one; 0 before the first.
	checked atomic.Uint64
	// rebuiltAt is when somebody else rebuilt a pool; pods created after that are not waited for.
	rebuiltAt map[string]time.Time
}

// CheckerConfig is what a Checker works with.
type CheckerConfig struct {
	Cache  client.Reader
	Index  *ipam.Index
	Leases *store.Client
	Pods   *workload.Pods
	// Synced returns which lists have not come yet; nil when all have.
	Synced func() error
	// Changed is called after a pool began or ended to wait.
	Changed func(pool string)
	// Restarts counts how often the store was put back to an older state.
	Restarts func() uint64
	Log      *slog.Logger
}

// NewChecker returns a checker that has not checked anything: it is not ready.
func NewChecker(c CheckerConfig) *Checker {
	return &Checker{CheckerConfig: c, troubles: rate.Sometimes{Interval: 10 * time.Second}}
}

// Ready returns what the check waits for; nil once it is done.
func (c *Checker) Ready() error {
	if err := c.Synced(); err != nil {
		return err
	}
	if c.checked.Load() != c.Restarts()+1 {
		return errors.New("it is being checked whether leases were lost")
	}
	return nil
}

// Run checks at the start and whenever the store was put back, and goes on rebuilding the pools that wait.
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
			found, err := c.check(ctx, waiting, fresh)
			if err != nil {
				c.troubles.Do(func() { c.Log.Warn("could not check whether leases were lost", "error", err) })
				continue
			}
			if fresh && restarts > 0 {
				c.Log.Warn("the API server's store was put back to an older state; the leases were read anew")
				again = now.Add(recheckTime)
			}
			waiting, looked = found, now
			c.checked.Store(restarts + 1)
		case len(waiting) > 0:
			c.resume(ctx, waiting)
			looked = now
		}
	}
}

// check finds the pools that lost leases, and until when they wait for their pods. first is true where this replica has
// not checked since it started, or since the store was put back.
func (c *Checker) check(ctx context.Context, waiting map[string]time.Time, first bool) (map[string]time.Time, error) {
	until, err := c.suspects(ctx)
	if err != nil {
		return nil, err
	}
	if first {
		c.rebuilt(until)
	}
	plan, err := c.plan(ctx)
	if err != nil {
		return nil, err
	}
	maps.Copy(until, waiting)
	more := false
	for _, l := range plan.Create {
		pool := c.Index.CountedAs(l.Pool)
		if _, known := until[pool]; known && c.rebuiltAt[pool].IsZero() {
			continue
		}
		lost, err := c.confirmed(ctx, l)
		if err != nil {
			return nil, err
		}
		if lost {
			more = more || !c.rebuiltAt[pool].IsZero()
			delete(c.rebuiltAt, pool)
			until[pool] = c.Leases.Now().Add(MaxWait)
		}
	}
	if more {
		if plan, err = c.plan(ctx); err != nil {
			return nil, err
		}
	}
	c.rebuild(ctx, plan, until)
	return until, nil
}

// suspects returns the pools whose status shows that they lost their leases: those that had some and have no object
// now, and those that another replica, or this one before it ended, was rebuilding.
func (c *Checker) suspects(ctx context.Context) (map[string]time.Time, error) {
	var pools v1.BCSNetPoolList
	if err := c.Cache.List(ctx, &pools); err != nil {
		return nil, err
	}
	until := map[string]time.Time{}
	for i := range pools.Items {
		p := &pools.Items[i]
		if p.Status.Active > 0 && c.Index.Counts(p.Name, c.Leases.Now()).Objects == 0 {
			until[p.Name] = c.Leases.Now().Add(MaxWait)
		}
		ready := meta.FindStatusCondition(p.Status.Conditions, v1.ConditionReady)
		if ready == nil || ready.Reason != v1.ReasonRebuilding {
			continue
		}
		if end := ready.LastTransitionTime.Add(MaxWait); end.After(c.Leases.Now()) {
			until[p.Name] = end
		}
	}
	return until, nil
}

// rebuilt adds the pools with leases that were made again from pods a short while ago. Whoever made them, such as a
// replica that ended before its status was written, or an operator, made only those of the pods that had reported their
// addresses. Pods that were created after that, by more than clockError, have lost nothing: nobody waits for them.
func (c *Checker) rebuilt(until map[string]time.Time) {
	c.rebuiltAt = map[string]time.Time{}
	for _, l := range c.Index.Find(lease.Lease.Rebuilt) {
		pool, known := c.Index.OwnerOf(l.Addr)
		pool = c.Index.CountedAs(pool)
		end := l.Updated.Add(MaxWait)
		if !known || !end.After(c.Leases.Now()) {
			continue
		}
		if _, suspect := until[pool]; suspect && c.rebuiltAt[pool].IsZero() {
			continue // more than that may be lost
		}
		if end.After(until[pool]) {
			until[pool], c.rebuiltAt[pool] = end, l.Updated.Add(clockError)
		}
	}
}

// confirmed asks the API server whether a pod really has an address that nobody holds: the caches of pods and of leases
// are of different moments.
func (c *Checker) confirmed(ctx context.Context, l lease.Lease) (bool, error) {
	live, err := c.Leases.Get(ctx, l.Addr)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return false, err
	}
	pod, err := c.Pods.FindLive(ctx, l.Namespace, l.PodName, l.PodUID)
	if errors.Is(err, workload.ErrNotFound) {
		return false, nil
	}
	return err == nil && live.State == lease.Available && !pod.Ended && !pod.Deleting &&
		slices.Contains(pod.Addrs, l.Addr) && !GaveUp(live, pod), err
}

func (c *Checker) plan(ctx context.Context) (Plan, error) {
	now := c.Leases.Now()
	var pods corev1.PodList
	if err := c.Cache.List(ctx, &pods); err != nil {
		return Plan{}, err
	}
	return Make(Input{
		Now: now, Index: c.Index, RebuiltAt: c.rebuiltAt,
		Pods: func(yield func(workload.Pod) bool) {
			for i := range pods.Items {
				if !yield(workload.FromObject(&pods.Items[i])) {
					return
				}
			}
		},
		Hosts: func(p workload.Pod) []netip.Addr { return slices.Concat(c.Pods.NodeAddrs(p.Node), p.HostIPs) },
	}), nil
}
