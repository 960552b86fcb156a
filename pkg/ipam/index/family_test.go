package index

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"go4.org/netipx"
	"pgregory.net/rapid"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// Many groups of one parent come, change and go one by one, some of them beside each other and some not: the index has
// then what Arrange makes of all that are there, in every respect.
func TestGroupsOneByOne(t *testing.T) {
	var names []string
	for i := range 12 {
		names = append(names, fmt.Sprintf("eng-%02d", i))
	}
	var alone, together int
	rapid.Check(t, func(rt *rapid.T) {
		x := New()
		there := map[string]ipam.Pool{}
		set := func(p ipam.Pool) {
			there[p.Name] = p
			x.Pools.SetPool(p)
		}
		parent := func() ipam.Pool {
			p := part(t, "blue", fmt.Sprintf("10.0.0.10-10.0.0.%d", rapid.SampledFrom([]int{90, 90, 60}).Draw(rt, "end")))
			p.Plan.Gateway = netip.AddrFrom4([4]byte{10, 0, 0, byte(rapid.IntRange(1, 2).Draw(rt, "gateway"))})
			return p
		}
		set(parent())
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			switch name := rapid.SampledFrom(names).Draw(rt, "group"); rapid.IntRange(0, 9).Draw(rt, "step") {
			case 0:
				set(parent())
			case 1, 2:
				delete(there, name)
				x.Pools.RemovePool(name)
			default:
				set(anyGroup(t, rt, name))
			}
			if slices.ContainsFunc(x.Pools.All(), func(p ipam.Pool) bool { return strings.Contains(p.Problem, "is also in pool") }) {
				together++
			} else {
				alone++
			}
			compareArranged(rt, x, there)
		}
	})
	if alone == 0 || together == 0 {
		t.Errorf("%d steps without a clash, %d with one: both are to be seen", alone, together)
	}
}

// anyGroup draws a group of parent blue; one in a few has what another has, or what the parent lacks.
func anyGroup(t *testing.T, rt *rapid.T, name string) ipam.Pool {
	t.Helper()
	from := 10 + 4*rapid.IntRange(0, 20).Draw(rt, "from")
	size := rapid.SampledFrom([]int{0, 1, 2, 3, 3, 3, 5}).Draw(rt, "size")
	p := part(t, name, fmt.Sprintf("10.0.0.%d-10.0.0.%d", from, from+size), childOf("blue"), noHosts,
		created(rapid.IntRange(0, 2).Draw(rt, "age")))
	if rapid.IntRange(0, 9).Draw(rt, "bad") == 0 {
		p.Problem = "bad"
	}
	if rapid.IntRange(0, 9).Draw(rt, "away") == 0 {
		p.Parent = "red"
	}
	if rapid.Bool().Draw(rt, "carved") {
		p.Carved = mustSet(t, fmt.Sprintf("10.0.0.%d", from))
	}
	return p
}

func compareArranged(t *rapid.T, x *Index, there map[string]ipam.Pool) {
	text := func(p ipam.Pool) string {
		sets := ""
		for _, s := range []*netipx.IPSet{p.Plan.Usable, p.Plan.Single, p.Plan.Ranged, p.Withheld} {
			if s != nil {
				sets += ipaddr.FormatSet(s)
			}
			sets += "; "
		}
		return fmt.Sprint(sets, p.Problem, p.BadParent, p.Carving, p.ByParent, p.Plan.Gateway, p.Plan.Notes, p.Hosts)
	}
	for _, want := range ipam.Arrange(slices.Collect(maps.Values(there))) {
		got, ok := x.Pools.Get(want.Name)
		if !ok || text(got) != text(want) {
			t.Fatalf("pool %s:\n got %s\nwant %s", want.Name, text(got), text(want))
		}
	}
	for i := 10; i < 100; i++ {
		a, by := netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), ""
		for name := range there {
			if p, _ := x.Pools.Get(name); p.Usable().Contains(a) {
				if by != "" {
					t.Fatalf("%s is of %s and of %s", a, by, name)
				}
				by = name
			}
		}
		if got, _ := x.Pools.PoolOf(a); got != by {
			t.Fatalf("%s is served by %q, and is of %q", a, got, by)
		}
	}
}

// Groups come one by one to a parent that has many of them, and many leases: side by side, and with an address of the
// parent between any two.
func BenchmarkGroupsOneByOne(b *testing.B) {
	const n = 1000
	blue := pool(b, "blue", "10.0.0.0/16", []string{"10.0.0.0/16"})
	for _, apart := range []uint64{1, 8} {
		for _, leases := range []int{0, 20000} {
			b.Run(fmt.Sprintf("apart=%d/leases=%d", apart, leases), func(b *testing.B) {
				for b.Loop() {
					b.StopTimer()
					x := indexOf(blue)
					for i := range leases {
						x.take("blue", ipaddr.Advance(ip("10.0.64.0"), uint64(i)).String())
					}
					groups := make([]ipam.Pool, 0, n)
					for i := range uint64(n) {
						addr := ipaddr.Advance(ip("10.0.1.0"), i*apart).String()
						groups = append(groups, pool(b, "eng-"+addr, "10.0.0.0/16", []string{addr}, childOf("blue"), noHosts))
					}
					b.StartTimer()
					began := time.Now()
					for _, g := range groups {
						x.Pools.SetPool(g)
					}
					b.ReportMetric(float64(time.Since(began).Microseconds())/n, "µs/group")
				}
			})
		}
	}
}
