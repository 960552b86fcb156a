package doctor

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/explain"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// groupInvalid finds groups that do not allocate because of their parent.
func groupInvalid(_ *facts, p *Pool) (Finding, bool) {
	if p.Valid() {
		return onPool(p, fmt.Sprintf("its parent %s is being deleted, and waits for its children", p.Parent),
			"bcsnetctl pool describe "+p.Parent), p.ByParent == explain.Terminating && !p.Terminating
	}
	return onPool(p, p.Problem, "bcsnetctl pool edit "+p.Name), p.BadParent
}

// groupStuck finds groups whose addresses are not handed over to them for a long time.
func groupStuck(f *facts, p *Pool) (Finding, bool) {
	if p.Withheld == nil || len(p.Withheld.Ranges()) == 0 || p.Terminating || p.ByParent == explain.Terminating {
		return Finding{}, false
	}
	if in := f.obstacles(p); len(in) > 0 {
		var names []string
		for _, o := range in {
			names = append(names, o.String())
		}
		first := in[0].Lease
		return onPool(p, fmt.Sprintf("%s carved out of pool %s: it waits for %s of pool %s: %s", notYet(p), p.Parent,
			humanize.Plural(len(in), "address"), first.Pool, humanize.List(names)),
			"bcsnetctl ip describe "+first.Addr.String()), true
	}
	ready := meta.FindStatusCondition(p.Object.Status.Conditions, v1.ConditionReady)
	if ready == nil || ready.Reason != v1.ReasonCarving || f.Now.Sub(ready.LastTransitionTime.Time) < stuckAfter {
		return Finding{}, false // the time at which a serving group grew is not known
	}
	return onPool(p, fmt.Sprintf("for %s: %s", ago(ready.LastTransitionTime.Time, f.Now), ready.Message),
		"bcsnetctl pool describe "+p.Name), true
}

// notYet describes the addresses of a group that are not handed over to it.
func notYet(p *Pool) string {
	if p.Carving {
		return "its addresses are still to be"
	}
	return some(p.Withheld) + " still to be"
}

// obstacles returns, sorted, the leases that have blocked the handover to a group for a while. Cooling addresses are
// left out, because they become free by themselves.
func (f *facts) obstacles(p *Pool) (in []ipam.Obstacle) {
	for i := range f.Leases {
		l := &f.Leases[i]
		if !p.Withheld.Contains(l.Addr) || f.Now.Sub(l.Updated) < stuckAfter {
			continue
		}
		if o, is := p.Obstacle(*l, 0, f.Now); is {
			in = append(in, o)
		}
	}
	slices.SortFunc(in, func(a, b ipam.Obstacle) int { return a.Lease.Addr.Compare(b.Lease.Addr) })
	return in
}

// waitsForChildren returns the children that a deleted pool waits for, as text, and the next command. Both are empty if
// it has no children.
func (f *facts) waitsForChildren(p *Pool) (cause, fix string) {
	var groups, left []string
	for i := range f.Pools {
		if c := &f.Pools[i]; c.Parent == p.Name {
			if groups = append(groups, c.Name); !c.Terminating {
				left = append(left, c.Name)
			}
		}
	}
	slices.Sort(groups)
	slices.Sort(left)
	switch {
	case len(left) > 0:
		fix = "bcsnetctl pool delete " + left[0]
	case len(groups) > 0:
		fix = "bcsnetctl pool describe " + groups[0]
	}
	var parts []string
	if n := len(groups); n > 0 {
		parts = append(parts, fmt.Sprintf("its %s %s gone: %s", humanize.OneOr(n, "child", "children"),
			humanize.OneOr(n, "is", "are"), humanize.List(groups)))
	}
	if blocks := f.blocks[p.Name]; len(blocks) > 0 {
		parts = append(parts, fmt.Sprintf("%s %s taken back: %s", humanize.Plural(len(blocks), "block"),
			humanize.OneOr(len(blocks), "is", "are"), humanize.List(blocks)))
		if fix == "" {
			fix = "bcsnetctl pool tree " + p.Name
		}
	}
	return strings.Join(parts, "; and when "), fix
}
