package services

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/controller/leadership"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// lookAgain is the time after which a Service is looked at again that is refused for what nobody can give up.
const lookAgain = 20 * time.Second

// look is one pass over a Service: what it asks for, and the Services that may share an address with it.
type look struct {
	*corev1.Service
	wish
	name   types.NamespacedName
	others []*corev1.Service
	// refused: what it asks for cannot be fulfilled. It keeps what it has, and gets nothing else.
	refused *ipam.Refusal
	// moving: it is to have another address than the one that it shares.
	moving bool
	// again is the time after which to look again; 0 for never.
	again time.Duration
}

// wait makes the Service be looked at again after a time, or sooner.
func (o *look) wait(again time.Duration) { o.again = leadership.Sooner(o.again, again) }

// give gives a Service what it lacks, shows that in its status, and gives back what it does not ask for any more.
func (r *Reconciler) give(ctx context.Context, name types.NamespacedName, s *corev1.Service) (time.Duration, error) {
	w, err := r.wishOf(ctx, s)
	refused, isRefusal := errors.AsType[*ipam.Refusal](err)
	if err != nil && !isRefusal {
		return 0, err
	}
	if again := r.mark(ctx, s); again > 0 {
		return again, nil
	}
	o := &look{Service: s, wish: w, name: name, refused: refused}
	others, done, err := r.shares(ctx, name, w.key)
	if err != nil {
		return 0, err
	}
	defer done()
	o.others = others
	has, refusals, err := r.obtainAll(ctx, o)
	if err != nil {
		return 0, err
	}
	if len(refusals) > 0 {
		o.wait(lookAgain)
		if len(o.families) > 1 {
			r.holders.Wait(name)
		}
		if o.required { // what is not whole is given back, unless it was shown before
			has = slices.DeleteFunc(has, func(a netip.Addr) bool { return !shows(s, a) })
		}
	}
	next, err := r.report(ctx, o, has, refusals)
	if err != nil || next > 0 { // what is shown is not given back
		return leadership.Sooner(o.again, next), err
	}
	return o.again, r.leave(ctx, name, has, o.others)
}

// obtainAll returns the addresses that a Service has of its families then, and why it lacks some. One that takes an
// address of each family, or none, takes none if it would lack one.
func (r *Reconciler) obtainAll(ctx context.Context, o *look) (has []netip.Addr, refusals []*ipam.Refusal, err error) {
	if o.refused == nil && o.required && len(o.families) > 1 && len(workload.ShownBy(o.Service)) == 0 {
		held := r.holders.Held(o.name)
		for _, f := range o.families {
			if slices.ContainsFunc(held, func(l lease.Lease) bool { return ipaddr.FamilyOf(l.Addr) == f }) {
				continue // an earlier leader gave it, and ended before it wrote the status
			}
			if why, err := r.lacks(ctx, o, f); err != nil || why != nil {
				return nil, []*ipam.Refusal{why}, err
			}
		}
	}
	for _, f := range o.families {
		a, why, err := r.obtain(ctx, o, f)
		if err != nil {
			return nil, nil, err
		}
		if a.IsValid() {
			has = append(has, a)
		}
		if why != nil {
			refusals = append(refusals, why)
		}
	}
	return has, refusals, nil
}

// report shows the addresses of a Service, and what it lacks.
func (r *Reconciler) report(
	ctx context.Context, o *look, has []netip.Addr, refusals []*ipam.Refusal,
) (time.Duration, error) {
	message := "it has " + inWords(has)
	if len(refusals) == 0 {
		return r.publish(ctx, o.Service, has, true, reasonGiven, message)
	}
	why := refusals[0].For(ipam.Reader{Namespace: o.Namespace})
	if !o.required && len(has) > 0 && len(has)+len(refusals) == len(o.families) { // one family is enough
		return r.publish(ctx, o.Service, has, true, reasonGiven, message+"; of the other family: "+why.Error())
	}
	return r.publish(ctx, o.Service, has, false, string(why.Reason), why.Error())
}

// request returns the request for an address of a family: of the pools, and with the address if one is asked for.
func (r *Reconciler) request(o *look, f ipaddr.Family) (allocator.Request, *ipam.Refusal) {
	q := allocator.Request{
		IfName: f.String(), Families: ipam.Families{Policy: ipam.SingleStack, Order: []ipaddr.Family{f}},
	}
	if a := o.addrs[f]; a.IsValid() {
		q.Addrs = []netip.Addr{a}
	}
	pools, refusal := r.poolsFor(o.wish, o.addrs[f])
	return from(q, pools), refusal
}

// from restricts a request to pools. One that names a single pool waits only for that one.
func from(q allocator.Request, pools []string) allocator.Request {
	if q.Pool, q.Pools = "", pools; len(pools) == 1 {
		q.Pool, q.Pools = pools[0], nil
	}
	return q
}

// lacks returns why a Service could not get the address of a family that it asks for; nil if it could.
func (r *Reconciler) lacks(ctx context.Context, o *look, f ipaddr.Family) (why *ipam.Refusal, err error) {
	l, why := r.join(o, f)
	if l.Addr.IsValid() {
		return nil, nil
	}
	q, unknown := r.request(o, f)
	if why = cmp.Or(why, unknown); why != nil {
		return why, nil
	}
	why, again, err := r.holders.WhyNot(ctx, o.name, q)
	o.wait(again)
	return why, err
}

// suits reports whether an address is one that a Service asks for.
func (r *Reconciler) suits(w wish, l lease.Lease) bool {
	if want := w.addrs[ipaddr.FamilyOf(l.Addr)]; want.IsValid() {
		return l.Addr == want
	}
	return !w.own || r.holders.Index.Pools.OfPools(l, w.pools)
}

// obtain gives a Service an address of a family: the one that it has, one that it shares, or a free one. It keeps an
// address that it does not ask for any more until it can have the other one.
func (r *Reconciler) obtain(
	ctx context.Context, o *look, f ipaddr.Family,
) (a netip.Addr, why *ipam.Refusal, err error) {
	o.moving = false
	var has lease.Lease
	var conflict *ipam.Refusal
	held := r.holders.Held(o.name)
	if i := slices.IndexFunc(held, func(l lease.Lease) bool { return ipaddr.FamilyOf(l.Addr) == f }); i >= 0 {
		has = held[i]
	} else {
		has, conflict = r.join(o, f)
	}
	switch {
	case o.refused != nil && (has.Owner == r.holders.Owner(o.name) || shows(o.Service, has.Addr)):
		return has.Addr, o.refused, nil
	case o.refused != nil:
		return a, o.refused, nil
	case conflict != nil:
		return a, conflict, nil
	case !has.Addr.IsValid():
		return r.take(ctx, o, f)
	case r.suits(o.wish, has):
		return has.Addr, nil, nil
	}
	o.moving = true
	if why, err := r.lacks(ctx, o, f); err != nil || why != nil {
		return has.Addr, why, err
	}
	if moved, err := r.moveFrom(ctx, o, has.Addr); err != nil || !moved {
		return has.Addr, nil, err
	}
	if other, _ := r.join(o, f); other.Addr.IsValid() {
		return other.Addr, nil, nil
	}
	return r.take(ctx, o, f)
}

// moveFrom gives back an address of a Service that is to have another one, after its status does not show it any more.
func (r *Reconciler) moveFrom(ctx context.Context, o *look, from netip.Addr) (moved bool, err error) {
	rest := slices.DeleteFunc(workload.ShownBy(o.Service), func(a netip.Addr) bool { return a == from })
	if shows(o.Service, from) {
		again, err := r.publish(ctx, o.Service, rest, false, reasonPending, "it is being given another address")
		if o.wait(again); err != nil || again > 0 {
			return false, err
		}
	}
	var keep []netip.Addr
	for _, l := range r.holders.Held(o.name) {
		if l.Addr != from {
			keep = append(keep, l.Addr)
		}
	}
	return true, r.leave(ctx, o.name, keep, o.others)
}

// take takes a free address for a Service: the one that its status shows, if that is possible, or another one.
func (r *Reconciler) take(
	ctx context.Context, o *look, f ipaddr.Family,
) (a netip.Addr, why *ipam.Refusal, err error) {
	var tries []allocator.Request
	q, why := r.request(o, f)
	for _, told := range workload.ShownBy(o.Service) {
		pool, known := r.holders.Index.Pools.OwnerOf(told)
		if ipaddr.FamilyOf(told) == f && len(q.Addrs) == 0 && known {
			pools := []string{pool}
			if o.own {
				pools = o.pools
			}
			first := from(q, pools)
			first.Addrs = []netip.Addr{told}
			tries = append(tries, first)
		}
	}
	if why == nil {
		tries = append(tries, q)
	}
	for _, q := range tries {
		if len(q.Addrs) == 0 && r.someArrive(o.name) {
			o.wait(notSynced)
			return a, ipam.Refuse(reasonPending, "Services that came with an address are served first"), nil
		}
		taken, refusal, again, err := r.holders.Take(ctx, o.name, q)
		if err != nil {
			return a, nil, fmt.Errorf("service %s: %w", o.name, err)
		}
		if refusal == nil {
			return taken[0].Addr, nil, nil
		}
		why = refusal
		o.wait(again)
	}
	return a, why, nil
}

// someArrive reports whether other Services show addresses of our pools that nobody holds, such as those that another
// controller gave them: no other Service must get these addresses. It waits for them for the first maxLook of a term.
func (r *Reconciler) someArrive(besides types.NamespacedName) bool {
	now := time.Now()
	if r.began.CompareAndSwap(0, now.UnixNano()); now.Sub(time.Unix(0, r.began.Load())) > maxLook {
		return false
	}
	unheld := func(a netip.Addr) bool {
		_, known := r.holders.Index.Pools.OwnerOf(a)
		l, _ := r.holders.Index.Leases.Get(a)
		return known && l.State != lease.Active
	}
	var list corev1.ServiceList
	return r.Cache.List(context.Background(), &list) == nil &&
		slices.ContainsFunc(list.Items, func(s corev1.Service) bool {
			return (s.Namespace != besides.Namespace || s.Name != besides.Name) && r.isOurs(&s) &&
				slices.ContainsFunc(workload.ShownBy(&s), unheld)
		})
}

// inWords writes addresses as kube-vip reads them.
func inWords(all []netip.Addr) string {
	var texts []string
	for _, a := range all {
		texts = append(texts, a.String())
	}
	return strings.Join(texts, ",")
}
