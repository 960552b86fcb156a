package index

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/ipam/ledger"
)

// model is what the index should know, kept as plainly as possible: the objects and their history as
// the API server has them, what of it the index was told, and the pools.
type model struct {
	log   []fact // every change of an object, in order; the index of a change is its version less one
	seen  uint64
	told  map[netip.Addr][]fact // what was told beside the watch
	pools map[string]ipam.Pool
	holds map[netip.Addr]ledger.Assumed
	lost  map[netip.Addr]lease.Lease
	nodes map[string]ipam.Node
	// labels has the namespaces that are known.
	labels map[string]map[string]string
	now    time.Time
}

// fact is the state of an address at a version. That of a delete of ours is known only as "after" the
// version that was deleted.
type fact struct {
	version uint64
	after   bool
	lease   lease.Lease
	gone    bool
}

func newModel() *model {
	return &model{
		told: map[netip.Addr][]fact{}, pools: map[string]ipam.Pool{}, holds: map[netip.Addr]ledger.Assumed{},
		lost: map[netip.Addr]lease.Lease{}, nodes: map[string]ipam.Node{},
		labels: map[string]map[string]string{},
		now:    now,
	}
}

// at is the state of all objects at a version.
func (m *model) at(version uint64) map[netip.Addr]lease.Lease {
	all := map[netip.Addr]lease.Lease{}
	for _, f := range m.log[:version] {
		if delete(all, f.lease.Addr); !f.gone {
			all[f.lease.Addr] = f.lease
		}
	}
	return all
}

// stored is what the API server has now.
func (m *model) stored() map[netip.Addr]lease.Lease { return m.at(uint64(len(m.log))) }

// commit is a change of an object.
func (m *model) commit(l lease.Lease, gone bool) fact {
	l.Version = uint64(len(m.log)) + 1
	f := fact{version: l.Version, lease: l, gone: gone}
	m.log = append(m.log, f)
	return f
}

// known is what the index should show: of each address the newest thing that it was told.
func (m *model) known() map[netip.Addr]lease.Lease {
	newest := map[netip.Addr]fact{}
	learn := func(f fact) {
		old, ok := newest[f.lease.Addr]
		if !ok || old.version < f.version || old.version == f.version && !old.after {
			newest[f.lease.Addr] = f
		}
	}
	for _, f := range m.log[:m.seen] {
		learn(f)
	}
	for _, facts := range m.told {
		for _, f := range facts {
			learn(f)
		}
	}
	all := map[netip.Addr]lease.Lease{}
	for a, f := range newest {
		if !f.gone {
			all[a] = f.lease
		}
	}
	return all
}

func (m *model) occupied(a netip.Addr, known map[netip.Addr]lease.Lease) bool {
	l, ok := known[a]
	_, held := m.holds[a]
	_, lost := m.lost[a]
	return ok && (l.State != lease.Available || l.Deleting) || held || lost || m.nodeOf(a) != ""
}

// rests is the rule of the cooldown: it counts from the release, which an address that was held shows by
// its time, or by its history where somebody set it aside since.
func (m *model) rests(p ipam.Pool, l lease.Lease) bool {
	if p.Cooldown == 0 || l.State != lease.Available || l.Updated.IsZero() {
		return false
	}
	released := l.Updated
	for i, e := range l.History.Entries() {
		if e.Holder != "" && i > 0 {
			released = e.Until.Add(time.Second)
		}
		if e.Holder != "" {
			break
		}
		if i == len(l.History.Entries())-1 && i < lease.MaxHistory-1 {
			return false // nobody ever held it
		}
	}
	return released.Add(p.Cooldown).After(m.now)
}

// had reports whether the requester had the address last.
func had(w ipam.PickRequest, l lease.Lease) bool {
	for _, e := range l.History.Entries() {
		if e.Holder != "" {
			return e.Holder == w.Holder
		}
	}
	return false
}

func (m *model) nodeOf(a netip.Addr) string {
	var names []string
	for name, n := range m.nodes {
		if slices.Contains(n.Addrs, a) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return slices.Min(names)
}

// usable are the addresses of a pool.
func (m *model) usable(name string) map[netip.Addr]bool {
	p := m.pools[name]
	all := map[netip.Addr]bool{}
	if p.Valid() {
		for _, a := range p.Plan.Addresses(true) {
			all[a] = true
		}
	}
	return all
}

// serving says which pool serves each address: the one that beats every other pool that has it.
func (m *model) serving(known map[netip.Addr]lease.Lease) map[netip.Addr]string {
	usable := map[string]map[netip.Addr]bool{}
	for name := range m.pools {
		usable[name] = m.usable(name)
	}
	out := map[netip.Addr]string{}
	for name := range m.pools {
		wins := maps.Clone(usable[name])
		for other := range m.pools {
			if other == name || m.beats(name, other, usable, known) {
				continue
			}
			for a := range usable[other] {
				delete(wins, a)
			}
		}
		for a := range wins {
			out[a] = name
		}
	}
	return out
}

func (m *model) beats(
	name, other string, usable map[string]map[netip.Addr]bool, known map[netip.Addr]lease.Lease,
) bool {
	holds := func(pool string) bool {
		for a, l := range known {
			if l.Pool == pool && l.State != lease.Available && usable[name][a] && usable[other][a] {
				return true
			}
		}
		return false
	}
	p, q := m.pools[name], m.pools[other]
	switch {
	case p.Terminating != q.Terminating:
		return q.Terminating
	case holds(name) != holds(other):
		return holds(name)
	case !p.Created.Equal(q.Created):
		return p.Created.Before(q.Created)
	default:
		return name < other
	}
}

// fits is the rule of who may draw from a pool.
func (m *model) fits(p ipam.Pool, w ipam.PickRequest) bool {
	bound := false
	for _, q := range m.pools {
		bound = bound || m.bound(q, w.Namespace)
	}
	serves := !bound
	switch {
	case len(p.Namespaces) > 0 || p.NamespaceSelector != nil:
		serves = m.bound(p, w.Namespace)
	case p.NotDefault:
		serves = w.Network != ""
	}
	_, host := p.Hosts[w.Host]
	for n := range p.HostSubnets {
		host = host || n.Contains(w.Host)
	}
	for _, n := range m.nodes {
		host = host || p.HostSelector != nil && p.HostSelector.Matches(n.Labels) && slices.Contains(n.Internal, w.Host)
	}
	return host && serves && (w.Network == "" || w.Network == p.Network)
}

// bound is the rule of whom a pool is bound to.
func (m *model) bound(p ipam.Pool, namespace string) bool {
	_, named := p.Namespaces[namespace]
	labels, known := m.labels[namespace]
	return named || known && p.NamespaceSelector != nil && p.NamespaceSelector.Matches(labels)
}

// undetermined is the rule of a namespace whose labels are not known, while pools choose by labels.
func (m *model) undetermined(namespace string) bool {
	choosing := false
	for _, p := range m.pools {
		if m.bound(p, namespace) {
			return false
		}
		choosing = choosing || p.NamespaceSelector != nil
	}
	_, known := m.labels[namespace]
	return choosing && namespace != "" && !known
}

func (m *model) fitting(w ipam.PickRequest, network string, only string) (fit []ipam.Pool) {
	for _, p := range m.pools {
		if m.fits(p, w) && (only == p.Name || only == "" || network != "" && p.Network == network) {
			fit = append(fit, p)
		}
	}
	slices.SortFunc(fit, func(a, b ipam.Pool) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority),
			cmp.Compare(a.Name, b.Name))
	})
	return fit
}

// pick is what Pick should give, as "pool address"; ok is false when it should refuse.
func (m *model) pick(w ipam.PickRequest) (picks []string, ok bool) {
	if m.undetermined(w.Namespace) {
		return nil, false
	}
	known := m.known()
	serving := m.serving(known)
	families := map[ipaddr.Family]bool{}
	for _, l := range w.Have {
		families[ipaddr.FamilyOf(l.Addr)] = true
	}
	var first *ipam.Pool
	var networks []string // of what is asked for and held
	for _, a := range w.Addrs {
		if slices.ContainsFunc(w.Have, func(l lease.Lease) bool { return l.Addr == a }) {
			continue
		}
		p, served := m.pools[serving[a]]
		if !served || !m.fits(p, w) || p.Cordoned || p.Terminating || !p.Valid() || m.occupied(a, known) ||
			m.rests(p, known[a]) && !had(w, known[a]) || m.hostFull(p, w, known, picks) || m.overQuota(p, w, known, picks) {
			return nil, false
		}
		picks, families[ipaddr.FamilyOf(a)] = append(picks, p.Name+" "+a.String()), true
		if networks = append(networks, p.Network); first == nil {
			first = &p
		}
	}
	for _, l := range w.Have {
		if p, ok := m.pools[l.Pool]; ok {
			networks = append(networks, p.Network)
		}
	}
	if slices.Sort(networks); len(picks) > 0 && len(slices.Compact(networks)) > 1 {
		return nil, false
	}
	rest := func(from []ipam.Pool) ([]string, bool) {
		picks := slices.Clone(picks)
		for _, f := range ipaddr.Families() {
			if families[f] || !slices.ContainsFunc(from, func(p ipam.Pool) bool { return p.Family() == f && p.Valid() }) {
				continue
			}
			got := ""
			for _, p := range from {
				if got == "" && p.Family() == f && !m.hostFull(p, w, known, picks) && !m.overQuota(p, w, known, picks) {
					got = m.firstFree(p, w.Key, known, serving)
				}
			}
			if got == "" {
				return nil, false
			}
			picks = append(picks, got)
		}
		return picks, true
	}
	if len(w.Have) > 0 {
		for _, l := range w.Have {
			if p, ok := m.pools[l.Pool]; ok {
				if from := m.fitting(w, p.Network, p.Name); len(from) > 0 {
					return rest(from)
				}
			}
		}
		return picks, true
	}
	if first != nil {
		return rest(m.fitting(w, first.Network, first.Name))
	}
	for _, p := range m.fitting(w, "", "") {
		if picks, ok := rest(m.fitting(w, p.Network, p.Name)); ok && len(picks) > 0 {
			return picks, true
		}
	}
	return nil, false
}

// hostFull is the rule of maxPerHost: what the host has of the pool, is being given, and is chosen for it already.
func (m *model) hostFull(p ipam.Pool, w ipam.PickRequest, known map[netip.Addr]lease.Lease, picks []string) bool {
	on := map[netip.Addr]bool{}
	for _, leases := range []map[netip.Addr]lease.Lease{known, m.lost} {
		for a, l := range leases {
			if _, here := l.From(func(l lease.Lease) bool { return l.Host == w.Host }); here && l.State == lease.Active &&
				l.Pool == p.Name {
				on[a] = true
			}
		}
	}
	for a, h := range m.holds {
		if h.Host == w.Host && h.Pool == p.Name {
			on[a] = true
		}
	}
	for _, pick := range picks {
		if pool, a, _ := strings.Cut(pick, " "); pool == p.Name {
			on[ip(a)] = true
		}
	}
	return p.MaxPerHost > 0 && len(on) >= p.MaxPerHost
}

func (m *model) firstFree(p ipam.Pool, key string, known map[netip.Addr]lease.Lease, serving map[netip.Addr]string) string {
	if p.Cordoned || p.Terminating || !p.Valid() {
		return ""
	}
	var served []netip.Addr
	for _, a := range p.Plan.Addresses(true) {
		if serving[a] == p.Name {
			served = append(served, a)
		}
	}
	for i := range served {
		n := uint64(len(served))
		a := served[(xxhash.Sum64String(key)%n+uint64(i))%n]
		if !m.occupied(a, known) && !m.rests(p, known[a]) {
			return p.Name + " " + a.String()
		}
	}
	return ""
}
