package view

import (
	"fmt"
	"maps"
	"slices"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/explain"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Facts describes a pool.
func (d *Pool) Facts(s *app.App) (f Facts) {
	p := d.Pool
	f.add("Pool", "%s", p.Name)
	f.add("Subnet", "%s, %s", resource.CidrOf(p.BCSNetPool), resource.GatewayText(p.Spec.Gateway))
	if p.Spec.Parent != "" {
		f.add("Parent", "%s", p.Spec.Parent)
	}
	f.add("Addresses", "%s", printer.OrNone(d.ranges(p.Spec.AvailableIPs)))
	if len(p.Spec.ExcludeIPs) > 0 {
		f.add("Excluded", "%s", d.ranges(p.Spec.ExcludeIPs))
	}
	for i, g := range d.Groups {
		f.add([]string{"Groups", ""}[min(i, 1)], "%s", groupText(g))
	}
	if p.Spec.BlockSize > 0 {
		f.add("Blocks", "%s", d.blocksText(s))
	}
	if resource.SourceOf(p) != "" {
		f.add("Source", "%s", resource.SourceText(p))
	}
	if len(p.Spec.HostSubnets) > 0 {
		f.add("Hosts in", "%s (%s)", humanize.List(p.Spec.HostSubnets),
			humanize.Plural(len(resource.InSubnets(p, d.nodes)), "node"))
	}
	if p.Spec.HostSelector != nil {
		f.add("Hosts with", "%s%s", resource.SelectorCell(p), d.selected())
	}
	room := d.Room()
	text := fmt.Sprintf("%s of %s free", app.Count(room.Free), app.Count(room.Total))
	if d.active > 0 {
		text += fmt.Sprintf(", %d active", d.active)
	}
	if d.reserved > 0 {
		text += fmt.Sprintf(", %d reserved", d.reserved)
	}
	if n := p.Status.Cooling; room.Counted && n > 0 {
		text += fmt.Sprintf(", %d cooling", n)
	}
	if room.Others > 0 {
		text += fmt.Sprintf(", %d leased by other pools", room.Others)
	}
	if room.Free < room.Total {
		text += ", used " + s.Terminal.Used(room.Total-room.Free, room.Total)
	}
	if !room.Counted && !resource.IsBlock(p) {
		text += " (counted by this command: no controller has processed the current spec yet)"
	}
	f.add("Capacity", "%s", text)
	if d.Trend != nil {
		f.add("Full in", "%s", d.Trend)
	}
	if limit := int(p.Spec.MaxPerHost); limit > 0 {
		f.add("Per host", "%s at most%s", humanize.Plural(limit, "address"), d.fullHosts(limit))
	}
	if limit := int(p.Spec.MaxPerNamespace); limit > 0 {
		f.add("Quota", "%s for each namespace", humanize.Plural(limit, "address"))
	}
	if link := resource.SettingsText(d.settled().Settings(), lease.SettingNames()[1:]); link != "" {
		f.add("Link", "%s", link)
	}
	if text := resource.OutdatedText(d.Outdated); text != "" {
		f.add("Outdated", "%s", text)
	}
	if text := d.namespaces(); text != "" {
		f.add("Namespaces", "%s", text)
	}
	if of := resource.NetworkOf(p); of != "" {
		f.add("Network", "%s", of)
	}
	if p.Spec.Priority != 0 {
		f.add("Priority", "%d", p.Spec.Priority)
	}
	if cooldown := d.Plan.Cooldown; cooldown > 0 {
		f.add("Cooldown", "%s", explain.FormatSpan(cooldown))
	}
	if d.Plan.Order == ipam.Lowest {
		f.add("Order", "the lowest free address first")
	}
	if word, _ := resource.PoolState(s, p.BCSNetPool); word != resource.StateBlock {
		f.paint(word, resource.PoolStateColor(s, p.BCSNetPool))
	} else { // a block has no status of its own
		f.add("State", "see pool %s: %s", p.Spec.Parent, s.Called("bcsnetctl pool describe "+p.Spec.Parent))
	}
	f.add("Age", "%s", s.Age(p.CreationTimestamp.Time))
	return f
}

// selected counts and names the nodes that match the host selector; empty if nodes are unknown.
func (d *Pool) selected() string {
	names := resource.Selected(d.Pool, d.nodes)
	switch {
	case len(d.nodes) == 0:
		return ""
	case len(names) == 0:
		return " (0 nodes)"
	}
	return fmt.Sprintf(" (%s: %s)", humanize.Plural(len(names), "node"), humanize.List(names))
}

// fullHosts counts the hosts that have reached maxPerHost.
func (d *Pool) fullHosts(limit int) string {
	full := 0
	for h, u := range d.byHost {
		if h.IsValid() && u.Active >= int64(limit) {
			full++
		}
	}
	if full == 0 {
		return ""
	}
	return ", which " + humanize.Plural(full, "host") + humanize.OneOr(full, " has", " have")
}

// ranges formats an address list, sorted and with adjacent ranges joined; an invalid one as it is.
func (d *Pool) ranges(list []string) string {
	for _, entry := range list {
		if _, err := ipaddr.ParseRange(entry); err != nil {
			return humanize.List(list)
		}
	}
	return resource.Spell(resource.SetOfEntries(list))
}

// maxIdle bounds the listed hosts without addresses.
const maxIdle = 10

// Hosts returns the hosts with addresses of the pool and up to maxIdle without, sorted by IP. more counts the others.
func (d *Pool) Hosts() (rows []*HostUse, more int) {
	var idle []*HostUse
	for _, h := range append(resource.ListedHosts(d.Pool), resource.Covered(d.Pool, d.nodes)...) {
		if d.byHost[h] == nil {
			idle = append(idle, &HostUse{Host: h, Listed: true})
		}
	}
	for _, u := range d.byHost {
		rows = append(rows, u)
	}
	rows = append(rows, idle[:min(len(idle), maxIdle)]...)
	slices.SortFunc(rows, func(x, y *HostUse) int { return x.Host.Compare(y.Host) })
	return rows, max(0, len(idle)-maxIdle)
}

// Quotas returns the use of each namespace with a quota.
func (d *Pool) Quotas() []ipam.NamespaceUse { return d.Plan.QuotaUse(d.charged) }

// maxKeepers bounds the named claims that keep addresses of a deleted pool. The condition Draining counts the others.
const maxKeepers = 3

// Next returns the next commands that the conditions do not name.
func (d *Pool) Next(s *app.App) (n Steps) {
	name := d.Name
	word, _ := resource.PoolState(s, d.BCSNetPool)
	switch word {
	case resource.StateUnseen, resource.StateUpdating:
		n.hint(resource.HintController)
	case v1.ReasonInvalidSpec:
		n.add("correct the spec", "bcsnetctl pool edit "+name)
	case v1.ReasonTerminating:
		if d.active > 0 {
			n.add("see who holds its addresses", "bcsnetctl lease list --pool "+name)
		}
		claims := slices.Sorted(maps.Keys(d.kept))
		for _, claim := range claims[:min(len(claims), maxKeepers)] {
			n.add("see the claim that keeps "+humanize.Plural(d.kept[claim], "address")+" of it",
				"bcsnetctl claim describe "+claim)
		}
	case v1.ConditionOverlap:
		n.add("leave the addresses to one of the pools", "bcsnetctl pool remove-ip POOL ADDRESS...")
	}
	if d.Outdated != nil && d.Outdated.Leases > 0 {
		command := "bcsnetctl lease list --outdated"
		if d.Spec.BlockSize == 0 {
			command += " --pool " + name
		}
		n.add("see which pods keep what the pool said before", command)
	}
	if d.retired > 0 && word != v1.ReasonTerminating {
		n.add("see who holds the addresses that drain", "bcsnetctl ip list --pool "+name+" --status Draining")
	}
	for _, u := range d.byHost {
		if !u.Listed && u.Active > 0 && u.Host.IsValid() {
			n.add("hosts that hold addresses and are not in the pool may be gone", "bcsnetctl host list")
			break
		}
	}
	return n
}

// InPool says whether a host may draw from the pool; empty for addresses without a host.
func (u *HostUse) InPool() string {
	switch {
	case u.Listed:
		return "yes"
	case u.Host.IsValid():
		return "no"
	default:
		return ""
	}
}
