package ipam

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/bcsnet/bcsnet/pkg/explain"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// FamilyPolicy says of how many families a request takes addresses, in the words of Kubernetes' Services.
type FamilyPolicy string

// Family policies.
const (
	// SingleStack takes one address.
	SingleStack FamilyPolicy = "SingleStack"
	// PreferDualStack takes one address of each family where it can, and else one.
	PreferDualStack FamilyPolicy = "PreferDualStack"
	// RequireDualStack takes one address of each family, or none.
	RequireDualStack FamilyPolicy = "RequireDualStack"
)

// Families is what a request says about families. The zero value says nothing: it takes one address of each family
// that the pools of a network have.
type Families struct {
	Policy FamilyPolicy
	// Order has no family, one or two. The first is that of a single address, and its address comes first in the
	// answer.
	Order []ipaddr.Family
}

// ParseFamilyPolicy reads a policy; nothing for none.
func ParseFamilyPolicy(text string) (FamilyPolicy, error) {
	switch p := FamilyPolicy(text); p {
	case "", SingleStack, PreferDualStack, RequireDualStack:
		return p, nil
	default:
		return "", errors.New(
			"there is no such policy; the policies are SingleStack, PreferDualStack and RequireDualStack")
	}
}

// ParseFamilies reads one or two families; none for none.
func ParseFamilies(names []string) (order []ipaddr.Family, err error) {
	if len(names) > 2 {
		return nil, fmt.Errorf("it names %d families: there are IPv4 and IPv6", len(names))
	}
	for _, name := range names {
		f := ipaddr.IPv4
		switch name {
		case ipaddr.IPv4.String():
		case ipaddr.IPv6.String():
			f = ipaddr.IPv6
		default:
			return nil, fmt.Errorf("%.20q is not a family: it is IPv4 or IPv6", name)
		}
		if slices.Contains(order, f) {
			return nil, fmt.Errorf("it names %s twice", f)
		}
		order = append(order, f)
	}
	return order, nil
}

// With adds what somebody else says about families; ok is false if the two contradict each other.
func (f Families) With(o Families) (both Families, ok bool) {
	if f.Policy != "" && o.Policy != "" && f.Policy != o.Policy ||
		len(f.Order) > 0 && len(o.Order) > 0 && !slices.Equal(f.Order, o.Order) {
		return f, false
	}
	if f.Policy == "" {
		f.Policy = o.Policy
	}
	if len(f.Order) == 0 {
		f.Order = o.Order
	}
	return f, true
}

// policy returns the policy. Families without one stand for themselves, as for a Service: one is a single stack, two
// are required.
func (f Families) policy() FamilyPolicy {
	switch {
	case f.Policy != "" || len(f.Order) == 0:
		return f.Policy
	case len(f.Order) == 1:
		return SingleStack
	default:
		return RequireDualStack
	}
}

// Single reports whether one address is taken.
func (f Families) Single() bool { return f.policy() == SingleStack }

// Required reports whether an address of each family is taken, or none.
func (f Families) Required() bool { return f.policy() == RequireDualStack }

// Wants reports whether an address of a family may be taken.
func (f Families) Wants(family ipaddr.Family) bool {
	return !f.Single() || len(f.Order) == 0 || f.Order[0] == family
}

// Admit returns an error if addresses asked for by name are not of the families.
func (f Families) Admit(addrs []netip.Addr) error {
	for _, a := range addrs {
		if !f.Wants(ipaddr.FamilyOf(a)) {
			return fmt.Errorf("%s is asked for, and %s", a, f)
		}
	}
	if f.Single() && len(addrs) > 1 {
		return fmt.Errorf("%d addresses are asked for, and %s", len(addrs), f)
	}
	return nil
}

// String writes what was said, as messages do: "ipFamilyPolicy SingleStack, ipFamilies IPv6".
func (f Families) String() string {
	var parts []string
	if f.Policy != "" {
		parts = append(parts, "ipFamilyPolicy "+string(f.Policy))
	}
	if len(f.Order) > 0 {
		parts = append(parts, "ipFamilies "+NamesOfFamilies(f.Order, ", "))
	}
	return strings.Join(parts, ", ")
}

// Of returns a family's place in the order of an answer.
func (f Families) Of(family ipaddr.Family) int {
	if len(f.Order) > 0 && f.Order[0] != family {
		return 1
	}
	return 0
}

// NamesOfFamilies names families, with a text between them.
func NamesOfFamilies(families []ipaddr.Family, between string) string {
	var names []string
	for _, f := range families {
		names = append(names, f.String())
	}
	return strings.Join(names, between)
}

// Try is one way to serve a request: the families of which it takes an address, each of them; nil for those that there
// are. With first it is the family of the first pool.
type Try struct {
	Families []ipaddr.Family
	First    bool
}

// Tries returns the ways to serve a request, the best first. What was begun for it is completed as it was begun: that
// is one of each family, as what is alone is complete.
func (w PickRequest) Tries() []Try {
	f := w.Families
	if !f.Required() && (f.policy() == "" || len(w.Have) > 0) {
		return []Try{{}}
	}
	all := ipaddr.Families()
	both, single := Try{Families: all[:]}, []Try{{First: true}}
	if len(f.Order) > 0 {
		single = []Try{{Families: f.Order[:1]}}
	}
	switch {
	case f.Required():
		return []Try{both}
	case f.Single():
		return single
	}
	if len(f.Order) > 0 {
		other := ipaddr.IPv4
		if f.Order[0] == ipaddr.IPv4 {
			other = ipaddr.IPv6
		}
		single = append(single, Try{Families: []ipaddr.Family{other}})
	}
	return append([]Try{both}, single...)
}

// takes reports whether an address of a family is taken in the present try.
func (w PickRequest) takes(family ipaddr.Family) bool {
	return w.Families.Wants(family) && (w.Try.Families == nil || slices.Contains(w.Try.Families, family))
}

// Needed returns the families without which a request is not served.
func (f Families) Needed() []ipaddr.Family {
	all := ipaddr.Families()
	switch {
	case f.Required():
		return all[:]
	case f.Single() && len(f.Order) > 0:
		return f.Order[:1]
	}
	return nil
}

// UnnamedFamily returns why the addresses that a request is restricted to are not of each family that it takes; nil
// where they are.
func (w PickRequest) UnnamedFamily() *Refusal {
	if len(w.Sets) == 0 {
		return nil
	}
	needs := w.Needs()
	for _, f := range w.Try.Families {
		if !slices.ContainsFunc(needs, func(n Need) bool { return n.Family == f }) {
			return RefuseFacts(ReasonClaimConflict, explain.Facts{
				Kind: explain.FamilyNotNamed, Who: w.Who, Claim: w.Claim, Families: f.String(),
			})
		}
	}
	return nil
}
