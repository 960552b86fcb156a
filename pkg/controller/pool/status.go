package pool

import (
	"context"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
	"time"

	"go4.org/netipx"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/controller/conditions"
	"github.com/bcsnet/bcsnet/pkg/explain"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// view has the findings of a reconciliation that are not in the index.
type view struct {
	// left is the number of objects that are still to be written; failure is the reason why that does not continue.
	left    int
	failure error
	// waiting is the reason why a deleted pool still exists; empty if the pool is not deleted.
	waiting string
	// rebuilding is the reason why the pool allocates nothing after its leases were lost; else empty.
	rebuilding string
	// matched is the number of nodes that match the host selector, selected the number of nodes that may draw because
	// of it.
	matched, selected int
	// carving is the progress of a group, children are the pool's children.
	carving  carving
	children []string
}

// publish writes the status if it has changed and it is the pool's turn, and creates an event for every condition that
// changed. again is the time after which to reconcile the pool if a write is still due; 0 otherwise.
func (r *Reconciler) publish(
	ctx context.Context, pool *v1.BCSNetPool, p ipam.Pool, v view,
) (again time.Duration, err error) {
	next := pool.DeepCopy()
	if c := meta.FindStatusCondition(next.Status.Conditions, v1.ConditionDraining); c != nil && v.waiting != "" &&
		c.Reason != v1.ReasonPoolDeleted {
		// Addresses that drained before are not a part of the deletion, whose Draining condition begins with it.
		meta.RemoveStatusCondition(&next.Status.Conditions, v1.ConditionDraining)
	}
	uses := r.Index.Pools.QuotaUse(p.Name)
	v.matched, v.selected = r.Index.Pools.Selection(p.Name)
	r.fill(next, p, v, uses)
	r.emitQuotaEvents(pool, uses)
	if wait := r.Budget.Ask(poolStatus(p.Name), conditions.UrgencyOfPool(&pool.Status, &next.Status)); wait > 0 ||
		equality.Semantic.DeepEqual(pool.Status, next.Status) {
		return wait, nil
	}
	next.Status.UpdateTime = store.FormatTime(r.Leases.Now())
	base := pool.DeepCopy()
	if base.Status.UpdateTime == "" { // a patch omits unchanged fields: write the zeros once
		base.Status.Capacity, base.Status.Available, base.Status.Cooling = -1, -1, -1
		base.Status.Active, base.Status.Reserved, base.Status.Hosts = -1, -1, -1
	}
	if err := r.Client.Status().Patch(ctx, next,
		client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})); err != nil {
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return conditions.WriteDelay, nil // a newer version is coming
		}
		return 0, fmt.Errorf("writing the status of pool %s: %w", pool.Name, err)
	}
	conditions.EmitTurned(r.Events, next, pool.Status.Conditions, next.Status.Conditions)
	*pool = *next
	return 0, nil
}

func (r *Reconciler) fill(pool *v1.BCSNetPool, p ipam.Pool, v view, uses []ipam.NamespaceUse) {
	counts := r.Index.Pools.Counts(p.Name, r.Leases.Now())
	r.mu.Lock()
	if delete(r.full, p.Name); counts.Free == 0 {
		r.full[p.Name] = struct{}{}
	}
	r.mu.Unlock()
	s := &pool.Status
	s.Capacity, s.Available = saturate(counts.Capacity), saturate(counts.Free)
	s.Active, s.Reserved, s.Cooling = int64(counts.Active), int64(counts.Reserved), saturate(counts.Cooling)
	s.Hosts = int64(r.Index.Pools.HostCount(p.Name))
	s.ObservedGeneration, s.Carved = pool.Generation, v.carving.carved
	if counts.Served == 0 { // else nobody needs this list of possibly thousands
		v.children = r.Index.Pools.Children(p.Name)
	}
	switch {
	case v.waiting != "":
		s.Status = v1.PoolTerminating
	case v.left > 0 && s.Status != v1.PoolNormal || v.failure != nil && s.Status == "":
		s.Status = v1.PoolInitializing
	default:
		s.Status = v1.PoolNormal
	}
	all := []metav1.Condition{
		r.readyCondition(pool, p, counts, v), exhaustedCondition(p, counts),
		overlapCondition(r.Index.Pools.Overlaps(p.Name)), drainingCondition(r.Index.Pools.Draining(p.Name), v),
	}
	if notable := v1.Notable(all); notable != "" && all[0].Status == metav1.ConditionTrue {
		all[0].Reason = notable
	}
	if n, why := r.Breaker.Waiting(p.Name); n > 0 ||
		meta.FindStatusCondition(s.Conditions, v1.ConditionCollectionPaused) != nil {
		all = append(all, collectionCondition(n, why))
	}
	all = append(all, quotaConditions(p, uses, s.Conditions)...)
	for _, c := range all {
		c.ObservedGeneration = pool.Generation
		c.LastTransitionTime = metav1.NewTime(r.Leases.Now())
		meta.SetStatusCondition(&s.Conditions, c)
	}
}

func saturate(n uint64) int64 { return int64(min(n, math.MaxInt64)) }

func (r *Reconciler) readyCondition(o *v1.BCSNetPool, p ipam.Pool, counts ipam.PoolCounts, v view) metav1.Condition {
	no := func(reason, format string, args ...any) metav1.Condition {
		return conditions.New(v1.ConditionReady, false, reason, format, args...)
	}
	switch {
	case v.waiting != "":
		return no(v1.ReasonTerminating, "the pool is being deleted and allocates nothing")
	case p.BadParent:
		return no(v1.ReasonInvalidParent, "%s; the pool allocates nothing, addresses in use stay", p.Problem)
	case !p.Valid():
		return no(v1.ReasonInvalidSpec, "%s; the pool allocates nothing, addresses in use stay", p.Problem)
	case len(o.Spec.AvailableIPs) == 0:
		return no(v1.ReasonNoAddresses, "availableIPs is empty; add addresses: bcsnetctl pool add-ip %s RANGE", p.Name)
	case counts.Served == 0 && len(v.children) > 0:
		return no(v1.ReasonNoAddresses,
			"all of its addresses are addresses of %s: %s; add addresses: bcsnetctl pool add-ip %s RANGE",
			humanize.OneOr(len(v.children), "its child", "its children"), humanize.List(v.children), p.Name)
	case counts.Served == 0:
		return no(
			v1.ReasonNoAddresses,
			"no address is left of availableIPs after network, broadcast, gateway, excludeIPs and what other pools "+
				"serve")
	case p.NoHosts() && p.HostSelector != nil:
		return no(v1.ReasonNoHosts, "no host may draw from the pool: %s; see: kubectl get nodes -l '%s'",
			noneSelected(p, v), p.HostSelector)
	case p.NoHosts():
		return no(v1.ReasonNoHosts, "no host may draw from the pool; add one: bcsnetctl pool add-host %s HOST", p.Name)
	case p.Cordoned:
		return no(v1.ReasonCordoned,
			"the pool is cordoned and allocates nothing; to end that: bcsnetctl pool uncordon %s", p.Name)
	case p.ByParent == explain.Cordoned:
		return no(v1.ReasonCordoned,
			"its parent %s is cordoned, and with it its children; to end that: bcsnetctl pool uncordon %s",
			p.Parent, p.Parent)
	case p.ByParent != explain.Serves:
		return no(v1.ReasonInvalidParent,
			"parent %s is being deleted, and waits for its children; the pool allocates nothing, "+
				"addresses in use stay", p.Parent)
	case p.Carving && p.BlockSize > 0:
		return no(v1.ReasonCarving,
			"the pool got its blockSize while it served, and gives no block yet: %s; addresses in "+
				"use stay, and a block in which others have some is given to nobody", v.carving.waiting)
	case p.Carving:
		return no(v1.ReasonCarving, "its addresses are being carved out of pool %s: %s", p.Parent, v.carving.waiting)
	case v.rebuilding != "":
		return no(
			v1.ReasonRebuilding,
			"leases of the pool were lost; it allocates nothing %s; see: bcsnetctl lease list --pool %s",
			v.rebuilding, p.Name)
	case v.failure != nil:
		return no(v1.ReasonObjectsFailing, "%d objects are still to be written: %v", v.left, v.failure)
	}
	message := fmt.Sprintf("%s for %s", humanize.Plural(counts.Served, "address"), humanize.Plural(o.Status.Hosts,
		"host"))
	if n := len(p.HostSubnets); n > 0 {
		message += fmt.Sprintf(", with the nodes in %s", p.HostSubnets)
	}
	notes := slices.Clip(p.Plan.Notes)
	switch {
	case p.HostSelector == nil:
	case len(p.Selected) == 0:
		notes = append(notes, noneSelected(p, v))
	default:
		message += fmt.Sprintf(", with %s of hostSelector %s", humanize.Plural(v.selected, "node"), p.HostSelector)
	}
	message += r.servedText(p)
	if v.carving.waiting != "" {
		message += fmt.Sprintf("; %s still being carved out of pool %s: %s", areOf(p.Withheld), p.Parent,
			v.carving.waiting)
	}
	if o.Spec.Materialize == v1.MaterializeAlways && ipaddr.SizeOfSet(p.Plan.Ranged) > v1.MaterializeAlwaysLimit {
		notes = append(
			notes, fmt.Sprintf("materialize Always is for at most %d addresses; objects appear when first used",
				v1.MaterializeAlwaysLimit))
	}
	return conditions.New(v1.ConditionReady, true, v1.ReasonReady, "%s",
		strings.Join(append([]string{message}, notes...), "; "))
}

// noneSelected returns the reason why the host selector of a pool selects no host.
func noneSelected(p ipam.Pool, v view) string {
	if v.matched > 0 {
		return fmt.Sprintf("hostSelector %s matches %s without an InternalIP, and no other", p.HostSelector,
			humanize.Plural(v.matched, "node"))
	}
	return fmt.Sprintf("no node matches hostSelector %s", p.HostSelector)
}

// areOf formats the first ranges of a set with the matching verb: "10.0.0.8-10.0.0.9 are".
func areOf(s *netipx.IPSet) string {
	return humanize.List(rangesOf(s)) + " " + humanize.OneOr(ipaddr.SizeOfSet(s), "is", "are")
}

func exhaustedCondition(p ipam.Pool, counts ipam.PoolCounts) metav1.Condition {
	switch {
	case counts.Served == 0:
		return conditions.New(v1.ConditionExhausted, false, v1.ReasonAddressesFree,
			"the pool has no addresses to run out of")
	case counts.Free > 0:
		return conditions.New(v1.ConditionExhausted, false, v1.ReasonAddressesFree, "addresses are free")
	case counts.Cooling > 0:
		return conditions.New(v1.ConditionExhausted, true, v1.ReasonNoAddressesFree,
			"0 of %d addresses free, %d cooling, the next is free at %s; add addresses: bcsnetctl pool add-ip %s RANGE",
			counts.Capacity, counts.Cooling, counts.NextFree.Add(time.Second-1).Format(time.RFC3339), p.Name)
	}
	return conditions.New(v1.ConditionExhausted, true, v1.ReasonNoAddressesFree,
		"0 of %d addresses free: see bcsnetctl ip list --pool %s; add addresses: bcsnetctl pool add-ip %s RANGE",
		counts.Capacity, p.Name, p.Name)
}

const (
	// maxShared bounds the length of a shared range in a message, in bytes; maxOverlaps bounds how many other pools a
	// message names.
	maxShared, maxOverlaps = 200, 10
)

func overlapCondition(overlaps []index.Overlap) metav1.Condition {
	if len(overlaps) == 0 {
		return conditions.New(v1.ConditionOverlap, false, v1.ReasonNoOverlap, "no address is in another pool")
	}
	var parts []string
	reason := v1.ReasonSharedOwned
	for i, o := range overlaps {
		who := "this pool"
		if !o.Served {
			who, reason = "pool "+o.Other, v1.ReasonSharedLost
		}
		if i >= maxOverlaps {
			continue
		}
		shared := ipaddr.FormatSet(o.Shared)
		if len(shared) > maxShared {
			shared = shared[:strings.LastIndex(shared[:maxShared], ",")+1] + " …"
		}
		parts = append(parts, fmt.Sprintf("%s also in pool %s, allocated by %s", shared, o.Other, who))
	}
	if more := len(overlaps) - maxOverlaps; more > 0 {
		parts = append(parts, "and with "+humanize.Plural(more, "more pool"))
	}
	return conditions.New(v1.ConditionOverlap, true, reason, "%s", strings.Join(parts, "; "))
}

func drainingCondition(draining map[netip.Addr]int, v view) metav1.Condition {
	switch {
	case v.waiting != "":
		return conditions.New(v1.ConditionDraining, true, v1.ReasonPoolDeleted, "%s", v.waiting)
	case len(draining) > 0:
		return conditions.New(v1.ConditionDraining, true, v1.ReasonAddressesRetire,
			"%s no longer in the pool and still in use: %s",
			humanize.Plural(total(draining), "address"), perHost(draining))
	default:
		return conditions.New(v1.ConditionDraining, false, v1.ReasonNothingToDrain,
			"no address in use is outside the pool")
	}
}

func collectionCondition(waiting int, why string) metav1.Condition {
	if waiting == 0 {
		return conditions.New(v1.ConditionCollectionPaused, false, v1.ReasonCollecting,
			"addresses of pods that are gone are taken back")
	}
	return conditions.New(v1.ConditionCollectionPaused, true, v1.ReasonTooManyAtOnce,
		"%s held for pods that are gone, too many at once to take back without %s; if they are gone indeed: bcsnetctl "+
			"doctor --fix --only leaks",
		humanize.Plural(waiting, "address"), why)
}

func total(by map[netip.Addr]int) (n int) {
	for _, c := range by {
		n += c
	}
	return n
}

// maxHosts bounds the hosts that a message names.
const maxHosts = 10

// perHost formats the numbers of addresses per host: "2 on 10.0.0.11, 1 on 10.0.0.12".
func perHost(by map[netip.Addr]int) string {
	var parts []string
	for i, h := range hostsOf(by) {
		if i == maxHosts {
			parts = append(parts, fmt.Sprintf("and on %d more hosts", len(by)-maxHosts))
			break
		}
		where := "no host"
		if h.IsValid() {
			where = h.String()
		}
		parts = append(parts, fmt.Sprintf("%d on %s", by[h], where))
	}
	return strings.Join(parts, ", ")
}
