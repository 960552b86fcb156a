package index

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// namespacesBudget is what a namespace may take in the index that fifty selectors look at, in bytes, with its labels
// and the lists of the pools that it is bound to.
const namespacesBudget = 1000

// choosers is an index with pools that choose namespaces by labels, each of them one team.
func choosers(t testing.TB, n int) *Index {
	t.Helper()
	x := New()
	for i := range n {
		x.Pools.SetPool(pool(t, fmt.Sprintf("pool-%d", i), fmt.Sprintf("10.%d.0.0/24", i), []string{fmt.Sprintf("10.%d.0.9", i)},
			func(p *ipam.Pool) { p.NamespaceSelector = oneLabel(fmt.Sprintf("team=%d", i)) }))
	}
	return x
}

// teamLabels are labels of a namespace as clusters have them, one of which says its team.
func teamLabels(i, team int) map[string]string {
	return map[string]string{
		"kubernetes.io/metadata.name": fmt.Sprintf("tenant-%d", i), "team": fmt.Sprint(team), "tier": "standard",
	}
}

// TestNamespacesInMemory: the index stays small with 10,000 namespaces and 50 selectors.
func TestNamespacesInMemory(t *testing.T) {
	const n, pools = 10000, 50
	used := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	x := choosers(t, pools)
	before := used()
	for i := range n {
		x.Pools.SetNamespace(fmt.Sprintf("tenant-%d", i), teamLabels(i, i%pools))
	}
	each := int64(used()-before) / n
	t.Logf("%d bytes a namespace", each)
	if each > namespacesBudget {
		t.Errorf("a namespace takes %d bytes, want at most %d", each, namespacesBudget)
	}
	if _, matched := x.Pools.NamespacesOf("pool-7"); matched != n/pools {
		t.Errorf("pool 7 is bound to %d namespaces", matched)
	}
}

// BenchmarkLabelChange is what a namespace costs that goes from one team to another, with 10,000 namespaces and 50
// selectors: the lock of the index is held meanwhile.
func BenchmarkLabelChange(b *testing.B) {
	const n, pools = 10000, 50
	x := choosers(b, pools)
	for i := range n {
		x.Pools.SetNamespace(fmt.Sprintf("tenant-%d", i), teamLabels(i, i%pools))
	}
	b.ResetTimer()
	for i := 0; b.Loop(); i++ {
		x.Pools.SetNamespace("tenant-7", teamLabels(7, i%pools))
	}
}

// BenchmarkSelectorChange is what a pool costs whose selector changes, with as many.
func BenchmarkSelectorChange(b *testing.B) {
	const n, pools = 10000, 50
	x := choosers(b, pools)
	for i := range n {
		x.Pools.SetNamespace(fmt.Sprintf("tenant-%d", i), teamLabels(i, i%pools))
	}
	p, _ := x.Pools.Get("pool-7")
	for i := 0; b.Loop(); i++ {
		p.NamespaceSelector = oneLabel(fmt.Sprintf("team=%d", i%pools))
		x.Pools.SetPool(p)
	}
}
