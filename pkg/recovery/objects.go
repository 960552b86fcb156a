package recovery

import (
	"context"
	"iter"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// ObjectOf returns the address that an IPAddress of Cluster API says its claim has of one of our pools; ok is false for
// any other.
func ObjectOf(u *unstructured.Unstructured) (o Object, ok bool) {
	spec := func(path ...string) string {
		text, _, _ := unstructured.NestedString(u.Object, append([]string{"spec"}, path...)...)
		return text
	}
	addr, err := netip.ParseAddr(spec("address"))
	owner := workload.OwnerObject{Kind: workload.OwnerClusterAPI, Namespace: u.GetNamespace(), Name: u.GetName()}
	return Object{Owner: owner.String(), Namespace: owner.Namespace, Addr: addr.Unmap()}, err == nil &&
		spec("claimRef", "name") == owner.Name && spec("poolRef", "kind") == "BCSNetPool" &&
		spec("poolRef", "apiGroup") == v1.GroupVersion.Group
}

// addObject plans the lease of an address that an object says it has, if nobody holds it, and the object holds no other
// one of the family. Of two objects that say so of one address, the first gets it.
func (m *maker) addObject(o Object) {
	pool, ok := m.Index.Pools.OwnerOf(o.Addr)
	if !ok || m.Lost == nil || !m.Lost(m.Index.Pools.CountedAs(pool)) {
		return
	}
	conflict := func(cause string) {
		m.plan.Conflicts = append(m.plan.Conflicts, Conflict{o.Addr, pool, o.Owner, cause})
	}
	current, _ := m.Index.Leases.Get(o.Addr)
	_, missing := m.Index.Leases.Missing(o.Addr)
	object, _ := workload.ParseOwner(o.Owner)
	holder := lease.Holder{
		Owner: o.Owner, Namespace: o.Namespace, IfName: object.IfName(o.Addr), StartedAt: m.Now,
	}
	switch {
	case missing || current.IsHeldBy(holder):
		return
	case current.State == lease.Active:
		conflict(current.Who() + " holds it")
		return
	case current.State == lease.Reserved:
		conflict("it is reserved")
		return
	}
	if owner := m.objects[o.Addr]; owner != "" {
		conflict(owner + " has " + o.Addr.String())
		return
	}
	has := m.Index.Leases.ByAttachment(holder)
	for _, l := range slices.Backward(m.plan.Objects) { // they come by their owners
		if l.Owner != o.Owner {
			break
		}
		has = append(has, l)
	}
	if i := slices.IndexFunc(has, func(l lease.Lease) bool {
		return l.State == lease.Active && l.Addr.Is4() == o.Addr.Is4()
	}); i >= 0 {
		conflict(o.Owner + " has " + has[i].Addr.String())
		return
	}
	l := current
	l.ExpiredTime = ""
	l.State, l.Params, l.Holder, l.Updated, l.HeldFinalizer = lease.Active, m.pools[pool].Params(), holder, m.Now, true
	m.plan.Objects, m.objects[o.Addr] = append(m.plan.Objects, l), o.Owner
}

// OfServices yields the addresses that Services of ours have by their status, each once for a namespace: one that is
// shared is that of the oldest.
func OfServices(all []corev1.Service) iter.Seq[Object] {
	type shared struct {
		namespace string
		addr      netip.Addr
	}
	return func(yield func(Object) bool) {
		ours, seen := []*corev1.Service(nil), map[shared]bool{}
		for i := range all {
			if workload.IsMarked(&all[i]) {
				ours = append(ours, &all[i])
			}
		}
		for _, s := range slices.SortedFunc(slices.Values(ours), workload.ByAge) {
			owner := workload.OwnerObject{Kind: workload.OwnerService, Namespace: s.Namespace, Name: s.Name}.String()
			for _, a := range workload.ShownBy(s) {
				at := shared{s.Namespace, a}
				if !seen[at] && !yield(Object{Owner: owner, Namespace: s.Namespace, Addr: a}) {
					return
				}
				seen[at] = true
			}
		}
	}
}

// Create stores a lease of a plan. If somebody has the address by now, or had it since the plan was made, it does
// nothing, and created is false. now is the resulting state of the address.
func Create(ctx context.Context, leases *store.Client, l lease.Lease) (now lease.Lease, created bool, err error) {
	planned, history := l.Version, l.History
	change := func(now lease.Lease) (lease.Lease, bool) {
		l.History = history
		if now.Version != planned && now.History != "" {
			l.History = now.History
			if last, ok := history.Last(); ok && last.Until.Unix() == l.Updated.Unix() {
				l.History = now.History.Add(last) // what the plan adds
			}
		}
		l.Version, l.Epoch, l.Foreign = now.Version, now.Epoch, now.Foreign
		return l, true
	}
	// A controller that knew of no holder may have created the object again. A client without an index reads the object
	// before it writes: the version tells whether it is the one that the plan is about.
	return leases.Update(ctx, l, change, func(now lease.Lease) bool {
		return !now.Deleting && (now.Version == planned && now.State != lease.Active ||
			now.State == lease.Available && !now.Updated.After(l.Updated))
	})
}
