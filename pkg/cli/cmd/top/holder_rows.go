package top

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
)

// holderTop is a host or a namespace with addresses, and their rate of change if the command watches.
type holderTop struct {
	who string
	*resource.Stake
	*trend
}

// recent counts the addresses that were allocated a short time ago.
func (h holderTop) recent() (n int) {
	for _, at := range h.Since {
		if h.now().Sub(at) < trendTime {
			n++
		}
	}
	return n
}

// poolNames returns the pools of the addresses, by descending number of addresses.
func (h holderTop) poolNames() []string {
	return slices.SortedFunc(maps.Keys(h.Pools), func(a, b string) int {
		return cmp.Or(cmp.Compare(h.Pools[b], h.Pools[a]), cmp.Compare(a, b))
	})
}

func holderOrders() []ordering[holderTop] {
	active := func(a, b holderTop) int {
		return cmp.Or(cmp.Compare(b.Addresses, a.Addresses), cmp.Compare(a.who, b.who))
	}
	return []ordering[holderTop]{
		{"active", active},
		{"pods", func(a, b holderTop) int { return cmp.Or(cmp.Compare(len(b.Pods), len(a.Pods)), active(a, b)) }},
		{"new", func(a, b holderTop) int { return cmp.Or(cmp.Compare(b.recent(), a.recent()), active(a, b)) }},
		{orderRate, func(a, b holderTop) int {
			return cmp.Or(cmp.Compare(b.perMinute(), a.perMinute()), active(a, b))
		}},
	}
}

func (v *topHolder) columns() []printer.Column[holderTop] {
	out := []printer.Column[holderTop]{
		{Name: strings.ToUpper(v.noun), Least: 15, Cell: func(h holderTop) string { return h.who }},
		{Name: "ACTIVE", Cell: func(h holderTop) string { return strconv.Itoa(h.Addresses) }},
		{Name: "PODS", Cell: func(h holderTop) string { return strconv.Itoa(len(h.Pods)) }},
		{Name: "NEW", Cell: func(h holderTop) string { return strconv.Itoa(h.recent()) }},
		{Name: "RATE", Least: 8, Cell: func(h holderTop) string { return rateText(h.perMinute()) }},
		{Name: "POOLS", Cell: func(h holderTop) string { return v.output.Some(h.poolNames(), 1) }},
	}
	if !v.output.Watch {
		out = slices.DeleteFunc(out, func(c printer.Column[holderTop]) bool { return c.Name == "RATE" })
	}
	return out
}

func (v *topHolder) summary(all []holderTop) string {
	addresses, recent, holders := 0, 0, 0
	for _, h := range all {
		addresses += h.Addresses
		recent += h.recent()
		if h.who != "" {
			holders++
		}
	}
	text := humanize.Plural(addresses, "address") + " in use by " + humanize.Plural(holders, v.noun)
	if recent > 0 {
		text += ", " + strconv.Itoa(recent) + " of them new in the last ten minutes"
	}
	return text
}

// kind returns the kind of a row for -o json and similar formats.
func (v *topHolder) kind() string { return strings.ToUpper(v.noun[:1]) + v.noun[1:] + "Top" }

func (v *topHolder) fields(h holderTop) map[string]any {
	o := map[string]any{
		v.noun: h.who, "active": int64(h.Addresses), "pods": int64(len(h.Pods)), "new": int64(h.recent()),
		"pools": resource.Values(h.poolNames()),
	}
	if v.output.Watch {
		o["perMinute"] = h.perMinute()
	}
	return o
}
