package store

import (
	"fmt"
	"net/netip"
	"runtime"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
)

const (
	benchRacks = 200
	benchNodes = 5000
)

// rackPool is the pool of a rack, for the nodes with its label.
func rackPool(i, rack int) ipam.Pool {
	return Pool(&v1.BCSNetPool{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("rack-%03d", i)},
		Spec: v1.BCSNetPoolSpec{
			Net: fmt.Sprintf("10.64.%d.0", i), Mask: 24, Gateway: fmt.Sprintf("10.64.%d.1", i),
			AvailableIPs: []string{fmt.Sprintf("10.64.%d.20-10.64.%d.199", i, i)},
			HostSelector: &metav1.LabelSelector{
				MatchLabels: map[string]string{"topology.example.com/rack": fmt.Sprint(rack)},
				MatchExpressions: []metav1.LabelSelectorRequirement{
					{Key: "example.com/spare", Operator: metav1.LabelSelectorOpDoesNotExist},
				},
			},
		},
	})
}

// poolOfAll is a pool for every node that is no spare.
func poolOfAll() ipam.Pool {
	return Pool(&v1.BCSNetPool{
		ObjectMeta: metav1.ObjectMeta{Name: "all"},
		Spec: v1.BCSNetPoolSpec{
			Net: "10.96.0.0", Mask: 16, Gateway: "10.96.0.1", AvailableIPs: []string{"10.96.0.0/16"},
			HostSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "example.com/spare", Operator: metav1.LabelSelectorOpDoesNotExist},
			}},
		},
	})
}

// rackNode is a node with as many labels as those of clouds have.
func rackNode(i, rack int) ipam.Node {
	addrs := []netip.Addr{netip.AddrFrom4([4]byte{10, 8, byte(i >> 8), byte(i)})}
	labels := map[string]string{"topology.example.com/rack": fmt.Sprint(rack), "kubernetes.io/hostname": fmt.Sprint("node-", i)}
	for n := range 18 {
		labels[fmt.Sprintf("example.com/label-%d", n)] = fmt.Sprint(i % (n + 1))
	}
	return ipam.Node{Addrs: addrs, Internal: addrs, Labels: labels}
}

// racks returns an index of nodes in racks, and of a pool for each rack where the pools are wanted, too.
func racks(pools int) *index.Index {
	x := index.New()
	for i := range benchNodes {
		x.Pools.SetNode(fmt.Sprint("node-", i), rackNode(i, i%benchRacks))
	}
	for i := range pools {
		x.Pools.SetPool(rackPool(i, i))
	}
	return x
}

// BenchmarkHostSelectors measures what a change of a node and of a pool costs beside 200 pools with host selectors and
// 5,000 nodes. Requests pay nothing: they look hosts up in a table. The lock of the index is held meanwhile.
func BenchmarkHostSelectors(b *testing.B) {
	b.Run("a node changes its rack", func(b *testing.B) {
		x, i := racks(benchRacks), 0
		for b.Loop() {
			i++
			n := i % benchNodes
			x.Pools.SetNode(fmt.Sprint("node-", n), rackNode(n, (n+i/benchNodes+1)%benchRacks))
		}
	})
	b.Run("a node says what it said", func(b *testing.B) {
		x, i := racks(benchRacks), 0
		for b.Loop() {
			i++
			n := i % benchNodes
			x.Pools.SetNode(fmt.Sprint("node-", n), rackNode(n, n%benchRacks))
		}
	})
	b.Run("a pool changes its selector", func(b *testing.B) {
		x, i := racks(benchRacks), 0
		for b.Loop() {
			i++
			x.Pools.SetPool(rackPool(i%benchRacks, (i%benchRacks+i/benchRacks+1)%benchRacks))
		}
	})
	b.Run("a start", func(b *testing.B) {
		for b.Loop() {
			racks(benchRacks)
		}
	})
	b.Run("a start that lists pools before nodes", func(b *testing.B) {
		for b.Loop() {
			x := index.New()
			for i := range benchRacks {
				x.Pools.SetPool(rackPool(i, i))
			}
			for i := range benchNodes {
				x.Pools.SetNode(fmt.Sprint("node-", i), rackNode(i, i%benchRacks))
			}
		}
	})
	b.Run("a node joins and leaves a pool of all", func(b *testing.B) {
		x, i := racks(0), 0
		x.Pools.SetPool(poolOfAll())
		for b.Loop() {
			i++
			n := rackNode(7, 7)
			if i%2 == 1 {
				n.Labels["example.com/spare"] = "yes"
			}
			x.Pools.SetNode("node-7", n)
		}
	})
	b.Run("memory", func(b *testing.B) {
		var with, without uint64
		for b.Loop() {
			without, with = heapOf(func() *index.Index { return racks(0) }), heapOf(func() *index.Index { return racks(benchRacks) })
		}
		b.ReportMetric(float64(without)/(1<<20), "MiB-of-nodes")
		b.ReportMetric(float64(with)/(1<<20), "MiB-with-pools")
	})
}

// heapOf returns what an index keeps in memory.
func heapOf(build func() *index.Index) uint64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	x := build()
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(x)
	return after.HeapAlloc - before.HeapAlloc
}
