package pool

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/controller/conditions"
	"github.com/bcsnet/bcsnet/pkg/controller/leadership"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// terminate carries out the deletion of a pool: its free objects are deleted at once, the pool itself after its last
// address is released. Another replica whose watch has not delivered the deletion yet may still allocate an address.
// Therefore the pool stays for the longest time that a request can take, and is deleted only after a list from the API
// server shows no held address.
func (r *Reconciler) terminate(ctx context.Context, pool *v1.BCSNetPool, p ipam.Pool) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(pool, v1.PoolFinalizer) {
		return reconcile.Result{}, nil
	}
	retired, err := r.retire(ctx, p, r.Index.Leases.ByPool(p.Name))
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("pool %s: %w", pool.Name, err)
	}
	all := r.Index.Leases.ByPool(p.Name)
	held, kept := activeByHost(all), keptByClaim(all)
	blocks := r.Index.Pools.BlocksOf(p.Name)
	groups := slices.DeleteFunc(r.Index.Pools.Children(p.Name),
		func(n string) bool { return slices.Contains(blocks, n) })
	lost := r.Index.Pools.Rebuilding(p.Name)
	waiting := waitsFor(held, kept, blocks, groups)
	if lost != "" {
		waiting = fmt.Sprintf("leases of the pool were lost: it is not known %s who has its addresses; %s", lost,
			waiting)
	}
	wait, err := r.publish(ctx, pool, p, view{waiting: waiting, carving: carving{carved: pool.Status.Carved}})
	if err != nil {
		return reconcile.Result{}, err
	}
	rest := allocator.MaxRequestTime + time.Second // the condition has whole seconds
	if draining := meta.FindStatusCondition(pool.Status.Conditions, v1.ConditionDraining); draining != nil {
		rest -= r.Leases.Now().Sub(draining.LastTransitionTime.Time)
	}
	switch {
	case retired > 0:
		return reconcile.Result{RequeueAfter: behindDelay}, nil
	case len(held) > 0 || len(kept) > 0 || len(groups) > 0:
		return reconcile.Result{RequeueAfter: leadership.Sooner(wait, fullPass)}, nil
	case len(blocks) > 0:
		return reconcile.Result{RequeueAfter: leadership.Sooner(wait, time.Second)}, nil
	case lost != "": // another pool that serves its addresses would allocate them
		return reconcile.Result{RequeueAfter: leadership.Sooner(wait, allocator.MaxRequestTime)}, nil
	case rest > 0:
		return reconcile.Result{RequeueAfter: leadership.Sooner(wait, rest)}, nil
	}
	return r.finish(ctx, pool, p)
}

// waitsFor describes what a pool that is being deleted waits for.
func waitsFor(held map[netip.Addr]int, kept map[string]int, blocks, groups []string) string {
	var parts []string
	if n := len(blocks); n > 0 {
		shown := blocks[:min(n, maxHosts)]
		parts = append(parts, fmt.Sprintf("%s %s taken back: %s", humanize.Plural(n, "block"), verb(n),
			strings.Join(shown, ", ")+more(n-len(shown))))
	}
	if n := len(groups); n > 0 {
		parts = append(parts, fmt.Sprintf("its %s %s deleted: %s; to delete one: bcsnetctl pool delete %s",
			humanize.OneOr(n, "child", "children"), humanize.OneOr(n, "is", "are"), humanize.List(groups), groups[0]))
	}
	if len(held) > 0 {
		parts = append(parts, fmt.Sprintf("%s in use %s released: %s; %s",
			humanize.Plural(total(held), "address"), verb(total(held)), perHost(held), howToRelease(held)))
	}
	if len(kept) > 0 {
		n, claims := 0, slices.Sorted(maps.Keys(kept))
		for _, c := range kept {
			n += c
		}
		shown := claims[:min(len(claims), maxHosts)]
		parts = append(parts,
			fmt.Sprintf("%s kept for claims %s given up: %s; to give up one: bcsnetctl ip release ADDRESS",
				humanize.Plural(n, "address"), verb(n), strings.Join(shown, ", ")+more(len(claims)-len(shown))))
	}
	if len(parts) == 0 {
		return "waiting for requests that began before the deletion"
	}
	return "the pool goes when " + strings.Join(parts, "; and when ")
}

// howToRelease returns the commands that free addresses: one for machines that are off, and one for owners, which are
// on no host.
func howToRelease(held map[netip.Addr]int) string {
	var ways []string
	_, owned := held[netip.Addr{}]
	if len(held) > 1 || !owned {
		ways = append(ways, "to release a host that is off: bcsnetctl release-host HOST")
	}
	if owned {
		ways = append(ways, "to release one that is on no host: bcsnetctl ip release ADDRESS")
	}
	return strings.Join(ways, "; ")
}

func more(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", n)
}

func verb(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// finish removes the finalizer of a pool, unless the API server still shows held addresses.
func (r *Reconciler) finish(ctx context.Context, pool *v1.BCSNetPool, p ipam.Pool) (reconcile.Result, error) {
	var stored []lease.Lease
	if err := r.Leases.Each(ctx, "spec.pool="+p.Name, func(l lease.Lease) error {
		stored = append(stored, l)
		return nil
	}); err != nil {
		return reconcile.Result{}, err
	}
	if len(activeByHost(stored)) > 0 || len(keptByClaim(stored)) > 0 {
		return reconcile.Result{RequeueAfter: conditions.WriteDelay}, nil // the watch delivers them to the index
	}
	// Any of them may have a holder if its removal fails: only an empty list is the end.
	if retired, err := r.retire(ctx, p, stored); err != nil || retired > 0 {
		return reconcile.Result{RequeueAfter: conditions.WriteDelay}, err
	}
	changed := pool.DeepCopy()
	controllerutil.RemoveFinalizer(changed, v1.PoolFinalizer)
	err := r.Client.Patch(ctx, changed, client.MergeFromWithOptions(pool, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: conditions.WriteDelay}, nil
	}
	return reconcile.Result{}, client.IgnoreNotFound(err)
}

// retire deletes the objects of a pool that nobody holds, and returns their number. Addresses that an operator set
// aside in this pool are deleted, too. A group leaves these to its parent, and also its cooling addresses, because the
// object is the only record of the cooldown.
func (r *Reconciler) retire(ctx context.Context, p ipam.Pool, all []lease.Lease) (retired int, err error) {
	var writes []write
	parent, hasParent := r.Index.Pools.Get(p.Parent)
	for _, l := range all {
		switch {
		case l.State == lease.Active || l.IsRetained() || l.Deleting && !l.HeldFinalizer:
		case hasParent && !l.Deleting && (l.State == lease.Reserved || !cooled(l, parent, r.Leases.Now())):
			if next, changed := lease.Refresh(l, parent.Params()); changed {
				writes = append(writes, write{lease: next})
			}
		case l.HeldFinalizer:
			if next, changed := lease.Free(l, r.Leases.Now(), lease.Change{}); changed {
				writes = append(writes, write{lease: next})
			}
		default:
			writes = append(writes, write{lease: l, remove: true})
		}
	}
	_, err = r.apply(ctx, p.Name, writes, passTime)
	return len(writes), err
}

// tidy deletes the free objects of a pool that no longer exists, for example after its deletion by force: no other pool
// would ever delete them. Addresses that another pool serves, such as the parent of a group, get the values of that
// pool.
func (r *Reconciler) tidy(ctx context.Context, name string) error {
	r.invalidate(name)
	r.forgetQuotas(name)
	if _, exists := r.Index.Pools.Get(name); exists {
		return nil // the pool is on its way into the cache, or its end into the index
	}
	var writes []write
	for _, l := range r.Index.Leases.ByPool(name) {
		if l.State != lease.Available || l.Deleting {
			continue
		}
		serving, _ := r.Index.Pools.PoolOf(l.Addr)
		if p, served := r.Index.Pools.Get(serving); !served {
			writes = append(writes, write{lease: l, remove: true})
		} else if next, changed := lease.Refresh(l, p.Params()); changed {
			writes = append(writes, write{lease: next})
		}
	}
	_, err := r.apply(ctx, name, writes, passTime)
	return err
}

func activeByHost(all []lease.Lease) map[netip.Addr]int {
	by := map[netip.Addr]int{}
	for _, l := range all {
		if l.State == lease.Active {
			by[l.Host]++
		}
	}
	return by
}

// keptByClaim returns the numbers of addresses that claims keep and nobody has.
func keptByClaim(all []lease.Lease) map[string]int {
	by := map[string]int{}
	for _, l := range all {
		if l.IsRetained() {
			by[l.Claim]++
		}
	}
	return by
}
