package cli

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"
)

// poolTop is a pool, and how its use changes where it is watched.
type poolTop struct {
	pool
	*trend
}

// taken is how much of a pool is not free.
func (p poolTop) taken() float64 {
	if p.Status.Capacity <= 0 {
		return 0
	}
	return float64(p.Status.Capacity-p.Status.Available) / float64(p.Status.Capacity)
}

// fullIn is when the last address goes if it goes on like that; empty where that is far away.
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

// columns are those of pool list that say how full a pool is, in an order that ends with what matters least.
func (v *topPool) columns() []column[poolTop] {
	var out []column[poolTop]
	all := v.list.columns()
	for _, name := range []string{"NAME", "USED", "FREE", "ACTIVE", "RSVD", "COOLING", "OTHERS", "TOTAL", "STATE", "CIDR", "HOSTS"} {
		c := all[slices.IndexFunc(all, func(c column[pool]) bool { return c.name == name })]
		out = append(out, column[poolTop]{
			name: name, wide: c.wide || name == "CIDR" || name == "HOSTS", cell: func(p poolTop) string { return c.cell(p.pool) },
		})
	}
	if !v.list.output.watch {
		return out
	}
	return slices.Insert(out, 3,
		column[poolTop]{name: "RATE", least: 8, cell: func(p poolTop) string { return rateText(p.perMinute()) }},
		column[poolTop]{name: "FULL IN", cell: poolTop.fullIn})
}

func (v *topPool) object(p poolTop) *unstructured.Unstructured {
	word, attention := v.list.state(p.BCSNetPool)
	o := map[string]any{
		"apiVersion": programName + "/v1", "kind": "PoolTop", "pool": p.Name, "cidr": cidrOf(p.BCSNetPool),
		"state": word, "attention": attention,
	}
	if counted(p.BCSNetPool) {
		o["total"], o["active"], o["reserved"], o["free"] = p.Status.Capacity, p.Status.Active, p.Status.Reserved, p.Status.Available
		o["cooling"], o["others"] = p.Status.Cooling, othersOf(p.BCSNetPool)
		o["used"] = p.taken()
	}
	if v.list.output.watch {
		o["perMinute"] = p.perMinute()
	}
	return &unstructured.Unstructured{Object: o}
}
