package index

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// memoryBudget bounds the bytes of an address in the index, maps included.
const memoryBudget = 400

// historyBudget bounds the bytes that the earlier holders of an address add.
const historyBudget = 100

// secondBudget is what a second attachment may take on top.
const secondBudget = 900

// claimBudget is what an address of a claim may take on top: its terms, and its share of a claim of four.
const claimBudget = 220

// inClaims has all addresses in use by deployments of four pods that keep theirs.
func inClaims(leases []lease.Lease) []lease.Lease {
	for i := range leases {
		leases[i].Retention = lease.Retention{Claim: fmt.Sprintf("team-%02d/deploy-checkout-%d", i/4%40, i/4), Fixed: true}
	}
	return leases
}

// fleet makes n leases of a pool as a cluster has them: 10 hosts, 40 namespaces, pods of deployments.
// Its addresses follow one another, or, where there are many more than n, lie anywhere.
func fleet(p ipam.Pool, n int) []lease.Lease {
	random := rand.New(rand.NewPCG(1, 2))
	bytes := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		return b
	}
	ranges := p.Plan.Usable.Ranges()
	size := ipaddr.SizeOfSet(p.Plan.Usable)
	at := func(i uint64) netip.Addr {
		for _, r := range ranges {
			if n := ipaddr.Size(r); i >= n {
				i -= n
				continue
			}
			return ipaddr.Advance(r.From(), i)
		}
		return netip.Addr{}
	}
	taken := map[netip.Addr]bool{}
	address := func(i int) netip.Addr {
		a := at(uint64(i))
		for size > uint64(2*n) {
			if a = at(random.Uint64N(size)); !taken[a] {
				break
			}
		}
		taken[a] = true
		return a
	}
	leases := make([]lease.Lease, 0, n)
	given := p.Settings()
	given.VLAN, given.MTU, given.DNS = 120, 9000, &lease.DNS{Nameservers: []string{"10.0.0.2", "10.0.0.3"}}
	for i := range n {
		u := bytes(16)
		leases = append(leases, lease.Lease{
			Addr: address(i), Version: uint64(i + 1), State: lease.Active, Params: p.Params(),
			Holder: lease.Holder{
				Host: ipaddr.Advance(ip("192.168.0.1"), uint64(i%10)), ContainerID: hex.EncodeToString(bytes(32)),
				IfName:    lease.DefaultIfName,
				Namespace: fmt.Sprintf("team-%02d", i%40), PodName: fmt.Sprintf("checkout-services-%x-%x", bytes(5), bytes(3)),
				PodUID: fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:]), StartedAt: now,
				Given: lease.NewGiven(given),
			},
			Updated: now, HeldFinalizer: true,
		})
	}
	return leases
}

// withHistory has every address held by as many pods before as it remembers.
func withHistory(leases []lease.Lease) []lease.Lease {
	for i := range leases {
		l := &leases[i]
		for n := range lease.MaxHistory {
			earlier := *l
			earlier.PodName = fmt.Sprintf("checkout-services-%010x-%05x", i/10, 1000*i+n)
			l.History = l.History.Add(lease.Past{
				Holder: earlier.Who(), Host: earlier.Host, Since: earlier.Updated, Until: at(100 * n),
			})
		}
	}
	return leases
}

// migrating gives all addresses a second attachment, each with texts of its own, as when it was read from an object.
func migrating(leases []lease.Lease) {
	for i := range leases {
		h := leases[i].Holder
		h.ContainerID, h.PodName = "f"+h.ContainerID[1:], h.PodName+"-target"
		h.PodUID, h.Namespace, h.IfName = "f"+h.PodUID[1:], strings.Clone(h.Namespace), strings.Clone(h.IfName)
		fields, _ := h.Given.Fields()
		h.Given = lease.GivenOf(fields)
		h.Host = ipaddr.Advance(h.Host, 20)
		leases[i].Other = &h
	}
}

// released has all addresses given up.
func released(leases []lease.Lease) (out []lease.Lease) {
	for _, l := range leases {
		next, _ := lease.Release(l, now, lease.Change{})
		out = append(out, next)
	}
	return out
}

// bytesPerAddress measures the heap that an index of the leases takes. Strings count: they are copied,
// so that the index has its own. What then changes in the leases counts, too.
func bytesPerAddress(p ipam.Pool, leases []lease.Lease, then ...func([]lease.Lease)) float64 {
	n := len(leases)
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for _, change := range then {
		change(leases)
	}
	x := New()
	x.Pools.SetPool(p)
	x.Feed.Replace(leases, uint64(n))
	after := heap()
	runtime.KeepAlive(x)
	runtime.KeepAlive(leases)
	return (float64(after) - float64(before)) / float64(n)
}

// memoryPools are a pool of 65,536 addresses that are all held, and a /64 of which 65,536 are.
func memoryPools(t testing.TB) map[string]ipam.Pool {
	t.Helper()
	return map[string]ipam.Pool{
		"IPv4 full":   pool(t, "production-vlan-120", "10.0.0.0/15", []string{"10.0.0.0/16", "10.1.0.0/24"}),
		"IPv6 sparse": pool(t, "production-vlan-120", "2001:db8::/64", []string{"2001:db8::/64"}),
	}
}

func TestMemoryPerAddress(t *testing.T) {
	for name, p := range memoryPools(t) {
		leases := fleet(p, 65536)
		t.Run(name, func(t *testing.T) { within(t, bytesPerAddress(p, leases), memoryBudget) })
		if testing.Short() {
			continue // the others take a minute with the race detector: make test-all
		}
		t.Run(name+", cooling", func(t *testing.T) {
			cold := p
			cold.Cooldown = time.Hour
			within(t, bytesPerAddress(cold, released(leases)), memoryBudget)
		})
		t.Run(name+", of claims", func(t *testing.T) {
			within(t, bytesPerAddress(p, inClaims(slices.Clone(leases))), memoryBudget+claimBudget)
		})
		t.Run(name+", migrating", func(t *testing.T) {
			within(t, bytesPerAddress(p, slices.Clone(leases), migrating), memoryBudget+secondBudget)
		})
		t.Run(name+", with history", func(t *testing.T) {
			within(t, bytesPerAddress(p, withHistory(leases)),
				memoryBudget+historyBudget)
		})
	}
}

func within(t *testing.T, got, budget float64) {
	t.Helper()
	if got > budget {
		t.Errorf("the index takes %.0f bytes per address, the budget is %.0f", got, budget)
	} else {
		t.Logf("%.0f bytes per address", got)
	}
}

func BenchmarkMemoryPerAddress(b *testing.B) {
	for name, p := range memoryPools(b) {
		leases := fleet(p, 65536)
		b.Run(name, func(b *testing.B) {
			var got float64
			for b.Loop() {
				got = bytesPerAddress(p, leases)
			}
			b.ReportMetric(got, "B/address")
		})
	}
}
