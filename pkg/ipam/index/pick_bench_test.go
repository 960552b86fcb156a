package index

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// benchPool is a pool of 256 or 65,536 addresses that is tried first.
func benchPool(t testing.TB, size int, options ...option) ipam.Pool {
	t.Helper()
	entries := map[int][]string{256: {"10.0.4.0/24"}, 65536: {"10.1.0.0/16"}}[size]
	return pool(t, "first", "10.0.0.0/14", entries, append(options, priority(1))...)
}

// benchIndex holds the pool, filled in one run from its start, and others of the same host of one address each.
func benchIndex(t testing.TB, p ipam.Pool, filled, pools int) *Index {
	t.Helper()
	x := New()
	x.Pools.SetPool(p)
	for i := range pools - 1 {
		x.Pools.SetPool(pool(t, fmt.Sprintf("other-%04d", i), fmt.Sprintf("10.%d.%d.0/24", 64+i/256, i%256),
			[]string{fmt.Sprintf("10.%d.%d.9", 64+i/256, i%256)}))
	}
	x.Feed.Replace(fleet(p, filled), uint64(filled))
	return x
}

// pickAndDrop is one request without its write.
func pickAndDrop(t testing.TB, x *Index, w ipam.PickRequest) {
	t.Helper()
	picks, refusal := x.Pick(w, now)
	if refusal != nil {
		t.Fatal(refusal)
	}
	for _, p := range picks {
		x.Forget(p.Current.Addr)
	}
}

// BenchmarkPick is one request without its write: the cost must not grow with the pool, with what is
// taken, or with the number of pools.
func BenchmarkPick(b *testing.B) {
	for _, pools := range []int{1, 1000} {
		for _, size := range []int{256, 65536} {
			for name, filled := range map[string]int{"empty": 0, "90% full": size * 9 / 10} {
				b.Run(fmt.Sprintf("%d pools/%d addresses/%s", pools, size, name), func(b *testing.B) {
					x := benchIndex(b, benchPool(b, size), filled, pools)
					keys := make([]string, 4096)
					for i := range keys {
						keys[i] = fmt.Sprint("pod-", i)
					}
					b.ReportAllocs()
					i := 0
					for b.Loop() {
						i++
						pickAndDrop(b, x, want(func(w *ipam.PickRequest) { w.Key = keys[i%len(keys)] }))
					}
				})
			}
		}
	}
}

// BenchmarkPickNetwork is the same for both families, from the last of many networks.
func BenchmarkPickNetwork(b *testing.B) {
	for _, networks := range []int{1, 500} {
		b.Run(fmt.Sprintf("%d networks", networks), func(b *testing.B) {
			x := New()
			for i := range networks {
				net := network(fmt.Sprintf("net-%03d", i))
				x.Pools.SetPool(pool(b, fmt.Sprintf("v4-%03d", i), fmt.Sprintf("10.%d.%d.0/24", i/256, i%256),
					[]string{fmt.Sprintf("10.%d.%d.0/24", i/256, i%256)}, net))
				x.Pools.SetPool(pool(b, fmt.Sprintf("v6-%03d", i), fmt.Sprintf("2001:db8:%x::/64", i),
					[]string{fmt.Sprintf("2001:db8:%x::/64", i)}, net))
			}
			w := want(ofNetwork(fmt.Sprintf("net-%03d", networks-1)))
			b.ReportAllocs()
			for b.Loop() {
				pickAndDrop(b, x, w)
			}
		})
	}
}

// BenchmarkSetPool is the cost of a pool that comes and goes, beside many others of its subnet.
func BenchmarkSetPool(b *testing.B) {
	for _, pools := range []int{1, 1000} {
		b.Run(fmt.Sprintf("%d pools", pools), func(b *testing.B) {
			x := New()
			for i := range pools {
				entry := fmt.Sprintf("10.%d.%d.0/24", 64+i/256, i%256)
				x.Pools.SetPool(pool(b, fmt.Sprintf("other-%04d", i), "10.0.0.0/8", []string{entry}))
			}
			p := pool(b, "new", "10.0.0.0/8", []string{"10.1.0.0/16"})
			b.ReportAllocs()
			for b.Loop() {
				x.Pools.SetPool(p)
				x.Pools.RemovePool(p.Name)
			}
		})
	}
}

// BenchmarkReplace is what a restart costs with 65,536 leases.
func BenchmarkReplace(b *testing.B) {
	p := benchPool(b, 65536)
	leases := fleet(p, 65536)
	b.ReportAllocs()
	for b.Loop() {
		x := New()
		x.Pools.SetPool(p)
		x.Feed.Replace(leases, 65536)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/65536, "ns/lease")
}

// BenchmarkWatched is one event of a lease that changes.
func BenchmarkWatched(b *testing.B) {
	p := benchPool(b, 65536)
	leases := fleet(p, 60000)
	x := New()
	x.Pools.SetPool(p)
	x.Feed.Replace(leases, 65536)
	version := uint64(65536)
	b.ReportAllocs()
	for b.Loop() {
		version++
		l := leases[version%60000]
		l.Version = version
		x.Feed.Watched(l)
	}
}

// The cost of a pick at 65,536 addresses, 90 % full or cooling and among 1,000 pools, is within a generous factor
// of the cost at 256 free addresses in the only pool.
func TestPickCostDoesNotGrow(t *testing.T) {
	cost := func(x *Index) time.Duration {
		best := time.Duration(math.MaxInt64)
		for range 50 { // the quickest of many short runs: the machine has other things to do
			start := time.Now()
			for i := range 200 {
				pickAndDrop(t, x, want(func(w *ipam.PickRequest) { w.Key = fmt.Sprint(i) }))
			}
			best = min(best, time.Since(start))
		}
		return best
	}
	cold := benchIndex(t, benchPool(t, 65536, coolFor(time.Hour)), 0, 1000)
	cold.Feed.Replace(released(fleet(benchPool(t, 65536), 65536*9/10)), 65536)
	small := cost(benchIndex(t, benchPool(t, 256), 0, 1))
	large := cost(benchIndex(t, benchPool(t, 65536), 65536*9/10, 1000))
	if large > 5*small {
		t.Errorf("200 picks take %v in a small index and %v in a large one", small, large)
	}
	if cooling := cost(cold); cooling > 5*small {
		t.Errorf("200 picks take %v in a small index and %v in a large one that is cooling", small, cooling)
	}
}
