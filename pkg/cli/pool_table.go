package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
)

// poolColumns returns the columns of a list of pools.
func poolColumns(s *app.App) []printer.Column[resource.Pool] {
	status := func(n func(resource.Pool) int64) func(resource.Pool) string {
		return func(p resource.Pool) string {
			if !resource.Counted(p.BCSNetPool) {
				return ""
			}
			return app.Count(n(p))
		}
	}
	return []printer.Column[resource.Pool]{
		{Name: "NAME", Cell: func(p resource.Pool) string { return p.Name }},
		{Name: "CIDR", Cell: func(p resource.Pool) string { return resource.CidrOf(p.BCSNetPool) }},
		{Name: "HOSTS", Cell: resource.HostCell},
		{Name: "TOTAL", Cell: status(func(p resource.Pool) int64 { return p.Status.Capacity })},
		{Name: "ACTIVE", Cell: status(func(p resource.Pool) int64 { return p.Status.Active })},
		{Name: "RSVD", Cell: status(func(p resource.Pool) int64 { return p.Status.Reserved })},
		{Name: "COOLING", Wide: true, Cell: status(func(p resource.Pool) int64 { return p.Status.Cooling })},
		{Name: "OTHERS", Wide: true, Cell: status(func(p resource.Pool) int64 { return othersOf(p.BCSNetPool) })},
		{Name: "FREE", Cell: status(func(p resource.Pool) int64 { return p.Status.Available })},
		{Name: "USED", Cell: func(p resource.Pool) string {
			return s.Terminal.UsedCell(p.Status.Capacity-p.Status.Available, p.Status.Capacity)
		}},
		{Name: "STATE", Cell: func(p resource.Pool) string {
			word, _ := resource.PoolState(s, p.BCSNetPool)
			return s.Terminal.Paint(resource.PoolStateColor(s, p.BCSNetPool), word)
		}},
		{Name: "GATEWAY", Wide: true, Cell: func(p resource.Pool) string { return p.Spec.Gateway }},
		{Name: "VLAN", Wide: true, Cell: func(p resource.Pool) string { return app.UnlessZero(p.Spec.VLAN) }},
		{Name: "NAMESPACES", Wide: true, Cell: func(p resource.Pool) string { return strings.Join(p.Spec.Namespaces, ",") }},
		{Name: "NETWORK", Wide: true, Cell: func(p resource.Pool) string { return p.Spec.Network }},
		{Name: "PRIORITY", Wide: true, Cell: func(p resource.Pool) string { return strconv.Itoa(int(p.Spec.Priority)) }},
		{Name: "AGE", Cell: func(p resource.Pool) string { return s.Age(p.CreationTimestamp.Time) }},
	}
}

// addUp shows the columns of a list of pools without which the numbers of one of them do not add up to its total.
func addUp[T any](columns []printer.Column[T], all []T, of func(T) *v1.BCSNetPool) []printer.Column[T] {
	for i := range columns {
		number := map[string]func(*v1.BCSNetPool) int64{
			"OTHERS": othersOf, "COOLING": func(p *v1.BCSNetPool) int64 { return p.Status.Cooling },
		}[columns[i].Name]
		if number != nil && slices.ContainsFunc(all, func(row T) bool { p := of(row); return resource.Counted(p) && number(p) > 0 }) {
			columns[i].Wide = false
		}
	}
	return columns
}

// sumUpPools says below a list how many pools there are and which ones to look at.
func sumUpPools(s *app.App, which resource.Selectors, all []resource.Pool) {
	s.Say.Note("%s", poolSummary(s, which, all))
	if len(all) == 0 && which == (resource.Selectors{}) {
		s.Hint("make one: bcsnetctl pool create --help")
	}
}

// poolSummary is that in words.
func poolSummary(s *app.App, which resource.Selectors, all []resource.Pool) string {
	if len(all) == 0 {
		return resource.WithWords("no pools", which.Words()) + " in " + s.Where()
	}
	var names []string
	for _, p := range all {
		if word, attention := resource.PoolState(s, p.BCSNetPool); attention {
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
