package allocator

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/block"
)

// TestGiveBlock: of two replicas that do not hear of each other's blocks, each gives other ones; a block that was named
// is refused to whom it does not belong.
func TestGiveBlock(t *testing.T) {
	s := newSite("0-31") // eight blocks of four
	s.pool.Spec.BlockSize = 30
	one, two := newReplica(t, s.pool), newReplica(t, s.pool)
	admin := cluster.AdminFor(t)
	t.Cleanup(func() {
		var all v1.BCSNetPoolList
		if err := admin.List(context.Background(), &all); err != nil {
			t.Error(err)
		}
		for i := range all.Items {
			p := &all.Items[i]
			if p.Spec.Parent != s.pool.Name {
				continue
			}
			p.Finalizers = nil
			if err := admin.Update(context.Background(), p); err != nil {
				t.Error(err)
			}
			if err := admin.Delete(context.Background(), p); client.IgnoreNotFound(err) != nil {
				t.Error(err)
			}
		}
	})
	var all sync.WaitGroup
	var mu sync.Mutex
	owners := map[string]string{}
	for i := range 8 {
		all.Go(func() {
			r, ns := []*replica{one, two}[i%2], fmt.Sprintf("tenant-%d", i)
			b, err := r.GiveBlock(t.Context(), s.pool.Name, ns, netip.Prefix{})
			mu.Lock()
			defer mu.Unlock()
			if err != nil || b.Owner() != ns || owners[b.Name] != "" {
				t.Errorf("%s was given %s, which %s has: %v", ns, b.Name, owners[b.Name], err)
			}
			owners[b.Name] = ns
		})
	}
	all.Wait()
	_, err := one.GiveBlock(t.Context(), s.pool.Name, "late", netip.Prefix{})
	refused(t, err, ipam.ReasonNoFreeBlock, "of its 8 blocks (/30), 8 are owned by namespaces")

	var o v1.BCSNetPool
	name := block.Name(s.pool.Name, netip.PrefixFrom(s.addr(8), 30))
	if err := admin.Get(t.Context(), client.ObjectKey{Name: name}, &o); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(o.Finalizers, []string{v1.PoolFinalizer}) || !slices.Equal(o.Spec.Namespaces, []string{owners[name]}) {
		t.Errorf("the block has finalizers %v and namespaces %v", o.Finalizers, o.Spec.Namespaces)
	}
	// A replica that has heard of no block asks for one that is another's, and for its own.
	three := newReplica(t, s.pool)
	_, err = three.GiveBlock(t.Context(), s.pool.Name, "late", netip.PrefixFrom(s.addr(8), 30))
	refused(t, err, ipam.ReasonNoFreeBlock, "is owned by namespace "+owners[name])
	four := newReplica(t, s.pool)
	if b, err := four.GiveBlock(t.Context(), s.pool.Name, owners[name], netip.PrefixFrom(s.addr(8), 30)); err != nil ||
		b.Name != name {
		t.Errorf("its own block: %s %v", b.Name, err)
	}
	// Who names the pool has an address of a block, and has it still when asking again.
	vm := s.byHand("vm")
	vm.Addrs = []netip.Addr{s.addr(9)}
	for range 2 {
		if got := four.one(vm); got != s.addr(9) || four.lease(got).Pool != name {
			t.Errorf("by hand: %s of pool %s", got, four.lease(got).Pool)
		}
	}
}
