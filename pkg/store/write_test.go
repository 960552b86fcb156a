package store

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/intercept"
)

// Every field of a lease is stored, by a create and by an update, and read back by a get and a list.
func TestStoredWhole(t *testing.T) {
	c, addr := connect(t, nil), subnet()
	six := netip.MustParseAddr("2001:db8::9")
	for what, want := range map[string]lease.Lease{
		"IPv4": {
			Addr: addr(9), State: lease.Active, Params: params,
			Holder: lease.Holder{
				Host: addr(1), ContainerID: "c2", IfName: "net1", Namespace: "default", PodName: "web-0", PodUID: "u",
				Superseded: []string{"c0", "c1"}, SetSize: 2, StartedAt: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC),
			},
			Retention: lease.Retention{Fixed: true, PodPrimaryKey: "default/web-0", ExpiredTime: "2026-01-02T03:04:05.6Z"},
			Updated:   time.Date(2026, 1, 2, 3, 4, 5, 7, time.UTC), HeldFinalizer: true,
		},
		"IPv6": {
			Addr: six, State: lease.Reserved, Params: lease.Params{
				Pool: "p6", Bits: 64, Gateway: netip.MustParseAddr("2001:db8::1"),
			},
			Holder:  lease.Holder{Host: netip.MustParseAddr("2001:db8:1::1"), Owner: "vm-7", IfName: "eth0"},
			Updated: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), HeldFinalizer: true,
		},
	} {
		t.Run(what, func(t *testing.T) {
			created := write(t, c, want)
			if created.Version == 0 {
				t.Fatal("no version came back")
			}
			want.Version = created.Version
			check := func(what string, got lease.Lease) {
				t.Helper()
				if diff := cmp.Diff(want, got, compareAddrs); diff != "" {
					t.Errorf("%s: -want +got:\n%s", what, diff)
				}
			}
			check("the answer of the create", created)
			check("get", read(t, c, want.Addr))
			want.ContainerID, want.Superseded = "c3", []string{"c1", "c2"}
			want.Version = write(t, c, want).Version
			if want.Version == created.Version {
				t.Fatal("the version stayed")
			}
			check("get after the update", read(t, c, want.Addr))
			listed, err := c.List(t.Context(), "status.host="+want.Host.String())
			if err != nil || len(listed) != 1 {
				t.Fatalf("listed: %+v, %v", listed, err)
			}
			check("list", listed[0])
		})
	}
}

// What stands in the way of a write, and what the write then leaves: the object of somebody else.
func TestCompareAndSwap(t *testing.T) {
	c, addr := connect(t, nil), subnet()
	remove := func(a netip.Addr) {
		if err := objects(t).Delete(t.Context(), ipaddr.ObjectName(a), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for what, test := range map[string]struct {
		n     int
		spoil func(a netip.Addr, first lease.Lease) // what somebody else does
		write func(first lease.Lease) lease.Lease
		left  string // the container that holds the address afterwards; "-" for no object
	}{
		"create, there is one": {
			n:     1,
			spoil: func(netip.Addr, lease.Lease) {},
			write: func(first lease.Lease) lease.Lease { return active(t, available(first.Addr), "late") },
			left:  "first",
		},
		"update, somebody was faster": {
			n: 2,
			spoil: func(_ netip.Addr, first lease.Lease) {
				released, _ := lease.Release(first, now(), lease.Change{})
				write(t, c, active(t, write(t, c, released), "faster"))
			},
			write: func(first lease.Lease) lease.Lease { first.ContainerID = "late"; return first },
			left:  "faster",
		},
		"update, the object is gone": {
			n: 3,
			spoil: func(a netip.Addr, first lease.Lease) {
				released, _ := lease.Release(first, now(), lease.Change{})
				write(t, c, released)
				remove(a)
			},
			write: func(first lease.Lease) lease.Lease { first.ContainerID = "late"; return first },
			left:  "-",
		},
		"update, the object was made anew": {
			n: 4,
			spoil: func(a netip.Addr, first lease.Lease) {
				released, _ := lease.Release(first, now(), lease.Change{})
				write(t, c, released)
				remove(a)
				write(t, c, active(t, available(a), "faster"))
			},
			write: func(first lease.Lease) lease.Lease { first.ContainerID = "late"; return first },
			left:  "faster",
		},
		"update with foreign fields, the object is gone": {
			n: 5,
			spoil: func(a netip.Addr, first lease.Lease) {
				released, _ := lease.Release(first, now(), lease.Change{})
				write(t, c, released)
				remove(a)
			},
			write: func(first lease.Lease) lease.Lease { first.Foreign, first.ContainerID = true, "late"; return first },
			left:  "-",
		},
		"update with foreign fields, somebody was faster": {
			n: 6,
			spoil: func(a netip.Addr, _ lease.Lease) {
				patch(t, a, `{"metadata":{"labels":{"a":"b"}},"status":{"containerID":"faster"}}`)
			},
			write: func(first lease.Lease) lease.Lease { first.Foreign, first.ContainerID = true, "late"; return first },
			left:  "faster",
		},
	} {
		t.Run(what, func(t *testing.T) {
			a := addr(test.n)
			first := write(t, c, active(t, available(a), "first"))
			test.spoil(a, first)
			if l, err := c.Write(t.Context(), test.write(first)); !errors.Is(err, ErrConflict) {
				t.Fatalf("written: %+v, %v; want ErrConflict", l, err)
			}
			switch left, err := c.Get(t.Context(), a); {
			case test.left == "-":
				if !errors.Is(err, ErrNotFound) {
					t.Errorf("there is %+v, %v", left, err)
				}
			case err != nil || left.ContainerID != test.left:
				t.Errorf("container %q holds it, %v; want %s", left.ContainerID, err, test.left)
			}
		})
	}
}

func TestDelete(t *testing.T) {
	index := index.New()
	c, addr := connectTo(t, config(t, nil), index), subnet()
	l := write(t, c, available(addr(1)))
	newer := write(t, c, lease.Lease{
		Addr: l.Addr, Version: l.Version, Params: lease.Params{Pool: "q", Bits: 24, Gateway: params.Gateway},
	})
	if err := c.Delete(t.Context(), l); !errors.Is(err, ErrConflict) {
		t.Fatalf("deleted by an old version: %v", err)
	}
	if got := read(t, c, l.Addr); got.Version != newer.Version {
		t.Fatalf("the object is %+v, want version %d", got, newer.Version)
	}
	if err := c.Delete(t.Context(), newer); err != nil {
		t.Fatal(err)
	}
	if _, ok := index.Leases.Get(l.Addr); ok {
		t.Error("the index still has what was deleted")
	}
	if err := c.Delete(t.Context(), newer); err != nil {
		t.Errorf("deleted again: %v", err)
	}
	if err := c.Delete(t.Context(), lease.Lease{Addr: addr(99), Params: l.Params, Version: 1}); err != nil {
		t.Errorf("deleted what never was: %v", err)
	}
	// The address can be given out at once: the marker of the deletion does not stop the new object.
	again := write(t, c, active(t, available(l.Addr), "c"))
	if got, ok := index.Leases.Get(l.Addr); !ok || got.Version != again.Version {
		t.Errorf("the index has %+v, want version %d", got, again.Version)
	}
}

// Finalizer and state change in one write each, so that nobody can delete the object of an address
// that is held.
func TestFinalizerComesAndGoesWithTheState(t *testing.T) {
	tap := &intercept.Tap{}
	c, addr := connect(t, tap), subnet()
	l := write(t, c, available(addr(1)))
	tap.Forget()
	held := write(t, c, active(t, l, "c"))
	if got := stored(t, l.Addr).GetFinalizers(); !cmp.Equal(got, []string{v1.HeldFinalizer}) || !held.HeldFinalizer {
		t.Errorf("finalizers of a held address: %v", got)
	}
	released, _ := lease.Release(held, now(), lease.Change{})
	free := write(t, c, released)
	if got := stored(t, l.Addr).GetFinalizers(); len(got) != 0 || free.HeldFinalizer {
		t.Errorf("finalizers of a free address: %v", got)
	}
	if n := tap.Count(intercept.Writes); n != 2 {
		t.Errorf("%d writes, want one for each change", n)
	}
	if n := tap.Count(intercept.Method(http.MethodGet)); n != 0 {
		t.Errorf("%d reads, want none", n)
	}
}

// An object that somebody deletes while its address is held stays until the address is released, and
// goes then.
func TestDeletedWhileHeld(t *testing.T) {
	c, _ := feeding(t, nil)
	addr := subnet()
	held := write(t, c, active(t, available(addr(1)), "c"))
	if err := objects(t).Delete(t.Context(), ipaddr.ObjectName(held.Addr), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	now1 := read(t, c, held.Addr)
	if !now1.Deleting || now1.State != lease.Active || now1.ContainerID != "c" {
		t.Fatalf("the object is %+v", now1)
	}
	controlplane.Until(t, "the index knows that the object is being deleted", func() bool {
		l, _ := c.index.Leases.Get(held.Addr)
		return l.Deleting
	})
	if _, ok := lease.Bind(now1, params, lease.Holder{ContainerID: "c", IfName: "eth0"}, lease.Retention{}, now()); ok {
		t.Error("the address could be bound again")
	}
	released, _ := lease.Release(now1, now(), lease.Change{})
	let, _ := lease.Release(write(t, c, released), now(), lease.Change{})
	write(t, c, let)
	if l, err := c.Get(t.Context(), held.Addr); !errors.Is(err, ErrNotFound) {
		t.Fatalf("the object is still there: %+v, %v", l, err)
	}
	controlplane.Until(t, "the index forgets the object", func() bool {
		_, ok := c.index.Leases.Get(held.Addr)
		return !ok
	})
	again := write(t, c, active(t, available(held.Addr), "d"))
	controlplane.Until(t, "the index has the new object", has(c.index, held.Addr, again.Version))
}

// Objects are small once they were updated: without managedFields, which would be more than a third of
// them. On a create the API server writes them whatever it is told.
func TestObjectsAreSmall(t *testing.T) {
	c, addr := connect(t, nil), subnet()
	held := active(t, write(t, c, available(addr(1))), "4a1f00000000000000000000000000000000000000000000000000000000000a")
	held.PodUID = "6f7b4c1e-0000-4000-8000-00000000000a"
	o := stored(t, write(t, c, held).Addr)
	if got := o.GetManagedFields(); len(got) != 0 {
		t.Errorf("managedFields %v", got)
	}
	body, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	if len(body) > 750 {
		t.Errorf("%d bytes: %s", len(body), body)
	}
	// Somebody else's change brings them back; our next write drops them again.
	l := write(t, c, available(addr(3)))
	patch(t, l.Addr, `{"metadata":{"labels":{"a":"b"}}}`)
	if got := stored(t, l.Addr).GetManagedFields(); len(got) == 0 {
		t.Fatal("the API server tracks no fields: this test proves nothing")
	}
	l = write(t, c, active(t, read(t, c, l.Addr), "c"))
	if got := stored(t, l.Addr).GetManagedFields(); len(got) != 0 {
		t.Errorf("after an update: managedFields %v", got)
	}
}

// Nothing that another release or a person added is lost when an address changes hands.
func TestForeignMetadataIsKept(t *testing.T) {
	tap := &intercept.Tap{}
	c, addr := connect(t, tap), subnet()
	l := write(t, c, available(addr(1)))
	patch(t, l.Addr, `{"metadata":{"labels":{"team":"a"},"annotations":{"note":"x"},"finalizers":["example.org/other"],
		"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"u"}]}}`)
	l = read(t, c, l.Addr)
	if !l.Foreign {
		t.Fatal("the lease is not marked as one with foreign fields")
	}
	tap.Forget()
	held := write(t, c, active(t, l, "c"))
	if !held.Foreign {
		t.Error("the mark is lost")
	}
	if r, w := tap.Count(intercept.Method(http.MethodGet)), tap.Count(intercept.Writes); r != 1 || w != 1 {
		t.Errorf("%d reads and %d writes, want one of each", r, w)
	}
	check := func(finalizers ...string) {
		t.Helper()
		o := stored(t, l.Addr)
		if o.GetLabels()["team"] != "a" || o.GetAnnotations()["note"] != "x" || len(o.GetOwnerReferences()) != 1 {
			t.Errorf("something was lost: %v", o)
		}
		if diff := cmp.Diff(finalizers, o.GetFinalizers()); diff != "" {
			t.Errorf("finalizers -want +got:\n%s", diff)
		}
	}
	check("example.org/other", v1.HeldFinalizer)
	released, _ := lease.Release(held, now(), lease.Change{})
	write(t, c, released)
	check("example.org/other")
	patch(t, l.Addr, `{"metadata":{"finalizers":null}}`)
}

// A deletion that another finalizer holds up shows as such, and the address is not handed out.
func TestDeleteHeldUpByAnotherFinalizer(t *testing.T) {
	c, _ := feeding(t, nil)
	addr := subnet()
	l := write(t, c, available(addr(1)))
	patch(t, l.Addr, `{"metadata":{"finalizers":["example.org/other"]}}`)
	l = read(t, c, l.Addr)
	if err := c.Delete(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	controlplane.Until(t, "the index knows that the object is being deleted", func() bool {
		l, ok := c.index.Leases.Get(l.Addr)
		return ok && l.Deleting
	})
	patch(t, l.Addr, `{"metadata":{"finalizers":null}}`)
	controlplane.Until(t, "the index forgets the object", func() bool {
		_, ok := c.index.Leases.Get(l.Addr)
		return !ok
	})
}

// A list comes in the order of the names, takes selectors, and stops when its reader says so.
func TestEach(t *testing.T) {
	c, addr := connect(t, nil), subnet()
	pool := "each-" + strconv.Itoa(int(addr(0).As4()[2]))
	for _, n := range []int{3, 1, 2} {
		l := available(addr(n))
		l.Pool = pool
		write(t, c, l)
	}
	all, err := c.List(t.Context(), "spec.pool="+pool)
	if err != nil {
		t.Fatal(err)
	}
	var got []netip.Addr
	for _, l := range all {
		got = append(got, l.Addr)
	}
	if diff := cmp.Diff([]netip.Addr{addr(1), addr(2), addr(3)}, got, compareAddrs); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	enough := errors.New("enough")
	n := 0
	if err := c.Each(t.Context(), "spec.pool="+pool, func(lease.Lease) error { n++; return enough }); !errors.Is(err,
		enough) || n != 1 {
		t.Errorf("read %d, %v", n, err)
	}
}

// A list that takes several pages has every object once, in the order of the names, also through selectors, and also
// when etcd forgets the state of its first page on the way.
func TestEachLabelledInPages(t *testing.T) {
	tap := &intercept.Tap{}
	c := connect(t, tap)
	var group errgroup.Group
	group.SetLimit(MaxWrites)
	pool, want := "", []string(nil)
	for range 3 {
		addr := subnet()
		if pool == "" {
			pool = "pages-" + strconv.Itoa(int(addr(0).As4()[2]))
		}
		for n := range 200 {
			l := available(addr(n))
			l.Pool = pool
			want = append(want, ipaddr.ObjectName(l.Addr))
			group.Go(func() error { _, err := c.Write(t.Context(), l); return err })
		}
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(want)
	each := func(what string) {
		t.Helper()
		var got []string
		err := c.EachLabelled(t.Context(), "spec.pool="+pool, "!shelf", func(l lease.Lease) error {
			got = append(got, ipaddr.ObjectName(l.Addr))
			return nil
		})
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if diff := cmp.Diff(want, got); diff != "" || len(got) <= firstPage {
			t.Errorf("%s: %d objects; -want +got:\n%s", what, len(got), diff)
		}
	}
	each("in pages")
	var once sync.Once
	tap.On(lists, func(r *http.Request, next http.RoundTripper) (resp *http.Response, err error) {
		if token := r.URL.Query().Get("continue"); token != "" {
			once.Do(func() { resp = expiredPage(t, r, token) })
		}
		if resp != nil {
			return resp, nil
		}
		return next.RoundTrip(r)
	})
	each("with a page whose state is gone")
	if once.Do(func() { t.Error("there was no second page") }); t.Failed() {
		return
	}
	if err := c.EachLabelled(t.Context(), "spec.pool="+pool, "shelf",
		func(lease.Lease) error { return errors.New("no") }); err != nil {
		t.Error(err)
	}
}

// expiredPage answers a page whose state etcd no longer has, as the API server does: with a token for the rest.
func expiredPage(t *testing.T, r *http.Request, token string) *http.Response {
	t.Helper()
	body, err := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, ListMeta: metav1.ListMeta{Continue: token},
		Status: metav1.StatusFailure, Code: http.StatusGone, Reason: metav1.StatusReasonExpired,
		Message: "the provided continue parameter is too old",
	})
	if err != nil {
		t.Error(err)
	}
	return intercept.Respond(r, http.StatusGone, body)
}

// A dry write is checked like any other, and changes nothing.
func TestDry(t *testing.T) {
	index := index.New()
	c, addr := connectTo(t, config(t, nil), index), subnet()
	dry := c.Dry()
	l := lease.Lease{Addr: addr(9), Params: params}
	if got, err := dry.Write(t.Context(), l); err != nil || got.Version != 0 {
		t.Fatalf("create: %+v, %v", got, err)
	}
	if _, err := c.Get(t.Context(), l.Addr); !errors.Is(err, ErrNotFound) {
		t.Fatalf("after the dry create: %v", err)
	}
	stored := write(t, c, l)
	if _, err := dry.Write(t.Context(), l); !errors.Is(err, ErrConflict) {
		t.Errorf("a dry create of what exists: %v", err)
	}
	next := stored
	next.State = lease.Reserved
	if _, err := dry.Write(t.Context(), next); err != nil {
		t.Errorf("update: %v", err)
	}
	if err := dry.Delete(t.Context(), stored); err != nil {
		t.Errorf("delete: %v", err)
	}
	if got := read(t, c, l.Addr); got.Version != stored.Version || got.State != lease.Available {
		t.Errorf("afterwards: %+v", got)
	}
	if known, _ := index.Leases.Get(l.Addr); known.Version != stored.Version || known.State != lease.Available {
		t.Errorf("the index was told of %+v", known)
	}
	next.Version++
	if _, err := dry.Write(t.Context(), next); !errors.Is(err, ErrConflict) {
		t.Errorf("a dry update of another version: %v", err)
	}
}
