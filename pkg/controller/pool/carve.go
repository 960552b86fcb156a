package pool

import (
	"context"
	"fmt"
	"time"

	"go4.org/netipx"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/controller/conditions"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// handOver is the time for which addresses are withheld that a group takes from its parent: after it, no request can be
// in progress that began at a replica without knowledge of the group.
const handOver = allocator.MaxRequestTime + time.Second

// withheld is the set of addresses for which a group waits, and when this leader first saw it, by the clock of this
// process, because the API server's clock may be set.
type withheld struct {
	uid   types.UID
	set   *netipx.IPSet
	since time.Time
}

// carving is the progress of a group in taking addresses from its parent.
type carving struct {
	// carved are the ranges of all addresses handed over to it, for its status.
	carved []string
	// waiting is the reason why the remaining addresses are not handed over; empty if there are none.
	waiting string
	// again is the time after which to check again; 0 if nothing is waited for.
	again time.Duration
}

// carve decides which addresses a group has taken from its parent. Replicas that know of the group no longer allocate
// them from the parent. A replica that does not know of it may still do so, for as long as a request takes. After that,
// a list from the API server shows whether an address has a holder: then the group waits. Otherwise the addresses are
// handed over, until one is found to have another holder after all.
func (r *Reconciler) carve(ctx context.Context, pool *v1.BCSNetPool, p ipam.Pool) (carving, error) {
	if p.BlockSize > 0 && p.Plan.Subnet.IsValid() {
		return r.handToBlocks(pool, p), nil
	}
	have := r.Index.Leases.StillCarved(p.Name)
	c := carving{carved: rangesOf(have)}
	if p.Parent == "" || p.Block || !p.Valid() {
		r.forgetWithheld(p.Name)
		return c, nil
	}
	open := ipaddr.Subtract(p.Plan.Usable, have)
	if len(open.Ranges()) == 0 {
		r.forgetWithheld(p.Name)
		return c, nil
	}
	now := r.Leases.Now()
	rest := handOver - r.withheldFor(pool, open)
	if lost := r.Index.Pools.Rebuilding(p.Parent); lost != "" {
		c.waiting = fmt.Sprintf("leases of pool %s were lost: it is not known %s who has its addresses", p.Parent, lost)
		c.again = handOver
		return c, nil
	}
	obstacles, cooled := r.Index.Leases.Obstacles(p.Name, open, now)
	if len(obstacles) == 0 && rest <= 0 {
		var err error
		if obstacles, cooled, err = r.storedObstacles(ctx, p, open, now); err != nil {
			return c, err
		}
		if len(obstacles) == 0 {
			c.carved = rangesOf(p.Plan.Usable)
			return c, nil
		}
	}
	c.waiting = waitsForObstacles(p, obstacles)
	switch {
	case len(obstacles) == 0:
		c.again = rest
	case !cooled.IsZero():
		c.again = max(cooled.Sub(now), conditions.WriteDelay)
	default:
		c.again = fullPass // the index reports each release
	}
	return c, nil
}

// storedObstacles returns other pools' leases on some addresses, from the API server.
func (r *Reconciler) storedObstacles(
	ctx context.Context, p ipam.Pool, open *netipx.IPSet, now time.Time,
) (found []ipam.Obstacle, cooled time.Time, err error) {
	err = r.Leases.Each(ctx, "spec.pool!="+p.Name, func(l lease.Lease) error {
		if !open.Contains(l.Addr) {
			return nil
		}
		of, _ := r.Index.Pools.Get(l.Pool)
		if o, is := p.Obstacle(l, of.Cooldown, now); is {
			found = append(found, o)
			cooled = now.Add(conditions.WriteDelay) // the index learns of it from the watch: soon
		}
		return nil
	})
	return found, cooled, err
}

// handToBlocks decides whether a split pool may give its addresses to blocks. Replicas that know of the split no longer
// allocate them from the pool; a replica that does not know of it may still do so for as long as a request takes. Older
// leases stay: before a block is given to a namespace, the holders of its addresses are checked.
func (r *Reconciler) handToBlocks(pool *v1.BCSNetPool, p ipam.Pool) carving {
	if p.SplitLate() {
		if rest := handOver - r.withheldFor(pool, &netipx.IPSet{}); rest > 0 {
			return carving{waiting: "requests that began before are over in " + handOver.String() + " at most",
				again: rest}
		}
	}
	r.forgetWithheld(p.Name)
	return carving{carved: []string{ipaddr.FormatRange(netipx.RangeOfPrefix(p.Plan.Subnet))}}
}

// withheldFor returns the time for which this leader has seen a pool wait for exactly these addresses.
func (r *Reconciler) withheldFor(pool *v1.BCSNetPool, open *netipx.IPSet) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	w, ok := r.withheld[pool.Name]
	if !ok || w.uid != pool.UID || !w.set.Equal(open) {
		w = withheld{pool.UID, open, time.Now()}
		r.withheld[pool.Name] = w
	}
	return time.Since(w.since)
}

func (r *Reconciler) forgetWithheld(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.withheld, name)
}

// waitsForObstacles describes the reason why a group waits: other pools' leases on its addresses, or only the time.
func waitsForObstacles(p ipam.Pool, obstacles []ipam.Obstacle) string {
	if len(obstacles) == 0 {
		return fmt.Sprintf("pool %s no longer allocates them; requests that began before end in %s at most",
			p.Parent, handOver)
	}
	var names []string
	kept := false
	for _, o := range obstacles {
		names, kept = append(names, o.String()), kept || o.Cools.IsZero()
	}
	text := fmt.Sprintf("it waits for %s of pool %s in this range: %s", humanize.Plural(len(names), "address"),
		obstacles[0].Lease.Pool, humanize.List(names))
	if kept {
		text += fmt.Sprintf("; give them up: bcsnetctl ip release ADDRESS; "+
			"or leave them to pool %s: bcsnetctl pool remove-ip %s ADDRESS", obstacles[0].Lease.Pool, p.Name)
	}
	return text
}

// rangesOf formats the ranges of a set; nil for an empty one.
func rangesOf(s *netipx.IPSet) (all []string) {
	for _, r := range s.Ranges() {
		all = append(all, ipaddr.FormatRange(r))
	}
	return all
}
