package ipam

import (
	"fmt"
	"net/netip"
	"slices"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// Groups is what the children of a parent have of its addresses. It is made by carve, of all of them in their order.
// One that comes, changes or goes afterwards without sharing an address with another is put in its place here: nobody
// else's part changes then, and a look at all children is saved.
type Groups struct {
	// ranges are the addresses of the children that serve, in order, and who has them; sets has them by child.
	ranges []takenRange
	sets   map[string]*netipx.IPSet
	// lost are the addresses of children that do not serve because another one has some of them.
	lost map[string]*netipx.IPSet
	// Rest is what the parent has beside them.
	Rest remainder
}

type takenRange struct {
	netipx.IPRange
	pool string
}

// remainder is what a parent has beside its children: the sets of its plan.
type remainder struct{ Usable, Single, Ranged *netipx.IPSet }

// Of returns the parent with that.
func (r remainder) Of(parent Pool) Pool {
	parent.Plan.Usable, parent.Plan.Single, parent.Plan.Ranged = r.Usable, r.Single, r.Ranged
	return parent
}

// without returns what a parent has without the addresses of a set.
func (p Pool) without(set *netipx.IPSet) remainder {
	r := remainder{p.Plan.Usable, p.Plan.Single, p.Plan.Ranged}
	if len(set.Ranges()) == 0 {
		return r
	}
	return remainder{ipaddr.Subtract(r.Usable, set), ipaddr.Subtract(r.Single, set), ipaddr.Subtract(r.Ranged, set)}
}

// newGroups returns a family without children.
func newGroups() *Groups {
	return &Groups{sets: map[string]*netipx.IPSet{}, lost: map[string]*netipx.IPSet{}}
}

// fit gives a child what it takes from its parent, or the Problem that keeps it from serving. All that come before it
// are in the family.
func (f *Groups) fit(name string, parent *Pool, c Pool) Pool {
	if c.Valid() {
		c.Problem = parentProblem(name, parent, c)
		if c.Problem == "" {
			if other, shared := f.has(c.Plan.Usable); other != "" {
				c.Problem = fmt.Sprintf("%s is also in pool %s, a child of parent %s that comes first: children "+
					"never overlap", ipaddr.FormatRange(shared), other, name)
				f.lost[c.Name] = c.Plan.Usable
			}
		}
		c.BadParent = c.Problem != ""
	}
	if !c.Valid() {
		c.DropAddresses()
		return c
	}
	f.add(c)
	c.inherit(*parent)
	return c
}

// has returns the child that has addresses of a set already, and the first range of them; empty for none.
func (f *Groups) has(set *netipx.IPSet) (pool string, shared netipx.IPRange) {
	for _, r := range set.Ranges() {
		if i := f.after(r.From()); i < len(f.ranges) && f.ranges[i].From().Compare(r.To()) <= 0 {
			both := ipaddr.Intersect(ipaddr.SetOf(r), ipaddr.SetOf(f.ranges[i].IPRange))
			return f.ranges[i].pool, both.Ranges()[0]
		}
	}
	return "", shared
}

// add enters the addresses of a child that shares none with those before.
func (f *Groups) add(c Pool) {
	f.sets[c.Name] = c.Plan.Usable
	for _, r := range c.Plan.Usable.Ranges() {
		f.ranges = slices.Insert(f.ranges, f.after(r.From()), takenRange{r, c.Name})
	}
}

// remove takes a child out, and returns what it had.
func (f *Groups) remove(name string) (had *netipx.IPSet) {
	delete(f.lost, name)
	if had = f.sets[name]; had == nil {
		return &netipx.IPSet{}
	}
	delete(f.sets, name)
	for _, r := range had.Ranges() {
		i := f.after(r.From())
		f.ranges = slices.Delete(f.ranges, i, i+1)
	}
	return had
}

// after returns the number of the first range that ends at or after an address.
func (f *Groups) after(a netip.Addr) int {
	i, _ := slices.BinarySearchFunc(f.ranges, a, func(r takenRange, a netip.Addr) int { return r.To().Compare(a) })
	return i
}

// Replace puts a child in its place that has come, changed, or gone (nil), and returns it as it serves. alone reports
// whether that is all, the parent apart; else all children are to be looked at anew, in their order. changed reports
// whether the parent has other addresses now.
func (f *Groups) Replace(name string, parent Pool, child string, c *Pool) (fitted Pool, changed, alone bool) {
	had, has := f.remove(child), &netipx.IPSet{}
	if c != nil {
		if c.Valid() && parentProblem(name, &parent, *c) == "" {
			has = c.Plan.Usable
		}
		if other, _ := f.has(has); other != "" {
			return fitted, false, false
		}
		fitted = f.fit(name, &parent, *c)
	}
	for _, wants := range f.lost {
		if wants.Overlaps(had) || wants.Overlaps(has) {
			return fitted, false, false
		}
	}
	switch {
	case had.Equal(has):
		return fitted, false, true
	case len(had.Ranges()) == 0:
		f.Rest = f.Rest.Of(parent).without(has)
	default:
		f.Rest = parent.without(f.taken())
	}
	return fitted, true, true
}

// taken returns the addresses of all children that serve.
func (f *Groups) taken() *netipx.IPSet {
	all := make([]netipx.IPRange, 0, len(f.ranges))
	for _, r := range f.ranges {
		all = append(all, r.IPRange)
	}
	return ipaddr.SetOf(all...)
}
