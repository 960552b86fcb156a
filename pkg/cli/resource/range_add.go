package resource

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"go4.org/netipx"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// Addition is the result of adding entries to a pool.
type Addition struct {
	// List is the new address list: the old one followed by the new entries. A new entry that continues a range extends
	// it.
	List []string
	// Added are the addresses that the pool newly allocates.
	Added *netipx.IPSet
	// Same are the entries that the pool has already.
	Same []string
	// Warnings are harmless oddities.
	Warnings []string
	// Fit compares the change with the other pools.
	Fit *Fit
}

// AddEntries adds entries to a pool's address list. It refuses an address that is outside the subnet, partly in the
// pool already, never allocated, missing in the parent, or in another pool.
func AddEntries(p *v1.BCSNetPool, others []ipam.Pool, entries []Entry) (Addition, error) {
	a := Addition{List: append([]string(nil), p.Spec.AvailableIPs...)}
	before, err := ipam.NewPlan(store.PlanSpec(p))
	if err != nil {
		return a, invalidPool(p.Name, err)
	}
	for _, e := range entries {
		if outside := !before.Subnet.Contains(e.From()) || !before.Subnet.Contains(e.To()); outside &&
			p.Spec.Parent != "" {
			return a, app.Refuse(app.ReasonAddressNotInSubnet, "%s", ipam.BadIPPool(e.Text, before.Subnet))
		} else if outside {
			return a, app.Refuse(app.ReasonAddressNotInSubnet, "%s is not in the subnet %s of pool %s", e.Text,
				before.Subnet, p.Name)
		}
		again, err := a.present(p.Name, e)
		switch {
		case err != nil:
			return a, err
		case again:
			a.Same = append(a.Same, e.Text)
			continue
		}
		if err := a.usable(p, e); err != nil {
			return a, err
		}
		a.List = joined(a.List, e)
	}
	next := p.DeepCopy()
	next.Spec.AvailableIPs = a.List
	after, err := ipam.NewPlan(store.PlanSpec(next))
	if err != nil {
		return a, invalidPool(p.Name, err)
	}
	a.Added = ipaddr.Subtract(after.Usable, before.Usable)
	a.Fit = NewFit(append(slices.Clip(others), store.Pool(p)), store.Pool(next))
	return a, a.Fit.Overlaps(p.Name)
}

// joined adds an entry to an address list: it extends adjacent ranges, or is appended. Single addresses stay single,
// because they always have objects. An IPv6 range stays within one /64.
func joined(list []string, e Entry) []string {
	at := -1
	for i := 0; i < len(list); i++ {
		r, err := ipaddr.ParseRange(list[i])
		if err != nil || i == at || r.From() == r.To() || r.To().Next() != e.From() && e.To().Next() != r.From() {
			continue
		}
		from, to := r.From(), e.To()
		if e.From().Less(from) {
			from, to = e.From(), r.To()
		}
		if from.Is6() && !netip.PrefixFrom(from, 64).Contains(to) {
			continue
		}
		e.IPRange = netipx.IPRangeFrom(from, to)
		if at >= 0 { // it closes the gap between two ranges
			list[at] = ipaddr.FormatRange(e.IPRange)
			return slices.Delete(list, i, i+1)
		}
		at, list[i] = i, ipaddr.FormatRange(e.IPRange)
	}
	if at < 0 {
		list = append(list, e.Text)
	}
	return list
}

// present reports whether the list has all addresses of the entry. It fails if the list has only some of them.
func (a *Addition) present(name string, e Entry) (bool, error) {
	left := ipaddr.Subtract(ipaddr.SetOf(e.IPRange), SetOfEntries(a.List))
	if len(left.Ranges()) == 0 {
		return true, nil
	}
	for _, have := range a.List {
		r, err := ipaddr.ParseRange(have)
		if err != nil || !r.Overlaps(e.IPRange) {
			continue
		}
		return false, app.Refuse(app.ReasonAlreadyInPool, "%s is already in the pool: pool %s has %s",
			Spell(ipaddr.Intersect(ipaddr.SetOf(r), ipaddr.SetOf(e.IPRange))), name, have).
			WithHint("add only what is missing: bcsnetctl pool add-ip %s %s", name, Arguments(left))
	}
	return false, nil
}

// usable refuses an entry that adds no address, and warns of one that adds fewer than it has.
func (a *Addition) usable(p *v1.BCSNetPool, e Entry) error {
	spec := store.PlanSpec(p)
	spec.Available = []string{e.Text}
	plan, err := ipam.NewPlan(spec)
	if err != nil {
		return invalidPool(p.Name, err)
	}
	lost := ipaddr.Subtract(ipaddr.SetOf(e.IPRange), plan.Usable)
	if len(lost.Ranges()) == 0 {
		return nil
	}
	var why []string
	special := func(addr netip.Addr, what string) {
		if addr.IsValid() && lost.Contains(addr) {
			lost = ipaddr.Subtract(lost, ipaddr.SetOfAddrs(addr))
			why = append(why, fmt.Sprintf("%s is the %s", addr, what))
		}
	}
	special(plan.Gateway, "gateway")
	special(plan.Subnet.Addr(), "network address")
	if plan.Subnet.Addr().Is4() {
		special(netipx.PrefixLastIP(plan.Subnet), "broadcast address")
	}
	if len(lost.Ranges()) > 0 {
		why = append(why, Spell(lost)+" is excluded by excludeIPs")
	}
	reasons := strings.Join(why, ", ")
	if len(plan.Usable.Ranges()) == 0 {
		return app.Refuse(app.ReasonAddressNotUsable, "%s would never be allocated: %s of pool %s", e.Text, reasons,
			p.Name)
	}
	a.Warnings = append(a.Warnings, fmt.Sprintf("not all of %s will be allocated: %s", e.Text, reasons))
	return nil
}

func invalidPool(name string, err error) error {
	return app.Refuse(app.ReasonPoolInvalid, "the spec of pool %s cannot be used: %v", name, err).
		WithHint("correct it: bcsnetctl pool edit %s", name)
}
