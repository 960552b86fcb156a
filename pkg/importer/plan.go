package importer

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// Input has what a plan is made from.
type Input struct {
	Rows

	// Index has the pools and leases of this system, Ours its claims by namespace/name. Planning adds the new pools.
	Index *index.Index
	Ours  map[string]*v1.BCSNetIPClaim
	// Here are the pools here by name, for a backup.
	Here map[string]*v1.BCSNetPool
	Pods []workload.Pod
	// Now is the API server's time before anything was read.
	Now time.Time
	// By names who imports, for the history of addresses.
	By string
	// OnlyPodsHere: an address of a backup whose pod does not exist is given up, as if the pod had ended now. Without
	// it, the lease is made, and the controller finds out that the pod is gone.
	OnlyPodsHere bool
}

// Plan lists what to make, in this order: claims before the leases that name them.
type Plan struct {
	Pools  []v1.BCSNetPool
	Claims []v1.BCSNetIPClaim
	// Leases have the versions of the objects that they replace, 0 if there is none.
	Leases []lease.Lease
	// Uncordon names the pools that are cordoned only until the leases are made.
	Uncordon []string
	// Closed names the pools of a backup that stay cordoned, as they were, and are only marked until then.
	Closed []string
	// Reported has the pools of which running pods report an address that nobody has after a restore, and the first.
	Reported map[string]netip.Addr
	// Already is the number of addresses that are here as they should be.
	Already int
	// Elsewhere is the number of addresses that are kept for no pod and lie in no pool: there is nothing to reserve.
	Elsewhere int
	// Conflicts are contradictions that somebody has to resolve.
	Conflicts []Remark
	// Left are the objects that are deliberately not taken over, or not entirely.
	Left []Remark
}

type maker struct {
	Input
	plan Plan
	// bound maps an address to the claims that are bound to it.
	bound map[netip.Addr][]string
	// claims has the object of each claim of the other system, and unusable the reason for those that are not taken
	// over; both by namespace/name.
	claims, unusable map[string]string
	// reporters maps an address to the running pods that report it; pods are all, by namespace/name. There may be as
	// many pods as addresses, so none is copied.
	reporters map[netip.Addr][]*workload.Pod
	pods      map[string]*workload.Pod
	// left is the number of rows that are not planned yet.
	left int
}

// Make plans the pools, claims and leases of the rows. Running pods count more than objects. An address whose objects
// contradict each other is reserved: nobody gets it until somebody has decided.
func Make(in Input) Plan {
	m := maker{
		Input: in, bound: map[netip.Addr][]string{}, claims: map[string]string{}, unusable: map[string]string{},
		reporters: map[netip.Addr][]*workload.Pod{}, pods: make(map[string]*workload.Pod, len(in.Pods)),
		plan: Plan{Conflicts: slices.Clone(in.Conflicts), Left: slices.Clone(in.Left)},
	}
	for i := range in.Pods {
		p := &in.Pods[i]
		m.pods[p.Namespace+"/"+p.Name] = p
		if p.Ended || p.HostNetwork {
			continue
		}
		for _, a := range p.Addrs {
			m.reporters[a] = append(m.reporters[a], p)
		}
	}
	m.planPools()
	m.planClaims()
	rows := m.sorted()
	for len(rows) > 0 {
		m.left = len(rows)
		n := 1
		for n < len(rows) && rows[n].Addr == rows[0].Addr {
			n++
		}
		m.planAddress(m.one(rows[:n]))
		rows = rows[n:]
	}
	if m.Stored != nil {
		m.planReported()
	}
	return m.plan
}

// add plans a lease.
func (m *maker) add(l lease.Lease) {
	if m.plan.Leases == nil {
		m.plan.Leases = make([]lease.Lease, 0, m.left)
	}
	m.plan.Leases = append(m.plan.Leases, l)
}

func (m *maker) conflict(object, format string, args ...any) {
	m.plan.Conflicts = append(m.plan.Conflicts, Remark{object, fmt.Sprintf(format, args...)})
}

// sorted returns the rows by their addresses, and of one address in the order of the reader. Addresses to which a claim
// is bound have one also if they have no object.
func (m *maker) sorted() []*Address {
	rows := make([]*Address, len(m.Addresses), len(m.Addresses)+len(m.bound))
	known := make(map[netip.Addr]bool, len(m.bound))
	for i := range m.Addresses {
		rows[i] = &m.Addresses[i]
		if _, bound := m.bound[rows[i].Addr]; bound {
			known[rows[i].Addr] = true
		}
	}
	for a := range m.bound {
		if !known[a] {
			rows = append(rows, &Address{Addr: a, Object: "address " + a.String()})
		}
	}
	slices.SortStableFunc(rows, func(a, b *Address) int { return a.Compare(b.Addr) })
	return rows
}

// one returns the row that counts of those of one address: a held one before others, and of two holders the one whose
// pod reports the address. If that decides nothing, the address is unclear.
func (m *maker) one(rows []*Address) Address {
	best := *rows[0]
	for _, other := range rows[1:] {
		row := *other
		switch {
		case row.State != Held, best.State == Held && best.holder() == row.holder():
		case best.State != Held:
			best = row
		case m.reports(row) && !m.reports(best):
			best = row
		case m.reports(best) && !m.reports(row):
		default:
			best.State, best.Reason = Unclear, fmt.Sprintf("%s has %s, and %s has %s",
				best.Object, best.holder(), row.Object, row.holder())
			return best
		}
	}
	return best
}

// reports reports whether the pod of a row is one that reports its address.
func (m *maker) reports(row Address) bool {
	return slices.ContainsFunc(m.reporters[row.Addr], func(p *workload.Pod) bool {
		return p.Namespace+"/"+p.Name == row.pod()
	})
}

// planAddress plans one address.
func (m *maker) planAddress(row Address) {
	a := row.Addr
	key, cause := m.claimOf(row)
	if row.State == Free && row.Lease == nil && key == "" && cause == "" {
		return
	}
	pool, served := m.Index.Pools.OwnerOf(a)
	if row.Lease != nil && row.Lease.State == lease.Available && !served {
		return // nobody can get it here
	}
	if !served && row.State == Kept && key == "" && cause == "" {
		m.plan.Elsewhere++ // nobody can get it here
		return
	}
	if !served {
		m.conflict(row.Object, "%s belongs to no pool", a)
		return
	}
	p, _ := m.Index.Pools.Get(pool)
	now, _ := m.Index.Leases.Get(a)
	target := target{maker: m, row: row, now: now, params: p.Params(), claim: key}
	switch {
	case row.Lease != nil:
		target.again(*row.Lease, cause)
	case row.State == Held && row.Reason != "" && !m.runs(row):
		target.aside(row.Reason)
	case row.State == Held:
		h, why := m.holder(row)
		if why != "" {
			m.conflict(row.Object, "%s", why)
		}
		if cause != "" {
			m.conflict(row.Object, "%s", cause)
		}
		if h.PodName == "" {
			target.aside(why)
			return
		}
		target.hold(h)
	case row.State == Unclear:
		m.conflict(row.Object, "%s", row.Reason)
		target.aside(row.Reason)
	case cause != "":
		m.conflict(row.Object, "%s", cause)
		target.aside(cause)
	case key != "":
		target.keepForClaim()
	default:
		target.aside(row.Reason)
	}
}

// runs reports whether the pod of a Held address runs, or another one that reports the address.
func (m *maker) runs(row Address) bool {
	p, exists := m.pods[row.pod()]
	return len(m.reporters[row.Addr]) > 0 || exists && !p.Ended
}

// holder returns the holder of a Held address. It has no pod name if that is not known; cause says why, or what is
// wrong with the object.
func (m *maker) holder(row Address) (h lease.Holder, cause string) {
	h = row.Holder
	h.IfName = cmp.Or(h.IfName, lease.DefaultIfName)
	h.StartedAt = m.since(row)
	pods := m.reporters[row.Addr]
	if i := slices.IndexFunc(pods, func(p *workload.Pod) bool { return p.Namespace+"/"+p.Name == row.pod() }); i >= 0 {
		h = of(h, pods[i])
		if len(pods) > 1 {
			other := pods[(i+1)%len(pods)]
			cause = fmt.Sprintf("pods %s and %s/%s report it: it stays with the first, which the object names",
				row.pod(), other.Namespace, other.Name)
		}
		return h, cause
	}
	switch pod, exists := m.pods[row.pod()]; {
	case len(pods) == 1 && row.pod() == "":
		h.Namespace, h.PodName = pods[0].Namespace, pods[0].Name
		return of(h, pods[0]), ""
	case len(pods) == 1: // nothing is known of the container
		h = of(lease.Holder{
			IfName: lease.DefaultIfName, Namespace: pods[0].Namespace, PodName: pods[0].Name, StartedAt: m.Now,
		}, pods[0])
		return h, fmt.Sprintf("%s has it there, but %s reports it and gets it", row.holder(), h.Who())
	case len(pods) > 1:
		return lease.Holder{}, fmt.Sprintf("%s has it there, but %d other pods report it", row.holder(),
			len(pods))
	case row.pod() == "" && h.ContainerID == "":
		return lease.Holder{}, "it is Active for no pod"
	case row.pod() == "":
		return lease.Holder{}, fmt.Sprintf("%s has it there, but no running pod reports it", row.holder())
	case exists && h.PodUID != "" && pod.UID != h.PodUID: // an earlier pod of the name
	case exists && !pod.Ended && !pod.Deleting && len(pod.Addrs) > 0:
		return lease.Holder{}, fmt.Sprintf("%s has it there, but reports %s", row.pod(), pod.Addrs[0])
	case exists && !pod.Ended && !m.since(row).Before(pod.Created): // it reports nothing yet
		h = of(h, pod)
	}
	return h, ""
}

// of returns the holder as the pod completes it: its UID, and its host unless the other system stores that.
func of(h lease.Holder, p *workload.Pod) lease.Holder {
	h.PodUID = p.UID
	if !h.Host.IsValid() && len(p.HostIPs) > 0 {
		h.Host = p.HostIPs[0]
	}
	return h
}

// since returns when the other system last changed an address, or now if it does not store that.
func (m *maker) since(row Address) time.Time {
	if !row.Updated.IsZero() && row.Updated.Before(m.Now) {
		return row.Updated
	}
	return m.Now
}

// reason returns the reason of a reserved address.
func (m *maker) reason(why string) string { return m.System + ": " + why }

// label returns the label of what the import makes.
func (m *maker) label() map[string]string { return map[string]string{v1.ImportedLabel: m.System} }
