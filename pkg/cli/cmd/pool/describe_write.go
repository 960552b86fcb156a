package pool

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/explain"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// write prints the sections that have something to say.
func (d *description) write() error {
	var b bytes.Buffer
	d.head(&b)
	printer.Section(&b, "Conditions", resource.ConditionLines(d.App, d.pool.Status.Conditions))
	if err := d.hosts(&b); err != nil {
		return err
	}
	if err := d.quotas(&b); err != nil {
		return err
	}
	printer.Section(&b, "Events", resource.EventLines(d.App, d.events))
	d.next(&b)
	_, err := d.Out.Write(b.Bytes())
	return err
}

func (d *description) head(b *bytes.Buffer) {
	p := d.pool
	line := func(label, format string, args ...any) {
		if label != "" {
			label += ":"
		}
		printer.Line(b, 12, label, fmt.Sprintf(format, args...))
	}
	line("Pool", "%s", p.Name)
	line("Subnet", "%s, %s", resource.CidrOf(p.BCSNetPool), resource.GatewayText(p.Spec.Gateway))
	if p.Spec.Parent != "" {
		line("Parent", "%s", p.Spec.Parent)
	}
	line("Addresses", "%s", printer.OrNone(d.ranges(p.Spec.AvailableIPs)))
	if len(p.Spec.ExcludeIPs) > 0 {
		line("Excluded", "%s", d.ranges(p.Spec.ExcludeIPs))
	}
	for i, g := range d.groups {
		line([]string{"Groups", ""}[min(i, 1)], "%s", groupText(g))
	}
	if p.Spec.BlockSize > 0 {
		line("Blocks", "%s", d.blocksText())
	}
	if resource.SourceOf(p) != "" {
		line("Source", "%s", resource.SourceText(p))
	}
	if len(p.Spec.HostSubnets) > 0 {
		line("Hosts in", "%s (%s)", humanize.List(p.Spec.HostSubnets),
			humanize.Plural(len(resource.InSubnets(p, d.nodes)), "node"))
	}
	if p.Spec.HostSelector != nil {
		line("Hosts with", "%s%s", resource.SelectorCell(p), d.selected())
	}
	room := d.room()
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
		text += ", used " + d.Terminal.Used(room.Total-room.Free, room.Total)
	}
	if !room.Counted && !resource.IsBlock(p) {
		text += " (counted here: no controller has seen the pool as it is now)"
	}
	line("Capacity", "%s", text)
	if limit := int(p.Spec.MaxPerHost); limit > 0 {
		line("Per host", "%s at most%s", humanize.Plural(limit, "address"), d.fullHosts(limit))
	}
	if limit := int(p.Spec.MaxPerNamespace); limit > 0 {
		line("Quota", "%s for each namespace", humanize.Plural(limit, "address"))
	}
	if link := resource.SettingsText(d.settled().Settings(), lease.SettingNames()[1:]); link != "" {
		line("Link", "%s", link)
	}
	if text := resource.OutdatedText(d.outdated); text != "" {
		line("Outdated", "%s", text)
	}
	if text := d.namespaces(); text != "" {
		line("Namespaces", "%s", text)
	}
	if of := resource.NetworkOf(p); of != "" {
		line("Network", "%s", of)
	}
	if p.Spec.Priority != 0 {
		line("Priority", "%d", p.Spec.Priority)
	}
	if cooldown := d.plan.Cooldown; cooldown > 0 {
		line("Cooldown", "%s", explain.FormatSpan(cooldown))
	}
	if d.plan.Order == ipam.Lowest {
		line("Order", "the lowest free address first")
	}
	if word, _ := resource.PoolState(d.App, p.BCSNetPool); word != resource.StateBlock {
		line("State", "%s", d.Terminal.Paint(resource.PoolStateColor(d.App, p.BCSNetPool), word))
	} else { // a block has no status of its own
		line("State", "that of pool %s: %s", p.Spec.Parent, d.Called("bcsnetctl pool describe "+p.Spec.Parent))
	}
	line("Age", "%s", d.Age(p.CreationTimestamp.Time))
}

// selected counts and names the nodes that the host selector matches; nothing where nodes are not known.
func (d *description) selected() string {
	names := resource.Selected(d.pool, d.nodes)
	switch {
	case len(d.nodes) == 0:
		return ""
	case len(names) == 0:
		return " (0 nodes)"
	}
	return fmt.Sprintf(" (%s: %s)", humanize.Plural(len(names), "node"), humanize.List(names))
}

// fullHosts puts into words how many hosts have as many addresses of the pool as they may.
func (d *description) fullHosts(limit int) string {
	full := 0
	for h, u := range d.byHost {
		if h.IsValid() && u.active >= int64(limit) {
			full++
		}
	}
	if full == 0 {
		return ""
	}
	return ", which " + humanize.Plural(full, "host") + humanize.OneOr(full, " has", " have")
}

// ranges writes an address list in order, neighbours joined; one that cannot be read as it stands.
func (d *description) ranges(list []string) string {
	for _, entry := range list {
		if _, err := ipaddr.ParseRange(entry); err != nil {
			return humanize.List(list)
		}
	}
	return resource.Spell(resource.SetOfEntries(list))
}

// maxIdle bounds how many hosts that hold nothing are listed.
const maxIdle = 10

func (d *description) hosts(b *bytes.Buffer) error {
	var idle []*hostUse
	for _, h := range append(resource.ListedHosts(d.pool), resource.Covered(d.pool, d.nodes)...) {
		if d.byHost[h] == nil {
			idle = append(idle, &hostUse{host: h, listed: true})
		}
	}
	var rows []*hostUse
	of := resource.HostsOf(d.pool, d.nodes)
	if resource.IsBlock(d.pool) {
		of = d.parent.WithNodes(resource.Known(d.nodes))
	}
	for _, u := range d.byHost {
		u.listed = of.Draws(u.host)
		rows = append(rows, u)
	}
	rows = append(rows, idle[:min(len(idle), maxIdle)]...)
	if len(rows) == 0 {
		return nil
	}
	slices.SortFunc(rows, func(x, y *hostUse) int { return x.host.Compare(y.host) })
	err := printer.Indented(b, "Hosts", printer.Table[*hostUse]{Headers: true, Columns: []printer.Column[*hostUse]{
		{Name: "HOST", Cell: func(u *hostUse) string { return resource.AddrText(u.host) }},
		{Name: "ACTIVE", Cell: func(u *hostUse) string { return app.Count(u.active) }},
		{Name: "RSVD", Cell: func(u *hostUse) string { return app.Count(u.reserved) }},
		{Name: "IN POOL", Cell: inPool},
	}}, rows)
	if n := len(idle) - maxIdle; n > 0 {
		fmt.Fprintf(b, "  and %s that hold nothing\n", humanize.Plural(n, "more host"))
	}
	return err
}

// maxKeepers bounds how many of the claims that keep a deleted pool are named; the condition Draining counts the
// others.
const maxKeepers = 3

// next prints commands where the conditions do not name one.
func (d *description) next(b *bytes.Buffer) {
	name := d.pool.Name
	var lines []string
	add := func(what, command string) { lines = append(lines, "  "+what+": "+d.Called(command)) }
	word, _ := resource.PoolState(d.App, d.pool.BCSNetPool)
	switch word {
	case resource.StateUnseen, resource.StateUpdating:
		lines = append(lines, "  "+resource.HintController)
	case v1.ReasonInvalidSpec:
		add("mend the spec", "bcsnetctl pool edit "+name)
	case v1.ReasonTerminating:
		if d.active > 0 {
			add("see who holds its addresses", "bcsnetctl lease list --pool "+name)
		}
		claims := slices.Sorted(maps.Keys(d.kept))
		for _, claim := range claims[:min(len(claims), maxKeepers)] {
			n := d.kept[claim]
			add("see the claim that keeps "+humanize.Plural(n, "address")+" of it", "bcsnetctl claim describe "+claim)
		}
	case v1.ConditionOverlap:
		add("leave the addresses to one of the pools", "bcsnetctl pool remove-ip POOL ADDRESS...")
	}
	if d.outdated != nil && d.outdated.Leases > 0 {
		command := "bcsnetctl lease list --outdated"
		if p := d.pool.Spec; p.BlockSize == 0 {
			command += " --pool " + name
		}
		add("see which pods keep what the pool said before", command)
	}
	if d.retired > 0 && word != v1.ReasonTerminating {
		add("see who holds the addresses that drain", "bcsnetctl ip list --pool "+name+" --status Draining")
	}
	for _, u := range d.byHost {
		if !u.listed && u.active > 0 && u.host.IsValid() {
			add("hosts that hold addresses and are not in the pool may be gone", "bcsnetctl host list")
			break
		}
	}
	printer.Section(b, "Next", lines)
}

func inPool(u *hostUse) string {
	switch {
	case u.listed:
		return "yes"
	case u.host.IsValid():
		return "no"
	default:
		return ""
	}
}
