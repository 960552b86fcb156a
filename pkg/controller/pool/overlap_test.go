package pool

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/controller/conditions"
	"github.com/bcsnet/bcsnet/pkg/controller/leadership"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// overlapping is a reconciler of two pools that have the same addresses, of which the older one holds some.
type overlapping struct {
	*Reconciler
	objects []*v1.BCSNetPool
	version uint64
}

func newOverlapping(t testing.TB, addresses int) *overlapping {
	t.Helper()
	index := index.New()
	leases, err := store.New(&rest.Config{Host: "http://127.0.0.1:1"}, index, store.NewClock(nil))
	if err != nil {
		t.Fatal(err)
	}
	leads := leading(t)
	o := &overlapping{Reconciler: &Reconciler{
		Config: Config{
			Index: index, Leases: leases, Terms: leads, Queue: NewQueue(leads, index.Pools),
			Budget: conditions.NewBudget(time.Now),
		},
		compared: map[string]comparison{}, full: map[string]struct{}{},
	}}
	for i, name := range []string{"older", "newer"} {
		p := &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{
			Name: name, Generation: 1, CreationTimestamp: metav1.Unix(int64(1_700_000_000+i), 0),
		}, Spec: v1.BCSNetPoolSpec{
			Net: "10.0.0.0", Mask: 8, Gateway: "10.255.255.254", Materialize: v1.MaterializeOnDemand,
			AvailableIPs: []string{fmt.Sprintf("10.0.1.0-%s", addressOf(addresses-1))},
		}}
		o.objects = append(o.objects, p)
		index.Pools.SetPool(store.Pool(p))
	}
	index.Feed.Subscribe(o.leaseChanged)
	for i := range addresses / 2 {
		o.change(i, lease.Active)
	}
	return o
}

// leading returns terms of which one is under way until the test ends.
func leading(tb testing.TB) *leadership.Terms {
	tb.Helper()
	leads, began := leadership.NewTerms(slog.New(slog.DiscardHandler)), make(chan struct{})
	leads.OnTerm(func(context.Context) error { close(began); return nil })
	go leads.Lead(tb.Context(), func() {})
	<-began
	return leads
}

func addressOf(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 0, byte(1 + i/256), byte(i)})
}

// change has the watch deliver a lease of the older pool.
func (o *overlapping) change(i int, s lease.State) {
	o.version++
	p, _ := o.Index.Pools.Get("older")
	o.Index.Feed.Watched(lease.Lease{Addr: addressOf(i), Params: p.Params(), State: s, Version: o.version})
}

// arranged reconciles the objects of both pools, and counts those that were looked at.
func (o *overlapping) arranged(t testing.TB) (looked int) {
	t.Helper()
	for _, object := range o.objects {
		p, _ := o.Index.Pools.Get(object.Name)
		if !o.isUpToDate(p, o.Index.Pools.ServedRevision(p.Name)) {
			looked++
		}
		if _, err := o.arrange(context.Background(), object, p); err != nil {
			t.Fatal(err)
		}
	}
	return looked
}

// TestLeasesOfOverlappingPools: the objects of pools that share addresses are compared with their plans when another
// pool serves what they share, not whenever somebody takes or gives back an address.
func TestLeasesOfOverlappingPools(t *testing.T) {
	o := newOverlapping(t, 64)
	if looked := o.arranged(t); looked != 2 {
		t.Fatalf("at first the objects of %d pools are looked at, want 2", looked)
	}
	for i := range 20 {
		o.change(i, lease.Available)
		if looked := o.arranged(t); looked != 0 {
			t.Fatalf("after release %d the objects of %d pools are looked at, want none", i, looked)
		}
	}
	p, _ := o.Index.Pools.Get("newer")
	p.Created, p.Generation = time.Unix(1_600_000_000, 0), 2
	o.Changed(p.Name, func() { o.Index.Pools.SetPool(p) })
	o.objects[1].Generation = 2
	o.arranged(t)
	for i := range 32 { // the last release leaves nothing that has the older pool serve what both have
		o.change(i, lease.Available)
	}
	if name, _ := o.Index.Pools.PoolOf(addressOf(0)); name != "newer" {
		t.Fatalf("pool %s serves what both have", name)
	}
	if looked := o.arranged(t); looked != 2 {
		t.Errorf("when another pool serves what both have the objects of %d are looked at, want 2", looked)
	}
}

// BenchmarkLeaseOfOverlappingPools is what a change of a lease costs when the pools that share it are reconciled after
// it.
func BenchmarkLeaseOfOverlappingPools(b *testing.B) {
	for _, addresses := range []int{256, 4096} {
		b.Run(fmt.Sprint(addresses), func(b *testing.B) {
			o := newOverlapping(b, addresses)
			o.arranged(b)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				o.change(addresses/4+i%(addresses/8), []lease.State{lease.Available, lease.Active}[i/(addresses/8)%2])
				o.arranged(b)
			}
		})
	}
}
