package recovery

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// givenUpTime is the time for which the status of a pool may still count a released address.
const givenUpTime = 10 * time.Minute

// evidence is what the store shows about lost leases.
type evidence struct {
	// lost are the pools that lost leases by this evidence alone, and until when they wait.
	lost map[string]time.Time
	// fewer are the pools with fewer leases than their status counts, including those released lately. A status may be
	// some seconds old, so this needs a report, too.
	fewer map[string]bool
	// putBack reports whether the store was restored to an older state.
	putBack bool
}

// enough reports whether a pool counts as one that lost leases, given the nodes whose pods report addresses that nobody
// holds. One node is enough if the store has evidence, too, or no other node has pods that draw from the pool.
func (e evidence) enough(pool string, nodes map[string]bool, plan Plan) bool {
	switch {
	case len(nodes) == 0:
		return false
	case len(nodes) > 1 || e.putBack || e.fewer[pool]:
		return true
	}
	for node := range nodes {
		return len(plan.Nodes[pool]) == 1 && plan.Nodes[pool][node]
	}
	return false
}

// evidence reads the pools. A pool lost its leases if its status counts addresses in use and it has no object, or if
// another replica, or an earlier process of this one, was rebuilding it.
func (c *Checker) evidence(ctx context.Context) (evidence, error) {
	e := evidence{lost: map[string]time.Time{}, fewer: map[string]bool{}, putBack: c.Restarts() > 0}
	var pools v1.BCSNetPoolList
	if err := c.Cache.List(ctx, &pools); err != nil {
		return e, err
	}
	now, givenUp := c.Leases.Now(), map[string]int64{}
	for _, l := range c.Index.Leases.Find(func(l lease.Lease) bool {
		return l.State != lease.Active && l.History != "" && l.Updated.Add(givenUpTime).After(now)
	}) {
		givenUp[c.poolOf(l)]++
	}
	for i := range pools.Items {
		p := &pools.Items[i]
		counts := c.Index.Pools.Counts(p.Name, now)
		if p.Status.Active > 0 && counts.Objects == 0 {
			e.lost[p.Name] = now.Add(MaxWait)
		}
		if p.Status.Active > int64(counts.Active)+givenUp[p.Name] {
			e.fewer[p.Name] = true
		}
		ready := meta.FindStatusCondition(p.Status.Conditions, v1.ConditionReady)
		if ready == nil || ready.Reason != v1.ReasonRebuilding {
			continue
		}
		if end := ready.LastTransitionTime.Add(MaxWait); end.After(now) {
			e.lost[p.Name] = end
		}
	}
	return e, nil
}

// rebuilt adds the pools with leases that were created again from pods a short while ago. A replica that ended before
// it wrote its status, or an operator, created only those of the pods that had reported their addresses. Pods that were
// created more than clockError later have lost nothing and are not awaited. Leases of one node prove no more than its
// reports.
func (c *Checker) rebuilt(until map[string]time.Time, e evidence, plan Plan) {
	c.rebuiltAt = map[string]time.Time{}
	nodes, last := map[string]map[string]bool{}, map[string]time.Time{}
	for _, l := range c.Index.Leases.Find(lease.Lease.Rebuilt) {
		owner, known := c.Index.Pools.OwnerOf(l.Addr)
		if !known || !c.recent(l) {
			continue
		}
		pool := c.Index.Pools.CountedAs(owner)
		if nodes[pool] == nil {
			nodes[pool] = map[string]bool{}
		}
		nodes[pool][c.nodeOf(l.Host)] = true
		if l.Updated.After(last[pool]) {
			last[pool] = l.Updated
		}
	}
	for pool, at := range last {
		if _, suspect := until[pool]; !suspect && e.enough(pool, nodes[pool], plan) { // else more than that may be lost
			until[pool], c.rebuiltAt[pool] = at.Add(MaxWait), at.Add(clockError)
		}
	}
}
