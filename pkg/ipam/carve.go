package ipam

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/explain"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// A pool with a parent is a group: a part of the parent's addresses, with hosts and namespaces of its own. What a spec
// says of a parent and its children contradicts itself easily, and objects come in any order. So what they serve is
// worked out of all of them together, in one place: replicas, commands and checks ask it, and agree.

// Arrange returns pools as they serve side by side, each in its place: parents without what their children have,
// children with what they take from their parents, or with the Problem that keeps them from serving.
func Arrange(all []Pool) []Pool {
	declared := make(map[string]*Pool, len(all))
	children := map[string][]Pool{}
	for i := range all {
		declared[all[i].Name] = &all[i]
		if p := all[i].Parent; p != "" {
			children[p] = append(children[p], all[i])
		}
	}
	arranged := map[string]Pool{}
	for name, of := range children {
		if p := declared[name]; p != nil && p.BlockSize > 0 { // blocks take their addresses from what the parent has
			for _, c := range strangers(*p, of) {
				arranged[c.Name] = c
			}
			continue
		}
		parent, carved, _ := Carve(name, declared[name], of)
		if parent != nil && parent.Parent == "" {
			arranged[name] = *parent
		}
		for _, c := range carved {
			arranged[c.Name] = c
		}
	}
	out := slices.Clone(all)
	for i := range out {
		if p, ok := arranged[out[i].Name]; ok {
			out[i] = p
		}
		out[i], _ = out[i].Divided()
	}
	return out
}

// Carve works out what a parent, nil if there is none of the name, and its children serve. The children come back
// in the order in which they have a right to addresses; the family knows what each of them has.
func Carve(name string, parent *Pool, children []Pool) (*Pool, []Pool, *Groups) {
	carved := slices.SortedFunc(slices.Values(children), byAge)
	f := newGroups()
	for i := range carved {
		carved[i] = f.fit(name, parent, carved[i])
	}
	if parent == nil {
		return nil, carved, f
	}
	f.Rest = parent.without(f.taken())
	rest := f.Rest.Of(*parent)
	return &rest, carved, f
}

// byAge orders children: the older has its addresses, then goes the name. One that is not stored yet is the youngest.
func byAge(a, b Pool) int {
	return cmp.Or(FalseFirst(a.Created.IsZero(), b.Created.IsZero()), a.Created.Compare(b.Created),
		cmp.Compare(a.Name, b.Name))
}

// parentProblem returns why a pool cannot be a child of the parent that it names, whatever others it has; empty if
// it can.
func parentProblem(name string, parent *Pool, c Pool) string {
	switch {
	case c.Name == name:
		return "a pool cannot be its own parent"
	case parent == nil:
		return fmt.Sprintf("parent %s does not exist", name)
	case parent.Parent != "":
		return fmt.Sprintf("parent %s has a parent itself, %s: a child cannot have children", name, parent.Parent)
	case !parent.Valid():
		return fmt.Sprintf("parent %s cannot be used: %s", name, parent.Problem)
	case c.InOtherNetwork(*parent):
		return fmt.Sprintf(
			"its network %s is not %s, the network of parent %s: a group is part of its parent's network",
			c.Network, parent.Network, name)
	case c.Plan.Subnet != parent.Plan.Subnet:
		return notSubset(c, parent.Plan.Subnet, fmt.Sprintf("its net and mask, %s, differ from parent %s",
			c.Plan.Subnet, name))
	}
	var outside []string
	for _, r := range c.Plan.Usable.Ranges() {
		if !parent.Plan.Usable.ContainsRange(r) {
			for _, o := range ipaddr.Subtract(ipaddr.SetOf(r), parent.Plan.Usable).Ranges() {
				outside = append(outside, ipaddr.FormatRange(o))
			}
		}
	}
	switch {
	case len(outside) > 0:
		return notSubset(c, parent.Plan.Subnet,
			fmt.Sprintf("parent %s does not have %s", name, explain.FirstFew(outside, "ranges")))
	case len(c.Plan.Usable.Ranges()) > 0 && c.Plan.Usable.Equal(parent.Plan.Usable):
		return notSubset(c, parent.Plan.Subnet, fmt.Sprintf("it has all addresses of parent %s", name))
	}
	return ""
}

// InOtherNetwork reports whether a group names another network than its parent, which it would be part of without.
func (p Pool) InOtherNetwork(parent Pool) bool {
	return p.Network != "" && parent.Network != "" && p.Network != parent.Network
}

// notSubset returns the message of Contiv for addresses that are not a strict subset of those of the parent, with the
// reason.
func notSubset(c Pool, network netip.Prefix, why string) string {
	return BadIPPool(formatFew(c.Plan.Usable), network) + ": " + why
}

// BadIPPool returns Contiv's words for addresses that a group cannot have.
func BadIPPool(addresses string, network netip.Prefix) string {
	return fmt.Sprintf("bad ip-pool %s, EPG ip-pool must be a subset of network %s", addresses, network)
}

// formatFew writes the first few ranges of a set.
func formatFew(s *netipx.IPSet) string {
	var all []string
	for _, r := range s.Ranges() {
		all = append(all, ipaddr.FormatRange(r))
	}
	return explain.FirstFew(all, "ranges")
}

// InheritHosts gives a group that names no hosts those of its parent.
func (p *Pool) InheritHosts(parent Pool) {
	if len(p.Hosts)+len(p.HostSubnets) == 0 && p.HostSelector == nil {
		p.Hosts, p.HostSubnets, p.HostSelector = parent.Hosts, parent.HostSubnets, parent.HostSelector
		p.Selected = parent.Selected
	}
}

// inherit gives a child what it takes from its parent.
func (p *Pool) inherit(parent Pool) {
	p.InheritHosts(parent)
	if p.Network == "" {
		p.Network = parent.Network
	}
	p.Order = cmp.Or(p.Order, parent.Order)
	if !p.Bound() {
		p.Namespaces, p.NamespaceSelector = parent.Namespaces, parent.NamespaceSelector
		p.NotDefault = p.NotDefault || parent.NotDefault
	}
	if note := p.otherGateway(parent); note != "" {
		p.Plan.Notes = append(slices.Clip(p.Plan.Notes), note)
	}
	p.Plan.Gateway = parent.Plan.Gateway
	switch {
	case parent.Terminating:
		p.ByParent = explain.Terminating
	case parent.Cordoned:
		p.ByParent = explain.Cordoned
	}
	p.Withheld = p.Plan.Usable
	if p.Carved != nil {
		p.Withheld = ipaddr.Subtract(p.Plan.Usable, p.Carved)
	}
	p.Carving = len(p.Withheld.Ranges()) > 0 && p.Withheld.Equal(p.Plan.Usable)
}

// otherGateway says that a child names another gateway than its parent has, which is used; empty for one that names
// none.
func (p Pool) otherGateway(parent Pool) string {
	switch own, used := p.Plan.Gateway, parent.Plan.Gateway; {
	case !own.IsValid(), own == used:
		return ""
	case !used.IsValid():
		return fmt.Sprintf("gateway %s is not used: parent %s has no gateway", own, parent.Name)
	default:
		return fmt.Sprintf("gateway %s is not used: parent %s has %s", own, parent.Name, used)
	}
}

// DropAddresses takes the addresses of a pool away that cannot be used.
func (p *Pool) DropAddresses() {
	none := &netipx.IPSet{}
	p.Plan.Usable, p.Plan.Single, p.Plan.Ranged = none, none, none
}
