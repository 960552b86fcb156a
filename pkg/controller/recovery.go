package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/rebuild"
	"github.com/bcsnet/bcsnet/pkg/store"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

const (
	// rebuildEvery is how often it is looked at meanwhile, checkEvery how soon a check is tried again.
	rebuildEvery, checkEvery = time.Second, 100 * time.Millisecond
	// settleTime is how long it is checked again and again after a restart: the caches of pods and pools follow on
	// their own.
	settleTime = time.Minute
	// clockError is how far apart the times may be that two processes take for the API server's.
	clockError = 2 * time.Second
)

// making is what a pool waits for whose pods have all told.
const making = "until the leases of its pods are made again"

// recovery looks before this replica serves, at every start and when the store was put back to an older state,
// whether leases were lost while nobody watched: then it makes those of running pods again, and keeps their pools
// from handing out what pods may have that do not tell yet. Pools that lost nothing serve at once.
type recovery struct {
	cache   client.Reader
	index   *ipam.Index
	leases  *store.Client
	pods    *workload.Pods
	synced  func() error
	changed func(pool string)
	log     *slog.Logger
	// troubles keeps what fails again and again from filling the log.
	troubles rate.Sometimes
	// restarts counts how often the store was put back to an older state; checked is at how many of them it was
	// checked last, plus one.
	restarts func() uint64
	checked  atomic.Uint64
	// whole are the pools of which leases were made again by others, and since when no pod that is made loses one.
	whole map[string]time.Time
}

// ready is nil once the check is done.
func (r *recovery) ready() error {
	if err := r.synced(); err != nil {
		return err
	}
	if r.checked.Load() != r.restarts()+1 {
		return errors.New("it is being checked whether leases were lost")
	}
	return nil
}

// run checks at the start and after every restart, and sees to the pools that wait.
func (r *recovery) run(ctx context.Context) error {
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
		restarts := r.restarts()
		fresh := r.checked.Load() != restarts+1
		switch now := time.Now(); {
		case r.synced() != nil, !fresh && now.Sub(looked) < rebuildEvery:
		case fresh, now.Before(again):
			found, err := r.check(ctx, waiting, fresh)
			if err != nil {
				r.troubles.Do(func() { r.log.Warn("could not check whether leases were lost", "error", err) })
				continue
			}
			if fresh && restarts > 0 {
				r.log.Warn("the API server's store was put back to an older state; the leases were read anew")
				again = now.Add(settleTime)
			}
			waiting, looked = found, now
			r.checked.Store(restarts + 1)
		case len(waiting) > 0:
			r.goOn(ctx, waiting)
			looked = now
		}
	}
}

// check finds the pools that lost leases, and until when they wait for their pods; first says whether this replica has not
// looked since it started, or since the store was put back.
func (r *recovery) check(ctx context.Context, waiting map[string]time.Time, first bool) (map[string]time.Time, error) {
	until, err := r.suspects(ctx)
	if err != nil {
		return nil, err
	}
	if first {
		r.rebuilt(until)
	}
	plan, err := r.plan(ctx)
	if err != nil {
		return nil, err
	}
	maps.Copy(until, waiting)
	more := false
	for _, l := range plan.Create {
		if _, known := until[l.Pool]; known && r.whole[l.Pool].IsZero() {
			continue
		}
		lost, err := r.confirmed(ctx, l)
		if err != nil {
			return nil, err
		}
		if lost {
			more = more || !r.whole[l.Pool].IsZero()
			delete(r.whole, l.Pool)
			until[l.Pool] = r.leases.Now().Add(rebuild.MaxWait)
		}
	}
	if more {
		if plan, err = r.plan(ctx); err != nil {
			return nil, err
		}
	}
	r.rebuild(ctx, plan, until)
	return until, nil
}

// suspects are the pools that say themselves that they lost their leases: those that had some and have no object
// now, and those that are being rebuilt by the word of another replica, or of this one before it ended.
func (r *recovery) suspects(ctx context.Context) (map[string]time.Time, error) {
	var pools v1.BCSNetPoolList
	if err := r.cache.List(ctx, &pools); err != nil {
		return nil, err
	}
	until := map[string]time.Time{}
	for i := range pools.Items {
		p := &pools.Items[i]
		if p.Status.Active > 0 && r.index.Counts(p.Name, r.leases.Now()).Objects == 0 {
			until[p.Name] = r.leases.Now().Add(rebuild.MaxWait)
		}
		c := meta.FindStatusCondition(p.Status.Conditions, v1.ConditionReady)
		if c == nil || c.Reason != v1.ReasonRebuilding {
			continue
		}
		if end := c.LastTransitionTime.Add(rebuild.MaxWait); end.After(r.leases.Now()) {
			until[p.Name] = end
		}
	}
	return until, nil
}

// rebuilt adds the pools with leases that were made again from pods a short while ago: who made them, such as a replica that
// ended before it could tell or an operator, made only those of the pods that had told. What was made later than all of
// them, by more than clocks may differ, has lost nothing: it is not waited for.
func (r *recovery) rebuilt(until map[string]time.Time) {
	r.whole = map[string]time.Time{}
	for _, l := range r.index.Find(ipam.Lease.Rebuilt) {
		pool, known := r.index.PoolOf(l.Addr)
		end := l.Updated.Add(rebuild.MaxWait)
		if !known || !end.After(r.leases.Now()) {
			continue
		}
		if _, suspect := until[pool]; suspect && r.whole[pool].IsZero() {
			continue // more than that may be lost
		}
		if end.After(until[pool]) {
			until[pool], r.whole[pool] = end, l.Updated.Add(clockError)
		}
	}
}

// confirmed looks at the API server whether a pod really has an address that nobody holds: the caches of pods and
// of leases are of different moments.
func (r *recovery) confirmed(ctx context.Context, l ipam.Lease) (bool, error) {
	live, err := r.leases.Get(ctx, l.Addr)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return false, err
	}
	pod, err := r.pods.FindLive(ctx, l.Namespace, l.PodName, l.PodUID)
	if errors.Is(err, workload.ErrNotFound) {
		return false, nil
	}
	return err == nil && live.State == ipam.Available && !pod.Ended && !pod.Deleting &&
		slices.Contains(pod.Addrs, l.Addr) && !rebuild.GaveUp(live, pod), err
}

func (r *recovery) plan(ctx context.Context) (rebuild.Plan, error) {
	now := r.leases.Now()
	var pods corev1.PodList
	if err := r.cache.List(ctx, &pods); err != nil {
		return rebuild.Plan{}, err
	}
	return rebuild.Make(rebuild.Input{
		Now: now, Index: r.index, Whole: r.whole,
		Pods: func(yield func(workload.Pod) bool) {
			for i := range pods.Items {
				if !yield(workload.FromObject(&pods.Items[i])) {
					return
				}
			}
		},
		Hosts: func(p workload.Pod) []netip.Addr { return slices.Concat(r.pods.NodeAddrs(p.Node), p.HostIPs) },
	}), nil
}

// goOn takes what pods have told meanwhile, and lets the pools serve that wait for nobody any more.
func (r *recovery) goOn(ctx context.Context, until map[string]time.Time) {
	plan, err := r.plan(ctx)
	if err != nil {
		r.log.Warn("could not look at the pods of pools that are being rebuilt", "error", err)
		return
	}
	r.rebuild(ctx, plan, until)
}

// rebuild makes the leases of a plan in the pools that lost some, and ends the wait of those that are done.
func (r *recovery) rebuild(ctx context.Context, plan rebuild.Plan, until map[string]time.Time) {
	waiting := map[string]string{}
	for pool, end := range until {
		if names := plan.Waiting[pool]; len(names) > 0 && r.leases.Now().Before(end) {
			waiting[pool] = waitingText(names, end)
		}
		first := r.index.Rebuilding(pool) == ""
		r.index.SetRebuilding(pool, cmp.Or(waiting[pool], making))
		if first {
			r.log.Warn("leases of a pool were lost: it is rebuilt from its pods", "pool", pool, "waiting", plan.Waiting[pool])
		}
	}
	failed := r.create(ctx, plan.Create, until)
	for _, pool := range slices.Sorted(maps.Keys(until)) {
		if waiting[pool] != "" || failed[pool] {
			r.index.SetRebuilding(pool, cmp.Or(waiting[pool], making))
			r.changed(pool)
			continue
		}
		if names := plan.Waiting[pool]; len(names) > 0 {
			r.log.Warn("a pool hands out again although pods have not told of their addresses", "pool", pool, "pods", names)
		}
		delete(until, pool)
		r.index.SetRebuilding(pool, "")
		r.log.Info("a pool is rebuilt", "pool", pool)
		r.changed(pool)
	}
}

func (r *recovery) create(ctx context.Context, all []ipam.Lease, in map[string]time.Time) (failed map[string]bool) {
	failed = map[string]bool{}
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(parallelWrites)
	for _, l := range all {
		if _, lost := in[l.Pool]; !lost {
			continue
		}
		group.Go(func() error {
			_, created, err := rebuild.Create(ctx, r.leases, l)
			switch {
			case err != nil:
				mu.Lock()
				defer mu.Unlock()
				failed[l.Pool] = true
				r.log.Warn("could not make a lease again", "address", l.Addr.String(), "holder", l.Who(), "error", err)
			case created:
				r.log.Info("made a lease again from its pod", "address", l.Addr.String(), "holder", l.Who(), "pool", l.Pool)
			}
			return nil
		})
	}
	_ = group.Wait() // what failed is in the map
	return failed
}

// waitingText names pods that have not told of their addresses.
func waitingText(names []string, end time.Time) string {
	shown := names[:min(len(names), maxHosts)]
	text := strings.Join(shown, ", ")
	if more := len(names) - len(shown); more > 0 {
		text += fmt.Sprintf(" and %s", humanize.Plural(more, "more pod"))
	}
	return fmt.Sprintf("until %s %s of an address or end, at the latest at %s", text, humanize.OneOr(len(names), "tells", "tell"), end.UTC().Format(time.RFC3339))
}
