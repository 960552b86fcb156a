package importer

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Return is what of a pool goes back to the other system.
type Return struct {
	Pool string
	// Held are the leases of pods to which the other system gave their address and still does; Free are addresses
	// that nobody has here, in the state that they have here.
	Held, Free []lease.Lease
}

// Addrs returns all addresses of the return.
func (r Return) Addrs() (all []netip.Addr) {
	for _, l := range slices.Concat(r.Held, r.Free) {
		all = append(all, l.Addr)
	}
	return all
}

// GivenBack reports whether an address is reserved because it was given back to the system.
func GivenBack(system string, l lease.Lease) bool {
	last, _ := l.History.Last()
	return asideBy(system, l) && last.Reason == system+givenBack
}

// Change returns the entry in the history of an address that is given back, or that comes again after that.
func (h Here) Change(verb string) lease.Change {
	return lease.Change{Verb: verb, By: h.By, Reason: h.System + givenBack}
}

// Hold returns the entry in the history of an address that is reserved because the other system still has it.
func (h Here) Hold(holder string) lease.Change {
	return lease.Change{Verb: lease.VerbReserve, By: h.By, Reason: h.System + stillHas + holder}
}

// Lift frees an address that was reserved because the other system still had it.
func (h Here) Lift(l lease.Lease) (lease.Lease, bool) {
	if !stillThere(h.System, l) || l.Deleting {
		return l, false
	}
	change := lease.Change{Verb: lease.VerbUnreserve, By: h.By, Reason: h.System + ": it no longer has it"}
	return lease.Free(l, h.Now, change)
}

// Returns decides what goes back to the other system. stay says which addresses do not, because the other system does
// not know the pods that have them. Of the free ones, Stock addresses of each pool remain.
func (c CutOver) Returns(h Here) (all []Return, stay []Staying) {
	const unknown = ", and the other system does not have it for this pod"
	s := newSight(c)
	nodes := map[string]string{}
	for _, p := range c.Pods {
		nodes[p.Namespace+"/"+p.Name] = p.Node
	}
	for _, pool := range slices.Sorted(maps.Keys(c.Withdrawn)) {
		r, free := Return{Pool: pool}, []lease.Lease(nil)
		for a := range ipaddr.All(Union(c.Withdrawn[pool], c.Torn[pool])) {
			l, _ := c.Index.Leases.Get(a)
			node, runs := nodes[l.Namespace+"/"+l.PodName]
			why := ""
			switch _, back := h.Back(l); {
			case l.State == lease.Active && c.Node != "" && (!runs || node != c.Node):
				continue
			case l.State == lease.Active && back && (s.mine[a] || s.named[a]):
				r.Held = append(r.Held, l)
			case l.State == lease.Active:
				why = l.Who() + " got it here" + unknown
			case l.IsRetained():
				why = "claim " + l.Claim + " keeps it here"
			case l.State == lease.Reserved && !asideBy(h.System, l):
				why = "it was set aside here"
			case len(s.reporters[a]) > 0 && !s.known[a]:
				p := s.reporters[a][0]
				why = "pod " + p.Namespace + "/" + p.Name + " reports it" + unknown
			case GivenBack(h.System, l): // an earlier run was killed
				r.Free = append(r.Free, l)
			default:
				free = append(free, l)
			}
			if why != "" {
				stay = append(stay, staying(l, why))
			}
		}
		if n := len(free); uint64(n) > c.Stock {
			r.Free = append(r.Free, free[:n-int(c.Stock)]...)
		}
		if len(r.Held)+len(r.Free) > 0 {
			all = append(all, r)
		}
	}
	return all, stay
}
