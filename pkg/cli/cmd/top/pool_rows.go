package top

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
)

// poolTop is a pool, and its rate of change if the command watches.
type poolTop struct {
	resource.Pool
	*trend
}

// taken returns the share of a pool that is not free, from 0 to 1.
func (p poolTop) taken() float64 {
	if p.Status.Capacity <= 0 {
		return 0
	}
	return float64(p.Status.Capacity-p.Status.Available) / float64(p.Status.Capacity)
}

// fullIn says in which time the pool is full at the present rate; empty if that is far away.
func (p poolTop) fullIn() string {
	const far = 7 * 24 * 60
	rate := p.perMinute()
	if minutes := float64(p.Status.Available) / rate; rate > 0 && p.Status.Available > 0 && minutes < far {
		return duration.HumanDuration(time.Duration(minutes * float64(time.Minute)))
	}
	return ""
}

func poolOrders() []ordering[poolTop] {
	name := func(a, b poolTop) int { return cmp.Compare(a.Name, b.Name) }
	free := func(a, b poolTop) int { return cmp.Or(cmp.Compare(a.Status.Available, b.Status.Available), name(a, b)) }
	return []ordering[poolTop]{
		{"used", func(a, b poolTop) int { return cmp.Or(cmp.Compare(b.taken(), a.taken()), free(a, b)) }},
		{"free", free},
		{"active", func(a, b poolTop) int { return cmp.Or(cmp.Compare(b.Status.Active, a.Status.Active), name(a, b)) }},
		{orderRate, func(a, b poolTop) int { return cmp.Or(cmp.Compare(b.perMinute(), a.perMinute()), free(a, b)) }},
		{"name", name},
	}
}

// columns returns the columns of pool list about the use of a pool, with the least important ones last.
func (v *topPool) columns() []printer.Column[poolTop] {
	var out []printer.Column[poolTop]
	all := resource.PoolColumns(v.App)
	for _, name := range []string{
		"NAME", "USED", "FREE", "ACTIVE", "RSVD", "COOLING", "OTHERS", "TOTAL", "STATE", "CIDR", "HOSTS",
	} {
		c := all[slices.IndexFunc(all, func(c printer.Column[resource.Pool]) bool { return c.Name == name })]
		out = append(out, printer.Column[poolTop]{
			Name: name, Wide: c.Wide || name == "CIDR" || name == "HOSTS",
			Cell: func(p poolTop) string { return c.Cell(p.Pool) },
		})
	}
	if !v.output.Watch {
		return out
	}
	return slices.Insert(out, 3,
		printer.Column[poolTop]{Name: "RATE", Least: 8,
			Cell: func(p poolTop) string { return rateText(p.perMinute()) }},
		printer.Column[poolTop]{Name: "FULL IN", Cell: poolTop.fullIn})
}

// poolKind is the kind of a row for -o json and similar formats.
const poolKind = "PoolTop"

func (v *topPool) fields(p poolTop) map[string]any {
	word, attention := resource.PoolState(v.App, p.BCSNetPool)
	o := map[string]any{
		"pool": p.Name, "cidr": resource.CidrOf(p.BCSNetPool), "state": word, "attention": attention,
	}
	if resource.Counted(p.BCSNetPool) {
		o["total"], o["active"], o["reserved"], o["free"] = p.Status.Capacity, p.Status.Active, p.Status.Reserved,
			p.Status.Available
		o["cooling"], o["others"] = p.Status.Cooling, resource.OthersOf(p.BCSNetPool)
		o["used"] = p.taken()
	}
	if v.output.Watch {
		o["perMinute"] = p.perMinute()
	}
	return o
}
