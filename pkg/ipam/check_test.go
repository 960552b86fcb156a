package ipam

import (
	"net/netip"
)

// fataler is a test, or a run of a property.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// checkFreeSets looks at every address of every pool: one pool at most serves it, and it is free
// exactly when nothing occupies it.
func checkFreeSets(t fataler, x *Index) {
	t.Helper()
	served := map[netip.Addr]string{}
	for name, p := range x.pools {
		free := uint64(0)
		for i := range p.set.n {
			a := p.address(i)
			if other, twice := served[a]; twice {
				t.Fatalf("%s is served by %s and %s", a, other, name)
			}
			served[a] = name
			if !p.Plan.Usable.Contains(a) {
				t.Fatalf("%s is served by %s, which does not have it", a, name)
			}
			if q, n, ok := x.serving(a); !ok || q != p || n != i {
				t.Fatalf("%s is number %d of %s, and is looked for elsewhere", a, i, name)
			}
			next, ok := p.set.next(i)
			isFree := ok && next == i
			if isFree == x.occupied(a) {
				t.Fatalf("%s of pool %s: free is %v, occupied is %v", a, name, isFree, x.occupied(a))
			}
			if isFree {
				free++
			}
		}
		if p.set.free() != free {
			t.Fatalf("pool %s counts %d free, has %d", name, p.set.free(), free)
		}
	}
	for _, p := range x.pools {
		for _, r := range p.Plan.Usable.Ranges() {
			for a := r.From(); a.Compare(r.To()) <= 0; a = a.Next() {
				if served[a] == "" && !losesInCircle(x, a) {
					t.Fatalf("%s of pool %s is served by nobody", a, p.Name)
				}
			}
		}
	}
}

// losesInCircle says whether three or more pools share an address and each loses it to another. The
// rule looks at two pools at a time; such an address is served by nobody until a lease comes or goes.
func losesInCircle(x *Index, a netip.Addr) bool {
	sharing := 0
	for _, p := range x.pools {
		if p.Plan.Usable.Contains(a) {
			sharing++
		}
	}
	return sharing > 2
}
