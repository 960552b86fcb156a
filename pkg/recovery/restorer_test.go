package recovery

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// write stores a lease as it is given and waits until a replica knows it.
func (r *replica) write(t *testing.T, l lease.Lease) lease.Lease {
	t.Helper()
	stored, err := r.leases.Write(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	controlplane.Until(t, "the index has the lease", func() bool { return r.index.Feed.Seen() >= stored.Version })
	return stored
}

// strip takes the finalizers of an object away and deletes it, as somebody who knows no better does.
func (r *replica) strip(t *testing.T, a netip.Addr) {
	t.Helper()
	o := &v1.BCSNetIP{}
	o.Name = ipaddr.ObjectName(a)
	if err := r.admin.Delete(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if err := r.admin.Patch(t.Context(), o, client.RawPatch(types.MergePatchType,
		[]byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
}

func TestRestore(t *testing.T) {
	first, second := newReplica(t), newReplica(t)
	at := func(i byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 9, 0, i}) }
	updated := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	held := func(a netip.Addr, pod, uid string) lease.Lease {
		return lease.Lease{
			Addr: a, State: lease.Active, Params: lease.Params{Pool: "restore", Bits: 24, Gateway: at(254)},
			Holder: lease.Holder{
				Host: at(1), ContainerID: "c-" + pod, IfName: "eth0", Namespace: "default", PodName: pod, PodUID: uid,
				Superseded: []string{"c0"}, StartedAt: updated,
			},
			Updated: updated, HeldFinalizer: true,
			History: lease.NewHistory([]lease.Past{{Holder: "default/before", Since: updated, Until: updated}}),
		}
	}
	mine := first.newPod(t, "restore-mine", at(10))
	other := first.newPod(t, "restore-other", at(99))
	owned := held(at(14), "", "")
	owned.Owner, owned.Namespace = "vm-1", ""
	reserved := lease.Lease{
		Addr: at(15), State: lease.Reserved, Params: owned.Params, Updated: updated, HeldFinalizer: true,
	}
	// The API server may know nothing of the pod: its store was put back to a time before that was made, and it runs.
	for name, leased := range map[string]lease.Lease{
		"the pod has it":     held(at(10), mine.Name, string(mine.UID)),
		"the pod has others": held(at(11), other.Name, string(other.UID)),
		"another pod":        held(at(12), other.Name, "u-earlier"),
		"no pod":             held(at(13), "restore-nobody", "u"),
		"an owner's":         owned,
		"set aside":          reserved,
	} {
		t.Run(name, func(t *testing.T) {
			a := leased.Addr
			want := first.write(t, leased)
			controlplane.Until(t, "the second has it, too", func() bool { _, ok := second.index.Leases.Get(a); return ok })
			first.strip(t, a)
			for _, r := range []*replica{first, second} {
				controlplane.Until(t, "the lease is there again", func() bool {
					l, _ := r.index.Leases.Get(a)
					_, lost := r.index.Leases.Missing(a)
					return !lost && l.Version != want.Version && !l.Deleting && l.State != lease.Available
				})
			}
			got := first.lease(t, a)
			if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(lease.Lease{}, "Version", "Holder.BoundVersion"),
				cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
				t.Errorf("lease (-want +got):\n%s", diff)
			}
		})
	}
}

// A release of an address whose object was deleted by hand is no loss: the object goes, and does not come back.
func TestReleaseOfADeletedObject(t *testing.T) {
	r := newReplica(t)
	a := netip.MustParseAddr("10.9.1.10")
	pod := r.newPod(t, "released", a)
	l := r.write(t, lease.Lease{
		Addr: a, State: lease.Active, Params: lease.Params{
			Pool: "restore", Bits: 24, Gateway: netip.MustParseAddr("10.9.1.254"),
		}, HeldFinalizer: true,
		Holder: lease.Holder{
			ContainerID: "c1", IfName: "eth0", Namespace: "default", PodName: pod.Name, PodUID: string(pod.UID),
		},
	})
	o := &v1.BCSNetIP{}
	o.Name = ipaddr.ObjectName(a)
	if err := r.admin.Delete(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	controlplane.Until(t, "the index knows", func() bool { l, _ = r.index.Leases.Get(a); return l.Deleting })
	next, _ := lease.Release(l, r.leases.Now(), lease.Change{Verb: "release", By: "ops"})
	r.write(t, next)
	controlplane.Until(t, "the object goes", func() bool { _, exists := r.index.Leases.Get(a); return !exists })
	if l, lost := r.index.Leases.Missing(a); lost {
		t.Errorf("%s counts as lost", l.Addr)
	}
	if l := r.lease(t, a); l.Version != 0 {
		t.Errorf("there is an object: %+v", l)
	}
}

// The object of an address that a claim keeps comes again when somebody deletes it: as it was, and for its pod alone.
func TestDeletedObjectOfAKeptAddress(t *testing.T) {
	r := newReplica(t)
	a := netip.MustParseAddr("10.9.2.10")
	sticky := lease.Retention{Claim: "default/web", PodPrimaryKey: "web-0", Fixed: true}
	l := r.write(t, lease.Lease{
		Addr: a, State: lease.Reserved, Params: lease.Params{
			Pool: "restore", Bits: 24, Gateway: netip.MustParseAddr("10.9.2.254"),
		}, HeldFinalizer: true,
		Holder: lease.Holder{IfName: "eth0", Namespace: "default", PodName: "web-0"}, Retention: sticky,
		Updated: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC),
	})
	o := &v1.BCSNetIP{}
	o.Name = ipaddr.ObjectName(a)
	if err := r.admin.Delete(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	var got lease.Lease
	controlplane.Until(t, "the object is another one", func() bool {
		got, _ = r.index.Leases.Get(a)
		return got.Version > l.Version && !got.Deleting && got.State == lease.Reserved && got.HeldFinalizer
	})
	got = r.lease(t, a)
	if got.Retention != sticky || got.PodName != "web-0" || !got.Updated.Equal(l.Updated) {
		t.Errorf("restored: %+v", got)
	}
}
