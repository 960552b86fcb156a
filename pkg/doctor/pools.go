package doctor

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"go4.org/netipx"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

const (
	// nearlyFull is the part of a pool in use, in percent, above which it is nearly exhausted.
	nearlyFull = 90
	// Patience is the time for which a new pool may be without a status.
	Patience = time.Minute
	// stuckAfter is the time after which an unfinished deletion is stuck.
	stuckAfter = 5 * time.Minute
)

func onPool(p *Pool, cause, fix string) Finding {
	return Finding{Object: Object{"pool", p.Name}, Pools: []string{p.Name}, Cause: cause, Fix: fix}
}

// eachPool returns a check that examines every pool by itself, with the findings sorted by pool name.
func eachPool(ask func(*facts, *Pool) (Finding, bool)) func(*facts) []Finding {
	return func(f *facts) (out []Finding) {
		for i := range f.Pools {
			if found, ok := ask(f, &f.Pools[i]); ok {
				out = append(out, found)
			}
		}
		slices.SortStableFunc(out, func(a, b Finding) int { return cmp.Compare(a.Object.Name, b.Object.Name) })
		return out
	}
}

func poolInvalid(_ *facts, p *Pool) (Finding, bool) {
	return onPool(p, strings.ReplaceAll(p.Problem, "\n", "; "), "bcsnetctl pool edit "+p.Name),
		!p.Valid() && !p.BadParent
}

func poolNotReady(f *facts, p *Pool) (Finding, bool) {
	if !p.Valid() || p.Terminating {
		return Finding{}, false
	}
	ready := meta.FindStatusCondition(p.Object.Status.Conditions, v1.ConditionReady)
	no := func(reason string) bool {
		return ready != nil && ready.Status != metav1.ConditionTrue && ready.Reason == reason
	}
	switch {
	case p.HostSelector != nil && p.NoHosts():
		return onPool(p,
			fmt.Sprintf("no host may draw from it: its host selector %s matches no node that has an InternalIP",
				p.HostSelector), fmt.Sprintf("kubectl get nodes -l '%s'", p.HostSelector)), !f.blind
	case p.NoHosts():
		return onPool(p, "no host may draw from it", fmt.Sprintf("bcsnetctl pool add-host %s HOST", p.Name)), true
	case p.Object.Status.ObservedGeneration == 0:
		return onPool(p, "no controller has looked at it", fixController), f.Now.Sub(p.Created) > Patience
	case no(v1.ReasonNoAddresses): // this also depends on the addresses that other pools serve
		return onPool(p, "it has no address to allocate", fmt.Sprintf("bcsnetctl pool add-ip %s RANGE", p.Name)), true
	case no(v1.ReasonObjectsFailing):
		return onPool(p, ready.Message, "bcsnetctl pool describe "+p.Name), true
	default:
		return Finding{}, false
	}
}

// fill returns the number of addresses that a pool can allocate, and the numbers of used ones: held ones and, by the
// controller's count, cooling ones.
func (f *facts) fill(p *Pool) (used, cooling, capacity uint64) {
	used, capacity = f.used[p.Name], ipaddr.SizeOfSet(p.Plan.Usable)
	for _, a := range f.nodes.Addrs() {
		if l := f.leases[a]; p.Plan.Usable.Contains(a) && (l == nil || l.State == lease.Available) {
			capacity--
		}
	}
	if used < capacity {
		cooling = min(uint64(max(0, p.Object.Status.Cooling)), capacity-used)
	}
	return used + cooling, cooling, capacity
}

func poolExhausted(f *facts, p *Pool) (Finding, bool) {
	if !p.Serves() {
		return Finding{}, false
	}
	used, cooling, capacity := f.fill(p)
	cause := humanize.OneOr(capacity, "its only address is taken",
		fmt.Sprintf("all of its %d addresses are taken", capacity))
	if cooling > 0 {
		cause += fmt.Sprintf(", %d of them by the cooldown", cooling)
	}
	mend := fmt.Sprintf("bcsnetctl pool add-ip %s RANGE", p.Name)
	if n := f.leaked(p.Name); n > 0 {
		cause += fmt.Sprintf("; %d %s held for pods that are gone", n, humanize.OneOr(n, "is", "are"))
		mend = "bcsnetctl doctor --only leaks"
	}
	return onPool(p, cause, mend), capacity > 0 && used >= capacity
}

func poolNearExhaustion(f *facts, p *Pool) (Finding, bool) {
	if !p.Serves() {
		return Finding{}, false
	}
	used, cooling, capacity := f.fill(p)
	what := "in use or reserved"
	if cooling > 0 {
		what = "in use, reserved or cooling"
	}
	return onPool(p, fmt.Sprintf("%d of its %d addresses are %s, %d %s free", used, capacity, what, capacity-used,
			humanize.OneOr(capacity-used, "is", "are")),
			fmt.Sprintf("bcsnetctl pool add-ip %s RANGE", p.Name)), used < capacity &&
			float64(used) >= float64(capacity)*nearlyFull/100
}

// keepTooMany finds namespaces that keep more unused addresses of a pool than the pool has free.
func keepTooMany(f *facts) (out []Finding) {
	type share struct{ pool, namespace string }
	kept := map[share]uint64{}
	for i := range f.Leases {
		if l := &f.Leases[i]; l.State == lease.Reserved && l.Claim != "" {
			kept[share{l.Pool, cmp.Or(l.Namespace, lease.ClaimNamespace(l.Claim))}]++
		}
	}
	for at, n := range kept {
		p := f.pools[at.pool]
		if p == nil || !p.Serves() || !p.BoundsKept(at.namespace) {
			continue
		}
		used, _, capacity := f.fill(p)
		if free := capacity - min(used, capacity); n > free {
			out = append(out, onPool(p,
				fmt.Sprintf("namespace %s keeps %d of its addresses that no pod uses, and %d %s free",
					at.namespace, n, free, humanize.OneOr(free, "is", "are")), "bcsnetctl claim list -n "+at.namespace))
		}
	}
	slices.SortFunc(out, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Object.Name, b.Object.Name), cmp.Compare(a.Cause, b.Cause))
	})
	return out
}

// poolOverlap finds pairs of overlapping pools by scanning all ranges in order.
func poolOverlap(f *facts) (out []Finding) {
	seen := map[[2]*Pool]bool{}
	var open []poolRange // ranges that may overlap the next one
	for _, r := range f.ranges {
		open = slices.DeleteFunc(open, func(o poolRange) bool { return o.To().Less(r.From()) })
		for _, o := range open {
			pair := [2]*Pool{o.pool, r.pool}
			if pair[0].Name > pair[1].Name {
				pair[0], pair[1] = pair[1], pair[0]
			}
			if pair[0] != pair[1] && !seen[pair] {
				seen[pair] = true
				out = append(out, f.overlapping(pair[0], pair[1]))
			}
		}
		open = append(open, r)
	}
	slices.SortFunc(out, func(a, b Finding) int { return slices.Compare(a.Pools, b.Pools) })
	return out
}

// overlapping returns the finding for the pool that does not allocate the shared addresses.
func (f *facts) overlapping(a, b *Pool) Finding {
	set := ipaddr.Intersect(a.Plan.Usable, b.Plan.Usable)
	idle := b
	if ipam.Prevails(b.Pool, a.Pool, f.holds(b, set), f.holds(a, set)) {
		idle = a
	}
	found := onPool(a, fmt.Sprintf("%s also in pool %s", some(set), b.Name), removeFirst(idle, set))
	found.Pools = append(found.Pools, b.Name)
	return found
}

// holds reports whether leases of a pool hold any of some addresses.
func (f *facts) holds(p *Pool, set *netipx.IPSet) bool {
	return slices.ContainsFunc(f.Leases, func(l lease.Lease) bool {
		return l.Pool == p.Name && l.State != lease.Available && set.Contains(l.Addr)
	})
}

// removeFirst returns the command that removes the first range of a set from a pool.
func removeFirst(p *Pool, set *netipx.IPSet) string {
	return fmt.Sprintf("bcsnetctl pool remove-ip %s %s", p.Name, ipaddr.FormatRange(set.Ranges()[0]))
}

// some formats the first few ranges of a set.
func some(set *netipx.IPSet) string {
	var texts []string
	for _, r := range set.Ranges() {
		texts = append(texts, ipaddr.FormatRange(r))
	}
	if n := len(texts) - humanize.MaxNamed; n > 0 {
		return humanize.List(texts[:humanize.MaxNamed]) + " and " + humanize.Plural(n, "more range") + " are"
	}
	return humanize.List(texts) + " " + humanize.OneOr(ipaddr.SizeOfSet(set), "is", "are")
}

func poolOverlapsServices(f *facts) (out []Finding) {
	for i := range f.Pools {
		p := &f.Pools[i]
		for _, network := range f.Services {
			if p.Valid() && p.Plan.Usable.OverlapsPrefix(network) {
				set := ipaddr.Intersect(p.Plan.Usable, ipaddr.SetOf(netipx.RangeOfPrefix(network)))
				out = append(out, onPool(p, fmt.Sprintf("%s in the network %s of the cluster's Services", some(set),
					network),
					removeFirst(p, set)))
			}
		}
	}
	return out
}

// nodesInPools returns a check for nodes' addresses that are in pools: the held ones if leased is set, else the others.
func nodesInPools(leased bool) func(*facts) []Finding {
	return func(f *facts) (out []Finding) {
		for _, a := range f.nodes.Addrs() {
			l := f.leases[a]
			if held := l != nil && l.State == lease.Active; held != leased {
				continue
			}
			for p := range f.servedBy(a) {
				found := Finding{
					Object: ip(a), Pools: []string{p.Name}, Fix: fmt.Sprintf("bcsnetctl pool remove-ip %s %s", p.Name,
						a),
				}
				n, _ := f.nodes.Best(a)
				found.Cause = fmt.Sprintf("node %s has it, pool %s, too", n.Name, p.Name)
				if leased {
					found.Cause = fmt.Sprintf("node %s has it, and so has %s", n.Name, l.Who())
				}
				out = append(out, found)
			}
		}
		return out
	}
}

func poolStuck(f *facts, p *Pool) (Finding, bool) {
	since := p.Object.DeletionTimestamp
	if since == nil || f.Now.Sub(since.Time) < stuckAfter {
		return Finding{}, false
	}
	by := map[netip.Addr]int{}
	n, kept := 0, 0
	var claims []string
	for i := range f.Leases {
		switch l := &f.Leases[i]; {
		case l.Pool != p.Name:
		case l.State == lease.Active:
			by[l.Host]++
			n++
		case l.IsRetained():
			claims = append(claims, l.Claim)
			kept++
		}
	}
	waits, fix := f.waitsForChildren(p)
	switch {
	case waits != "":
	case n > 0:
		waits = fmt.Sprintf("%s in use %s released: on %s", humanize.Plural(n, "address"), humanize.OneOr(n, "is",
			"are"),
			onHosts(by))
		fix = "bcsnetctl lease list --pool " + p.Name
	case kept > 0:
		slices.Sort(claims)
		claims = slices.Compact(claims)
		waits = fmt.Sprintf("claims have given up %s: %s", humanize.Plural(kept, "address"), humanize.List(claims))
		fix = "bcsnetctl claim describe " + claims[0]
	default:
		return onPool(p, fmt.Sprintf("deleted %s ago; nothing is in use: no controller removes it",
			ago(since.Time, f.Now)), fixController), true
	}
	return onPool(p, fmt.Sprintf("deleted %s ago; it goes when %s", ago(since.Time, f.Now), waits), fix), true
}

func onHosts(by map[netip.Addr]int) string {
	var names []string
	for _, h := range inOrder(by) {
		if h.IsValid() {
			names = append(names, h.String())
		} else {
			names = append(names, "no host")
		}
	}
	return humanize.List(names)
}

// stuckDeletions finds deletions that do not end: of pools, then of addresses.
func stuckDeletions(f *facts) []Finding {
	return append(eachPool(poolStuck)(f), addressesStuck(f)...)
}
