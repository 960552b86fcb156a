package memory

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/ledger"
)

// Check returns the first rule that the state breaks; nil if it keeps all of them. It visits every entry and every
// address that a pool serves: tests, whose pools are small, call it after each step.
func Check(x *State) error {
	if err := ledger.Check(&x.Leases); err != nil {
		return err
	}
	for name, of := range x.Members.ByPool {
		if len(of.Records) == 0 {
			return fmt.Errorf("ByPool keeps nothing of %s", name)
		}
	}
	if n := len(x.staleOverlaps); n > 0 {
		return fmt.Errorf("%d overlaps are not settled", n)
	}
	served := map[netip.Addr]*PoolState{}
	for _, p := range x.Pools.Roots {
		if err := checkSet(x, p, served); err != nil {
			return err
		}
	}
	return x.Pools.check()
}

// checkSet looks at each address that a pool serves, and adds it to those that any pool serves.
func checkSet(x *State, p *PoolState, served map[netip.Addr]*PoolState) error {
	free, set, cooling := uint64(0), p.Set, p.Cooldowns
	for i := range set.Len() {
		a := p.address(i)
		if other := served[a]; other != nil {
			return fmt.Errorf("%s is served by %s and %s", a, other.Name, p.Name)
		}
		served[a] = p
		if p.Withholds(a) {
			return fmt.Errorf("%s of pool %s is withheld from it, and in its free set", a, p.Name)
		}
		if !p.Plan.Usable.Contains(a) {
			return fmt.Errorf("%s is served by %s, which does not have it", a, p.Name)
		}
		if q, n, ok := x.Pools.SegmentOf(a); !ok || q != p || n != i {
			return fmt.Errorf("%s is number %d of %s, and is looked for elsewhere", a, i, p.Name)
		}
		by, _, _ := x.Pools.Serving(a)
		ends := by.CoolsUntil(x.Leases.Record(a))
		isFree, rests := set.After(i) == i, !x.occupied(a) && ends > x.Now
		if isFree == (x.occupied(a) || rests) || cooling.Set.IsTaken(i) != rests {
			return fmt.Errorf("%s of pool %s: free is %t, occupied is %t, rests is %t", a, p.Name, isFree,
				x.occupied(a), rests)
		}
		if rests && !slices.Contains(cooling.queue, cooldown{ends, i}) {
			return fmt.Errorf("%s of pool %s rests, and nothing ends that", a, p.Name)
		}
		if isFree {
			free++
		}
	}
	if n := uint64(len(cooling.queue)); n > 2*cooling.Set.Used()+64 {
		return fmt.Errorf("%d ends of rests are kept for %d addresses of pool %s", n, cooling.Set.Used(), p.Name)
	}
	if set.Free() != free {
		return fmt.Errorf("pool %s counts %d free, has %d", p.Name, set.Free(), free)
	}
	return nil
}

// check looks for lists that name a pool that is gone, and for lists without pools.
func (x *Catalogue) check() error {
	var named []*PoolState
	empty := 0
	add := func(pools []*PoolState) {
		if named = append(named, pools...); len(pools) == 0 {
			empty++
		}
	}
	for _, lists := range []map[string][]*PoolState{x.bound, x.Networks, x.owning, x.ordered} {
		for _, pools := range lists {
			add(pools)
		}
	}
	for _, t := range []*HostTable{&x.Unbound, &x.BoundHosts} {
		lengths := [2][129]int{}
		for _, pools := range t.hosts {
			add(pools)
		}
		for n, pools := range t.networks {
			lengths[ipaddr.FamilyOf(n.Addr())][n.Bits()]++
			add(pools)
		}
		if lengths != t.lengths {
			return fmt.Errorf("the lengths of host subnets are counted wrongly")
		}
	}
	for _, pools := range []map[*PoolState]struct{}{x.selecting, x.Namespaces.choosing} {
		for p := range pools {
			named = append(named, p)
		}
	}
	for _, s := range x.Segments {
		named = append(named, s.Pool)
	}
	for _, p := range slices.Concat(named, x.Open, x.Growing) {
		if x.ByName[p.Name] != p {
			return fmt.Errorf("pool %s is gone, and still listed", p.Name)
		}
	}
	if empty > 0 {
		return fmt.Errorf("%d lists have no pool", empty)
	}
	return nil
}
