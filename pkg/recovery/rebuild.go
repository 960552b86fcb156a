package recovery

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// making says what a pool waits for after all its pods have reported their addresses.
const making = "until the leases of its pods are created again"

// maxNamed is the maximum of pods that a message names.
const maxNamed = 10

// resume creates the leases of pods that have reported their addresses meanwhile, and ends the wait of pools without
// missing pods.
func (c *Checker) resume(ctx context.Context, until map[string]time.Time) {
	plan, err := c.plan(ctx, until)
	if err != nil {
		c.Log.Warn("could not look at the pods of pools that are being rebuilt", "error", err)
		return
	}
	c.rebuild(ctx, plan, until)
}

// rebuild creates the leases of a plan in the pools that lost some, and ends the wait of pools that are done.
func (c *Checker) rebuild(ctx context.Context, plan Plan, until map[string]time.Time) {
	waiting := map[string]string{}
	for pool, end := range until {
		if names := plan.Waiting[pool]; len(names) > 0 && c.Leases.Now().Before(end) {
			waiting[pool] = waitingText(names, end)
		}
		first := c.Index.Pools.Rebuilding(pool) == ""
		c.Index.Pools.SetRebuilding(pool, cmp.Or(waiting[pool], making))
		if first {
			c.Log.Warn("leases of a pool were lost: it is rebuilt from its pods", "pool", pool, "waiting",
				plan.Waiting[pool])
		}
	}
	failed := c.create(ctx, slices.Concat(plan.Objects, plan.Create), until)
	for _, pool := range slices.Sorted(maps.Keys(until)) {
		if waiting[pool] != "" || failed[pool] {
			c.Index.Pools.SetRebuilding(pool, cmp.Or(waiting[pool], making))
			c.Changed(pool)
			continue
		}
		if names := plan.Waiting[pool]; len(names) > 0 {
			c.Log.Warn("a pool allocates again although pods have not reported their addresses", "pool", pool, "pods",
				names)
		}
		delete(until, pool)
		c.Index.Pools.SetRebuilding(pool, "")
		c.Log.Info("a pool is rebuilt", "pool", pool)
		c.Changed(pool)
	}
}

func (c *Checker) create(ctx context.Context, all []lease.Lease, in map[string]time.Time) (failed map[string]bool) {
	failed = map[string]bool{}
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(parallel)
	for _, l := range all {
		pool := c.Index.Pools.CountedAs(l.Pool)
		if _, lost := in[pool]; !lost {
			continue
		}
		group.Go(func() error {
			_, created, err := Create(ctx, c.Leases, l)
			switch {
			case err != nil:
				mu.Lock()
				defer mu.Unlock()
				failed[pool] = true
				c.Log.Warn("could not create a lease again", "address", l.Addr.String(), "holder", l.Who(),
					"error", err)
			case created:
				c.Log.Info("made a lease again from what its holder reports", "address", l.Addr.String(), "holder",
					l.Who(), "pool", l.Pool)
			}
			return nil
		})
	}
	_ = group.Wait() // what failed is in the map
	return failed
}

// waitingText names the pods that have not reported their addresses, and until when the pool waits for them.
func waitingText(names []string, end time.Time) string {
	shown := names[:min(len(names), maxNamed)]
	text := strings.Join(shown, ", ")
	if more := len(names) - len(shown); more > 0 {
		text += fmt.Sprintf(" and %s", humanize.Plural(more, "more pod"))
	}
	return fmt.Sprintf("until %s %s of an address or end, at the latest at %s", text,
		humanize.OneOr(len(names), "tells", "tell"), end.UTC().Format(time.RFC3339))
}
