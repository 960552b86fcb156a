package pool

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/controller/conditions"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

const (
	// parallelWrites bounds the objects of a pool that are written at the same time. This number keeps the API server
	// busy and leaves room for requests.
	parallelWrites = 16
	// passTime bounds one pass over a pool's objects, so that its status is updated soon.
	passTime = 800 * time.Millisecond
	// sweepKeep bounds the Available objects of a large pool. Further ones are deleted.
	sweepKeep = 4096
	// sweepAbove is the size above which an IPv4 pool counts as large; IPv6 pools always do.
	sweepAbove = 65536
)

// write is one change of an object of a pool.
type write struct {
	lease  lease.Lease
	remove bool
}

// arrange makes the objects of a pool match its plan, with one write for each, in parallel, for about a second. left is
// the number of objects that are still to be written.
func (r *Reconciler) arrange(ctx context.Context, o *v1.BCSNetPool, p ipam.Pool) (left int, err error) {
	served := r.Index.Pools.ServedRevision(p.Name)
	if r.isUpToDate(p, served) {
		return 0, nil
	}
	if !p.Valid() {
		return 0, nil // an invalid spec must not take anything away
	}
	// Later changes invalidate the pool again.
	r.mu.Lock()
	r.compared[p.Name] = comparison{p.Generation, served, time.Now()}
	r.mu.Unlock()
	writes := r.due(o, p, r.Leases.Now())
	done, err := r.apply(ctx, p.Name, writes, passTime)
	if left = len(writes) - done; left > 0 || err != nil {
		r.invalidate(p.Name)
	}
	return left, err
}

// isUpToDate reports whether the objects of a pool were found to match, for its present generation and for the
// addresses that it serves at this revision.
func (r *Reconciler) isUpToDate(p ipam.Pool, served uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, ok := r.compared[p.Name]
	return ok && s.generation == p.Generation && s.served == served && time.Since(s.at) < fullPass
}

// due returns the writes that a pool needs at a time.
func (r *Reconciler) due(o *v1.BCSNetPool, p ipam.Pool, now time.Time) []write {
	var out []write
	_, restoring := o.Annotations[v1.RestoringAnnotation]
	materialized, ranged := store.Materialized(o, p.Plan)
	for _, a := range materialized {
		l, exists := r.Index.Leases.Get(a)
		if serving, _ := r.Index.Pools.PoolOf(a); serving != p.Name {
			continue
		}
		switch {
		case !exists && restoring: // bcsnetctl restore makes those of the backup, with their history, and then says so
		case !exists && r.isMissing(a): // it will be restored
		case !exists:
			out = append(out, write{lease: lease.Lease{Addr: a, Params: p.Params()}})
		case l.Pool == p.Parent: // handled below, like those that need no object
		case l.Pool != p.Name && l.State == lease.Available:
			if next, changed := lease.Refresh(l, p.Params()); changed {
				out = append(out, write{lease: next})
			}
		}
	}
	out = append(out, r.inherited(p, now)...)
	var resting []lease.Lease
	for _, l := range r.Index.Leases.ByPool(p.Name) {
		switch serving, _ := r.Index.Pools.PoolOf(l.Addr); {
		case l.Deleting:
		case l.State == lease.Available && serving == "" && cooled(l, p, now):
			out = append(out, write{lease: l, remove: true})
		case serving != p.Name && p.Plan.Usable.Contains(l.Addr):
		default:
			if next, changed := lease.Refresh(l, p.Params()); changed && p.Plan.Subnet.Contains(l.Addr) {
				out = append(out, write{lease: next})
			} else if l.State == lease.Available && cooled(l, p, now) && !ranged && !p.Plan.Single.Contains(l.Addr) {
				resting = append(resting, l)
			}
		}
	}
	return append(out, sweep(p, resting)...)
}

// inherited returns the writes by which a group takes over its parent's objects without a holder, including those that
// were set aside. A cooling one stays the parent's, because it has the cooldown of the pool that it names.
func (r *Reconciler) inherited(p ipam.Pool, now time.Time) (out []write) {
	parent, ok := r.Index.Pools.Get(p.Parent)
	if !ok || p.Parent == "" {
		return nil
	}
	for _, l := range r.Index.Leases.ByPoolIn(parent.Name, p.Plan.Usable) {
		if serving, _ := r.Index.Pools.PoolOf(l.Addr); serving != p.Name || l.State == lease.Active || l.IsRetained() {
			continue
		}
		if _, is := p.Obstacle(l, parent.Cooldown, now); is {
			continue
		}
		if next, changed := lease.Refresh(l, p.Params()); changed {
			out = append(out, write{lease: next})
		}
	}
	return out
}

// cooled reports whether the object of a free address may be deleted: it is the only record of the address's cooldown.
func cooled(l lease.Lease, p ipam.Pool, now time.Time) bool {
	return !l.CoolsUntil(p.Cooldown).After(now)
}

func (r *Reconciler) isMissing(a netip.Addr) bool {
	_, lost := r.Index.Leases.Missing(a)
	return lost
}

// sweep returns, if a large pool keeps too many Available objects, the deletions of those that changed least recently.
func sweep(p ipam.Pool, resting []lease.Lease) []write {
	large := !p.Plan.Subnet.Addr().Is4() || ipaddr.SizeOfSet(p.Plan.Usable) > sweepAbove
	if !large || len(resting) <= sweepKeep {
		return nil
	}
	slices.SortFunc(resting, func(a, b lease.Lease) int { return a.Updated.Compare(b.Updated) })
	var out []write
	for _, l := range resting[:len(resting)-sweepKeep] {
		out = append(out, write{lease: l, remove: true})
	}
	return out
}

// apply performs writes in parallel until the time is over. A conflict is not an error: another writer was faster, and
// the watch delivers its change.
func (r *Reconciler) apply(
	ctx context.Context, pool string, writes []write, limit time.Duration,
) (done int, err error) {
	began := time.Now()
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(parallelWrites)
	for _, w := range writes {
		if time.Since(began) > limit {
			break
		}
		mu.Lock()
		failed := err != nil
		mu.Unlock()
		if failed {
			break
		}
		group.Go(func() error {
			e := r.write(ctx, pool, w)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case e == nil:
				done++
			case err == nil:
				err = e
			}
			return nil
		})
	}
	_ = group.Wait() // errors are in err
	return done, err
}

func (r *Reconciler) write(ctx context.Context, pool string, w write) error {
	var err error
	if w.remove {
		err = r.Leases.Delete(ctx, w.lease)
	} else {
		_, err = r.Leases.Write(ctx, w.lease)
	}
	if !errors.Is(err, store.ErrConflict) {
		return err
	}
	_ = r.Leases.Refetch(ctx, w.lease) // the watch delivers it if it cannot be read now
	r.invalidate(pool)
	r.Queue.Enqueue(pool, conditions.WriteDelay)
	return nil
}

// hostsOf lists the hosts with addresses, most addresses first.
func hostsOf(by map[netip.Addr]int) []netip.Addr {
	var hosts []netip.Addr
	for h := range by {
		hosts = append(hosts, h)
	}
	slices.SortFunc(hosts, func(a, b netip.Addr) int {
		if by[a] != by[b] {
			return by[b] - by[a]
		}
		return a.Compare(b)
	})
	return hosts
}
