package cli

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

// addition is what adding entries to a pool comes to.
type addition struct {
	// list is the pool's new address list: the old one as it is, and the new entries behind it.
	list []string
	// added are the addresses that the pool may hand out on top.
	added *netipx.IPSet
	// same are the entries that the pool has already.
	same []string
	// warnings are oddities that do no harm.
	warnings []string
}

// addEntries adds entries to a pool's address list, unless an address of them is out of place: outside the
// subnet, in the pool already, never handed out, or in one of the other pools.
func addEntries(p *v1.BCSNetPool, others []ipam.Pool, entries []entry) (addition, error) {
	a := addition{list: append([]string(nil), p.Spec.AvailableIPs...)}
	before, err := ipam.NewPlan(store.PlanSpec(p))
	if err != nil {
		return a, invalidPool(p.Name, err)
	}
	for _, e := range entries {
		if !before.Subnet.Contains(e.From()) || !before.Subnet.Contains(e.To()) {
			return a, app.Refuse(app.ReasonAddressNotInSubnet, "%s is not in the subnet %s of pool %s", e.text, before.Subnet, p.Name)
		}
		again, err := a.present(p.Name, e)
		switch {
		case err != nil:
			return a, err
		case again:
			a.same = append(a.same, e.text)
			continue
		}
		if err := a.usable(p, e); err != nil {
			return a, err
		}
		a.list = append(a.list, e.text)
	}
	next := p.DeepCopy()
	next.Spec.AvailableIPs = a.list
	after, err := ipam.NewPlan(store.PlanSpec(next))
	if err != nil {
		return a, invalidPool(p.Name, err)
	}
	a.added = ipaddr.Subtract(after.Usable, before.Usable)
	return a, overlapsOthers(p.Name, a.added, others)
}

// present is true when the very entry is in the list already; an entry that shares addresses with the
// list without being one of it is an error.
func (a *addition) present(name string, e entry) (bool, error) {
	same := func(have string) bool { r, err := ipaddr.ParseRange(have); return err == nil && r == e.IPRange }
	if slices.ContainsFunc(a.list, same) {
		return true, nil
	}
	for _, have := range a.list {
		r, err := ipaddr.ParseRange(have)
		if err != nil || !r.Overlaps(e.IPRange) {
			continue
		}
		f := app.Refuse(app.ReasonAlreadyInPool, "%s is already in the pool: pool %s has %s", spell(ipaddr.Intersect(ipaddr.SetOf(r), ipaddr.SetOf(e.IPRange))), name, have)
		if left := ipaddr.Subtract(ipaddr.SetOf(e.IPRange), setOfEntries(a.list)); len(left.Ranges()) > 0 {
			return false, f.WithHint("add only what is missing: bcsnetctl pool add-ip %s %s", name, arguments(left))
		}
		return false, f.WithHint("there is nothing to add; its addresses: bcsnetctl pool describe %s", name)
	}
	return false, nil
}

// usable refuses an entry that adds nothing, and warns of one that adds less than it says.
func (a *addition) usable(p *v1.BCSNetPool, e entry) error {
	spec := store.PlanSpec(p)
	spec.Available = []string{e.text}
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
		why = append(why, spell(lost)+" is excluded by excludeIPs")
	}
	reasons := strings.Join(why, ", ")
	if len(plan.Usable.Ranges()) == 0 {
		return app.Refuse(app.ReasonAddressNotUsable, "%s would never be handed out: %s of pool %s", e.text, reasons, p.Name)
	}
	a.warnings = append(a.warnings, fmt.Sprintf("not all of %s will be handed out: %s", e.text, reasons))
	return nil
}

// overlapsOthers refuses addresses that another pool has.
func overlapsOthers(name string, added *netipx.IPSet, others []ipam.Pool) error {
	for _, o := range others {
		if !o.Valid() {
			continue
		}
		shared := ipaddr.Intersect(added, o.Plan.Usable)
		if len(shared.Ranges()) == 0 {
			continue
		}
		f := app.Refuse(app.ReasonPoolOverlap, "pool %s cannot have %s: pool %s owns %s", name, spell(added), o.Name, spell(shared))
		if o.Terminating {
			return f.WithHint("pool %s is being deleted; see what it waits for: bcsnetctl pool describe %s", o.Name, o.Name)
		}
		return f.WithHint("take it out there first: bcsnetctl pool remove-ip %s %s", o.Name, arguments(shared))
	}
	return nil
}

func invalidPool(name string, err error) error {
	return app.Refuse(app.ReasonPoolInvalid, "the spec of pool %s cannot be used: %v", name, err).
		WithHint("mend it: bcsnetctl pool edit %s", name)
}
