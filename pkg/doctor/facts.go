package doctor

import (
	"net/netip"
	"slices"
	"sort"
	"strings"
	"time"

	"go4.org/netipx"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/bcsnet/bcsnet/pkg/hosts"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// facts are a snapshot with indexes, which are built once for all checks.
type facts struct {
	*Snapshot
	// given are the pools in the snapshot, including blocks.
	given  []Pool
	pools  map[string]*Pool
	leases map[netip.Addr]*lease.Lease
	byName map[podKey][]*lease.Lease
	pods   map[podKey]*workload.Pod
	// blocks are the sorted names of the blocks of split pools, by pool.
	blocks map[string][]string
	nodes  *hosts.Table
	// listed are the pools that list a host; active is the number of addresses in use on it. covering are the pools
	// that have host subnets or a host selector.
	listed   map[netip.Addr][]string
	active   map[netip.Addr]int
	covering []*Pool
	// blind reports whether pools have host selectors, but the nodes are not known.
	blind bool
	// ranges are the ranges of all pools, sorted.
	ranges []poolRange
	// used is the number of held addresses in a pool's plan.
	used map[string]uint64
	// leaks are the findings of the checks for leaks; nil before the first of them runs.
	leaks map[string][]Finding
}

type podKey struct{ namespace, name string }

// poolRange is a range of a pool's addresses; end is the highest end of all ranges up to this one.
type poolRange struct {
	netipx.IPRange
	pool *Pool
	end  netip.Addr
}

func newFacts(s *Snapshot) *facts {
	given := s.Pools
	s, blocks := s.wholePools()
	f := &facts{
		Snapshot: s, given: given, blocks: blocks,
		pools:  make(map[string]*Pool, len(s.Pools)),
		leases: make(map[netip.Addr]*lease.Lease, len(s.Leases)),
		byName: map[podKey][]*lease.Lease{},
		pods:   make(map[podKey]*workload.Pod, len(s.Pods)),
		nodes:  hosts.NewTable(s.Nodes...),
		listed: map[netip.Addr][]string{}, active: map[netip.Addr]int{}, used: map[string]uint64{},
	}
	f.addPools()
	for i := range s.Pods {
		f.pods[podKey{s.Pods[i].Namespace, s.Pods[i].Name}] = &s.Pods[i]
	}
	for i := range s.Leases {
		l := &s.Leases[i]
		f.leases[l.Addr] = l
		for side := range l.Attachments() {
			if side.PodName != "" {
				name := podKey{side.Namespace, side.PodName}
				f.byName[name] = append(f.byName[name], &side)
			}
			if side.State == lease.Active {
				f.active[side.Host]++
			}
		}
		if l.State != lease.Available {
			for p := range f.servedBy(l.Addr) {
				f.used[p.Name]++
			}
		}
	}
	return f
}

func (f *facts) addPools() {
	arranged := make([]ipam.Pool, 0, len(f.Pools))
	for i := range f.Pools {
		arranged = append(arranged, f.Pools[i].Pool)
	}
	arranged = ipam.Arrange(arranged)
	snapshot := *f.Snapshot // the original belongs to the caller
	snapshot.Pools = slices.Clone(f.Pools)
	f.Snapshot = &snapshot
	for i := range f.Pools {
		p := &f.Pools[i]
		p.Pool = arranged[i].WithNodes(f.eachNode)
		f.pools[p.Name] = p
		for h := range p.Hosts {
			f.listed[h] = append(f.listed[h], p.Name)
		}
		if len(p.HostSubnets) > 0 || p.HostSelector != nil {
			f.covering = append(f.covering, p)
		}
		f.blind = f.blind || p.HostSelector != nil && len(f.Nodes) == 0
		if p.Valid() {
			for _, r := range p.Plan.Usable.Ranges() {
				f.ranges = append(f.ranges, poolRange{IPRange: r, pool: p})
			}
		}
	}
	slices.SortStableFunc(f.ranges, func(a, b poolRange) int { return a.From().Compare(b.From()) })
	for i := range f.ranges {
		f.ranges[i].end = f.ranges[i].To()
		if i > 0 && f.ranges[i].end.Less(f.ranges[i-1].end) {
			f.ranges[i].end = f.ranges[i-1].end
		}
	}
}

func (f *facts) eachNode(yield func(ipam.Node) bool) {
	for _, n := range f.Nodes {
		if !yield(ipam.Node{Addrs: n.Addrs, Internal: n.Internal, Labels: n.Labels}) {
			return
		}
	}
}

// drawsFrom reports whether a host may draw from any pool. If that is not known, it returns true.
func (f *facts) drawsFrom(h netip.Addr) bool {
	return f.blind || len(f.listed[h]) > 0 || slices.ContainsFunc(f.covering, func(p *Pool) bool { return p.Draws(h) })
}

// servedBy iterates over the pools whose plan contains an address; more than one if pools overlap.
func (f *facts) servedBy(a netip.Addr) func(yield func(*Pool) bool) {
	return func(yield func(*Pool) bool) {
		after := sort.Search(len(f.ranges), func(i int) bool { return a.Less(f.ranges[i].From()) })
		for i := after - 1; i >= 0 && !f.ranges[i].end.Less(a); i-- {
			if f.ranges[i].Contains(a) && !yield(f.ranges[i].pool) {
				return
			}
		}
	}
}

// pod returns the pod with a holder's name; nil if there is none.
func (f *facts) pod(h lease.Holder) *workload.Pod { return f.pods[podKey{h.Namespace, h.PodName}] }

// others returns the leases that name the pod of a lease.
func (f *facts) others(l lease.Lease, _ string) (all []lease.Lease) {
	for _, o := range f.byName[podKey{l.Namespace, l.PodName}] {
		all = append(all, *o)
	}
	return all
}

// settling reports whether something changed too recently to be judged.
func settling(changed, now time.Time) bool { return !changed.IsZero() && now.Sub(changed) < Settling }

// ago returns the time since t, in kubectl's form.
func ago(t, now time.Time) string { return duration.HumanDuration(max(0, now.Sub(t))) }

// held describes the host of a lease and the beginning of the lease.
func held(l lease.Lease, now time.Time) string {
	text := "held"
	if !l.Updated.IsZero() {
		text += " for " + ago(l.Updated, now)
	}
	if l.Host.IsValid() {
		text += " on " + l.Host.String()
	}
	return text
}

func addrs(all []netip.Addr) string {
	var out []string
	for _, a := range all {
		out = append(out, a.String())
	}
	return strings.Join(out, ", ")
}

// inOrder returns the addresses of a map, sorted.
func inOrder[V any](m map[netip.Addr]V) []netip.Addr {
	out := make([]netip.Addr, 0, len(m))
	for a := range m {
		out = append(out, a)
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return out
}
