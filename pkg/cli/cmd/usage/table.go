package usage

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/cli/view"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// share counts the addresses of one host, namespace or pool.
type share struct {
	who                        string
	active, reserved, problems int
	// cooling counts Available addresses in cooldown. Only rows of pools have it.
	cooling int
	// total is the possible maximum of the row: the pool's addresses, or all taken addresses.
	total, free int64
	// others counts the pool's addresses that are leased for overlapping pools.
	others int64
	// served means that total comes from the status of the pool.
	served bool
	// counted is the number of addresses that count against the namespace's quota. Both are set only if the table shows
	// one pool with a quota.
	counted, quota int
	bounded        bool
	// trend is nil unless the row is a pool's, and something can be said.
	trend *view.Trend
	// blocks has the blocks of a namespace.
	blocks []string
}

func (r share) taken() int64 { return int64(r.active + r.reserved + r.problems + r.cooling) }

// used returns how many of total are not free.
func (r share) used() int64 {
	if r.served {
		return r.total - r.free
	}
	return min(r.taken(), r.total)
}

// fullIn returns the time until a pool is full; empty if nothing can be said.
func (r share) fullIn() string {
	if r.trend == nil {
		return ""
	}
	return r.trend.Time()
}

// quotaText returns a text such as "8 of 9"; empty if the namespace has no quota.
func (r share) quotaText() string {
	if !r.bounded {
		return ""
	}
	return fmt.Sprintf("%d of %d", r.counted, r.quota)
}

// countShares counts the taken addresses by host, namespace or pool, in descending order. Pools without taken addresses
// have a row, too, and so have namespaces with blocks.
func countShares(
	by string, all []resource.Pool, plans map[string]ipam.Pool, taken map[string][]lease.Lease,
	owned map[string][]string,
) []share {
	rows := map[string]*share{}
	row := func(who string) *share {
		if rows[who] == nil {
			rows[who] = &share{who: who}
		}
		return rows[who]
	}
	var sum int64
	for _, p := range all {
		plan, held, beside := plans[p.Name], int64(0), int64(0)
		for _, l := range taken[p.Name] {
			if l.State == lease.Available && by != "pool" {
				continue
			}
			row(groupOf(by, l)).add(plan, l)
			sum++
			switch {
			case plan.Usable().Contains(l.Addr):
				held++
			case l.State != lease.Available:
				beside++
			}
		}
		if by == "pool" {
			r, room := row(p.Name), resource.RoomOf(p.BCSNetPool, plan, held, beside)
			r.total, r.free, r.others, r.served = room.Total, room.Free, room.Others, room.Counted
		}
	}
	if by == "namespace" && len(all) == 1 {
		for _, u := range quotaUse(plans[all[0].Name], taken[all[0].Name]) {
			r := row(u.Namespace)
			r.counted, r.quota, r.bounded = u.Has, u.Quota, true
		}
	}
	if by == "namespace" {
		for ns, names := range owned {
			row(ns).blocks = names
		}
	}
	var out []share
	for _, r := range rows {
		if by != "pool" {
			r.total = sum
		}
		out = append(out, *r)
	}
	slices.SortFunc(out, func(a, b share) int {
		return cmp.Or(cmp.Compare(b.taken(), a.taken()), cmp.Compare(a.who, b.who))
	})
	return out
}

func groupOf(by string, l lease.Lease) string {
	switch by {
	case "host":
		return resource.AddrText(l.Host)
	case "namespace":
		return l.Namespace
	default:
		return l.Pool
	}
}

func (r *share) add(p ipam.Pool, l lease.Lease) {
	switch {
	case l.State == lease.Available:
		r.cooling++
	case view.Troubled(p, l):
		r.problems++
	case l.State == lease.Active:
		r.active++
	default:
		r.reserved++
	}
}

// quotaUse returns the use of each namespace with a quota.
func quotaUse(p ipam.Pool, taken []lease.Lease) []ipam.NamespaceUse {
	has := map[string]int{}
	for _, l := range taken {
		for _, ns := range l.ChargedTo() {
			has[ns]++
		}
	}
	return p.QuotaUse(has)
}

// fewBlocks is the number of a namespace's blocks that the table names.
const fewBlocks = 3

func (v *usage) table(rows []share) error {
	if err := printer.Sorted(&v.output.Sort, rows,
		func(r share) (printer.SortKey, error) { return v.output.Sort.Key(r.fields(v.by)) }); err != nil {
		return err
	}
	if v.output.Printer != nil {
		shown := printer.NewViews("Usage", rows, func(r share) map[string]any { return r.fields(v.by) })
		return v.output.Object(v.Out, shown)
	}
	columns := []printer.Column[share]{
		{Name: strings.ToUpper(v.by), Cell: func(r share) string { return r.who }},
		{Name: "ACTIVE", Cell: func(r share) string { return strconv.Itoa(r.active) }},
		{Name: "RSVD", Cell: func(r share) string { return strconv.Itoa(r.reserved) }},
		{Name: "PROBLEMS", Cell: func(r share) string { return strconv.Itoa(r.problems) }},
		{Name: "COOLING", Cell: func(r share) string { return strconv.Itoa(r.cooling) }},
		{Name: "FREE", Cell: func(r share) string { return app.Count(r.free) }},
		{Name: "USED", Cell: func(r share) string { return v.Terminal.UsedCell(r.used(), r.total) }},
	}
	if v.by != "pool" {
		columns = slices.DeleteFunc(columns, func(c printer.Column[share]) bool {
			return c.Name == "FREE" || c.Name == "COOLING"
		})
	}
	if slices.ContainsFunc(rows, func(r share) bool { return r.trend != nil }) {
		columns = append(columns, printer.Column[share]{Name: "FULL IN", Cell: share.fullIn})
	}
	if slices.ContainsFunc(rows, func(r share) bool { return r.bounded }) {
		columns = append(columns, printer.Column[share]{Name: "QUOTA", Cell: share.quotaText})
	}
	if slices.ContainsFunc(rows, func(r share) bool { return r.others > 0 }) {
		columns = append(columns, printer.Column[share]{
			Name: "OTHERS", Cell: func(r share) string { return app.Count(r.others) },
		})
	}
	if slices.ContainsFunc(rows, func(r share) bool { return len(r.blocks) > 0 }) {
		columns = append(columns, printer.Column[share]{
			Name: "BLOCKS", Cell: func(r share) string { return v.output.Some(r.blocks, fewBlocks) },
		})
	}
	if len(rows) == 0 {
		v.Say.Note("no address is taken")
	}
	return printer.NewTable(&v.output, columns).Write(v.Out, rows)
}

// fields returns the fields of a row for -o json and similar formats.
func (r share) fields(by string) map[string]any {
	o := map[string]any{
		by: r.who, "active": int64(r.active), "reserved": int64(r.reserved), "problems": int64(r.problems),
	}
	if by == "pool" {
		o["cooling"], o["free"], o["usable"], o["others"] = int64(r.cooling), r.free, r.total, r.others
	}
	if r.trend != nil {
		o["trend"] = r.trend.Object()
	}
	if by == "namespace" {
		names := []any{}
		for _, name := range r.blocks {
			names = append(names, name)
		}
		o["blocks"] = names
	}
	if r.bounded {
		o["counted"], o["quota"] = int64(r.counted), int64(r.quota)
	}
	return o
}
