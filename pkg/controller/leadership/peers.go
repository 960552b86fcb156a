package leadership

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/bcsnet/bcsnet/pkg/doctor"
	"github.com/bcsnet/bcsnet/pkg/httpapi"
	"github.com/bcsnet/bcsnet/pkg/replica"
)

// nameLabel is the label of the Leases of the leader and of the replicas.
const nameLabel = "app.kubernetes.io/name"

// keyAnnotation is the annotation of a replica's Lease with the public half of its key.
const keyAnnotation = "networkextension.bkbcs.tencent.com/key"

// knowsAnnotation is the annotation of a replica's Lease that lists, separated by commas, the object fields that it
// knows and another release may not. A replica that does not know a field in a lease would free an address that has a
// holder.
const knowsAnnotation = "networkextension.bkbcs.tencent.com/knows"

// SecondAttachments is the field of an address that two pods of a virtual machine have.
const SecondAttachments = "status.secondAttachment"

// LeaseLabels returns the labels of the Leases of the leader and of the replicas.
func LeaseLabels() map[string]string { return map[string]string{nameLabel: doctor.ControllerName} }

// Peers has this replica, and the others by the watch of their Leases.
type Peers struct {
	self  replica.Identity
	key   replica.Key
	leads *Terms
	now   func() time.Time
	// changed receives a value when the leader's Lease has changed.
	changed chan struct{}
	// synced reports whether the Leases of the others have been read; nil if there are no others.
	synced func() bool

	mu     sync.Mutex
	leases map[string]peerRecord // by the name of the Lease
}

// peerRecord is the Lease of another replica and the time at which this replica last saw it change. The clocks of
// others are not used.
type peerRecord struct {
	holder, version string
	term            time.Duration
	since           time.Time
	seen            time.Time
	// key is the public half of the replica's key; secret is shared with the replica, nil without a key.
	key    string
	secret []byte
	// knows are the fields that the replica knows by its own account.
	knows []string
}

func newPeers(self replica.Identity, key replica.Key, leads *Terms) *Peers {
	return &Peers{
		self: self, key: key, leads: leads, now: time.Now, changed: make(chan struct{}, 1),
		leases: map[string]peerRecord{},
	}
}

// set records a new or changed Lease.
func (p *Peers) set(l *coordinationv1.Lease) {
	s := peerRecord{version: l.ResourceVersion, seen: p.now(), key: l.Annotations[keyAnnotation],
		knows: strings.Split(l.Annotations[knowsAnnotation], ",")}
	if l.Spec.HolderIdentity != nil {
		s.holder = *l.Spec.HolderIdentity
	}
	if l.Spec.LeaseDurationSeconds != nil {
		s.term = time.Duration(*l.Spec.LeaseDurationSeconds) * time.Second
	}
	if l.Spec.AcquireTime != nil {
		s.since = l.Spec.AcquireTime.Time
	}
	p.mu.Lock()
	before := p.leases[l.Name]
	p.mu.Unlock()
	if s.secret = before.secret; s.key != before.key {
		s.secret, _ = p.key.Share(s.key) // a replica without a valid key shares no secret
	}
	p.mu.Lock()
	p.leases[l.Name] = s
	p.mu.Unlock()
	p.notify(l.Name)
}

// remove forgets a Lease.
func (p *Peers) remove(l *coordinationv1.Lease) {
	p.mu.Lock()
	delete(p.leases, l.Name)
	p.mu.Unlock()
	p.notify(l.Name)
}

func (p *Peers) notify(name string) {
	if name != LeaseName {
		return
	}
	select {
	case p.changed <- struct{}{}:
	default: // it is full: its reader will see the newest state
	}
}

// holder returns the holder of the leader's Lease, even if it has expired.
func (p *Peers) holder() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.leases[LeaseName].holder
}

func (p *Peers) fresh(s peerRecord) bool { return s.holder != "" && p.now().Sub(s.seen) < s.term }

// Self returns this replica.
func (p *Peers) Self() replica.Identity { return p.self }

// Leading reports whether this replica leads.
func (p *Peers) Leading() bool { return p.leads.Leading() }

// Leader returns the holder of the leader's Lease, unless that has expired.
func (p *Peers) Leader() (httpapi.Leader, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.leases[LeaseName]
	return httpapi.Leader{Identity: replica.Parse(s.holder), Since: s.since}, p.fresh(s)
}

// Replicas returns this replica and those with a fresh heartbeat.
func (p *Peers) Replicas() []replica.Identity {
	all := []replica.Identity{p.self}
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, s := range p.leases {
		if who := replica.Parse(s.holder); name != LeaseName && p.fresh(s) && who.ID() != p.self.ID() {
			all = append(all, who)
		}
	}
	slices.SortFunc(all, func(a, b replica.Identity) int { return cmp.Compare(a.ID(), b.ID()) })
	return all
}

// Others returns the URLs at which other replicas are, or were. The Lease of an ended replica stays for a while. After
// a restore of the store, the Leases of later lives are missing, but these often have the URL of an earlier one. known
// is false until the Leases have been read.
func (p *Peers) Others() (urls []string, known bool) {
	if p.synced == nil {
		return nil, true
	}
	if !p.synced() {
		return nil, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.leases {
		if at := replica.Parse(s.holder).URL; at != "" && at != p.self.URL {
			urls = append(urls, at)
		}
	}
	slices.Sort(urls)
	return slices.Compact(urls), true
}

// Unaware returns a replica that does not claim to know a field; empty if all do. A replica that was killed or is cut
// off counts for as long as its Lease exists, because it may come back. So does a leader without a heartbeat.
func (p *Peers) Unaware(field string) string {
	if p.synced == nil {
		return "" // there are no others
	}
	if !p.synced() {
		return "another replica, whose Lease is still to be read,"
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	aware := map[string]bool{p.self.ID(): true}
	var unaware []string
	for name, s := range p.leases {
		who := replica.Parse(s.holder).ID()
		if name == LeaseName || who == "" || who == p.self.ID() {
			continue
		}
		if aware[who] = slices.Contains(s.knows, field); !aware[who] {
			unaware = append(unaware, who)
		}
	}
	if l := p.leases[LeaseName]; p.fresh(l) {
		if who := replica.Parse(l.holder).ID(); !aware[who] {
			unaware = append(unaware, who)
		}
	}
	if len(unaware) == 0 {
		return ""
	}
	return "replica " + slices.Min(unaware)
}

// Secret returns the secret that this replica shares with another one, by the key in the other one's Lease.
func (p *Peers) Secret(id string) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	who := replica.Parse(id)
	s := p.leases[heartbeatName(who)]
	if who.Life == "" || replica.Parse(s.holder).ID() != id {
		return nil
	}
	return s.secret
}

// stale returns the Leases of replicas that have been silent for long, with the versions that were seen.
func (p *Peers) stale(after time.Duration) map[string]string {
	versions := map[string]string{}
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, s := range p.leases {
		if name != LeaseName && p.now().Sub(s.seen) >= after {
			versions[name] = s.version
		}
	}
	return versions
}
