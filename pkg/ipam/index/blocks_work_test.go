package index

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/block"
)

// ownedBlocks is a pool of 65,536 blocks of eight addresses of which the first n are owned, each by its tenant.
func ownedBlocks(t testing.TB, n int) (x *Index, parent ipam.Pool) {
	t.Helper()
	parent = pool(t, "net", "10.0.0.0/8", []string{"10.0.0.0-10.7.255.255"}, splitInto(29))
	x = indexOf(parent)
	for i := range n {
		x.Pools.SetPool(tenantBlock(t, parent, i))
	}
	if c := x.Pools.Blocks(parent.Name); c.Owned != n {
		t.Fatalf("%+v, want %d owned", c, n)
	}
	return x, parent
}

func tenant(i int) string { return fmt.Sprintf("tenant-%d", i) }

func tenantBlock(t testing.TB, parent ipam.Pool, i int) ipam.Pool {
	t.Helper()
	first := netip.AddrFrom4([4]byte{10, byte(i >> 13), byte(i >> 5), byte(i << 3)})
	return aBlock(t, parent, netip.PrefixFrom(first, 29).String(), tenant(i))
}

// blockWork is what happens all the time in a pool that is split into blocks, by name.
func blockWork(t testing.TB, x *Index, parent ipam.Pool) map[string]func() {
	t.Helper()
	inBlock, in := block.Name(parent.Name, netip.MustParsePrefix("10.0.0.8/29")), inNamespace(tenant(1))
	another := tenantBlock(t, parent, block.Max-1)
	return map[string]func(){
		"an address of a block":       func() { pickAndDrop(t, x, want(in)) },
		"an address of a new block":   func() { pickAndDrop(t, x, want(inNamespace("newcomer"))) },
		"a block comes and goes":      func() { x.Pools.SetPool(another); x.Pools.RemovePool(another.Name) },
		"a lease comes and goes":      func() { x.take(inBlock, "10.0.0.9"); x.Feed.WatchedDelete(ip("10.0.0.9"), x.Feed.Seen()+1) },
		"who shares with a block":     func() { x.Pools.Relatives(inBlock); x.Pools.Overlaps(inBlock); x.Pools.BlocksOf(inBlock) },
		"counts of block and parent":  func() { x.Pools.Counts(inBlock, now); x.Pools.Counts(parent.Name, now) },
		"what the status has besides": func() { x.Pools.HostCount(parent.Name); x.Pools.Draining(parent.Name); x.Pools.Blocks(inBlock) },
	}
}

// TestBlocksAreNotWalked: what happens all the time costs the same whether 16 blocks are owned or nearly all that there
// may be. A walk over them would take a thousand times as long, and allocate where it collects them.
func TestBlocksAreNotWalked(t *testing.T) {
	type cost struct {
		allocations float64
		least       time.Duration
	}
	costs := map[string]map[int]cost{}
	for _, n := range []int{16, 60_000} {
		x, parent := ownedBlocks(t, n)
		for name, do := range blockWork(t, x, parent) {
			c := cost{allocations: testing.AllocsPerRun(50, do), least: time.Hour}
			for range 50 {
				began := time.Now()
				do()
				c.least = min(c.least, time.Since(began))
			}
			if costs[name] == nil {
				costs[name] = map[int]cost{}
			}
			costs[name][n] = c
		}
	}
	for name, by := range costs {
		few, many := by[16], by[60_000]
		if many.allocations > few.allocations+5 {
			t.Errorf("%s: %.0f allocations with 60,000 owned blocks, %.0f with 16", name, many.allocations, few.allocations)
		}
		if most := 10*few.least + 50*time.Microsecond; many.least > most {
			t.Errorf("%s: %s with 60,000 owned blocks, %s with 16", name, many.least, few.least)
		}
	}
}

// BenchmarkBlocks is the same, to look at.
func BenchmarkBlocks(b *testing.B) {
	for _, n := range []int{16, 4096, 60_000} {
		x, parent := ownedBlocks(b, n)
		for name, do := range blockWork(b, x, parent) {
			b.Run(fmt.Sprintf("%s/%d owned", name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					do()
				}
			})
		}
	}
}
