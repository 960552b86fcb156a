package resource

import (
	"fmt"
	"slices"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
)

// PoolColumns returns the columns of a list of pools.
func PoolColumns(s *app.App) []printer.Column[Pool] {
	status := func(n func(Pool) int64) func(Pool) string {
		return func(p Pool) string {
			if !Counted(p.BCSNetPool) {
				return ""
			}
			return app.Count(n(p))
		}
	}
	return []printer.Column[Pool]{
		{Name: "NAME", Cell: func(p Pool) string { return p.Name }},
		{Name: "CIDR", Cell: func(p Pool) string { return CidrOf(p.BCSNetPool) }},
		{Name: "HOSTS", Cell: HostCell},
		{Name: "TOTAL", Cell: status(func(p Pool) int64 { return p.Status.Capacity })},
		{Name: "ACTIVE", Cell: status(func(p Pool) int64 { return p.Status.Active })},
		{Name: "RSVD", Cell: status(func(p Pool) int64 { return p.Status.Reserved })},
		{Name: "COOLING", Wide: true, Cell: status(func(p Pool) int64 { return p.Status.Cooling })},
		{Name: "OTHERS", Wide: true, Cell: status(func(p Pool) int64 { return OthersOf(p.BCSNetPool) })},
		{Name: "FREE", Cell: status(func(p Pool) int64 { return p.Status.Available })},
		{Name: "USED", Cell: func(p Pool) string {
			return s.Terminal.UsedCell(p.Status.Capacity-p.Status.Available, p.Status.Capacity)
		}},
		{Name: "STATE", Cell: func(p Pool) string {
			word, _ := PoolState(s, p.BCSNetPool)
			return s.Terminal.Paint(PoolStateColor(s, p.BCSNetPool), word)
		}},
		{Name: "GATEWAY", Wide: true, Cell: func(p Pool) string { return p.Spec.Gateway }},
		{Name: "VLAN", Wide: true, Cell: func(p Pool) string { return app.UnlessZero(p.Spec.VLAN) }},
		{Name: "SELECTOR", Wide: true, Cell: SelectorCell},
		{Name: "NAMESPACES", Wide: true, Cell: NamespacesCell},
		{Name: "PARENT", Wide: true, Cell: func(p Pool) string { return p.Spec.Parent }},
		{Name: "NETWORK", Wide: true, Cell: NetworkOf},
		{Name: "PRIORITY", Wide: true, Cell: func(p Pool) string { return app.UnlessZero(p.Spec.Priority) }},
		{Name: "AGE", Cell: func(p Pool) string { return s.Age(p.CreationTimestamp.Time) }},
	}
}

// AddUp shows the wide columns OTHERS and COOLING if they are needed for a pool's numbers to add up to its total.
func AddUp[T any](columns []printer.Column[T], all []T, of func(T) *v1.BCSNetPool) []printer.Column[T] {
	for i := range columns {
		number := map[string]func(*v1.BCSNetPool) int64{
			"OTHERS": OthersOf, "COOLING": func(p *v1.BCSNetPool) int64 { return p.Status.Cooling },
		}[columns[i].Name]
		if number != nil && slices.ContainsFunc(all, func(row T) bool {
			p := of(row)
			return Counted(p) && number(p) > 0
		}) {
			columns[i].Wide = false
		}
	}
	return columns
}

// SumUpPools prints PoolSummary below a list.
func SumUpPools(s *app.App, which Selectors, all []Pool) {
	s.Say.Note("%s", PoolSummary(s, which, all))
	if len(all) == 0 && which == (Selectors{}) {
		s.Hint("make one: bcsnetctl pool create --help")
	}
}

// PoolSummary counts the pools, and names those that need attention.
func PoolSummary(s *app.App, which Selectors, all []Pool) string {
	if len(all) == 0 {
		return WithWords("no pools", which.Words()) + " in " + s.Where()
	}
	var names []string
	for _, p := range all {
		if word, attention := PoolState(s, p.BCSNetPool); attention {
			names = append(names, fmt.Sprintf("%s (%s)", p.Name, word))
		}
	}
	text := humanize.Plural(len(all), "pool")
	switch len(names) {
	case 0:
	case 1:
		text += ", 1 needs attention: " + names[0]
	default:
		text += fmt.Sprintf(", %d need attention: %s", len(names), humanize.List(names))
	}
	return text
}
