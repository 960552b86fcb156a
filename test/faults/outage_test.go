package faults_test

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// victims are the replicas that are killed while etcd is put back.
type victims string

const (
	nobody       victims = ""
	leaderAlone  victims = ", the leader killed"
	allButOne    victims = ", all replicas but one killed"
	everybody    victims = ", all replicas killed"
	eventAllDead         = "event restore without any replica alive"
	eventLate            = "event restore without any replica until kubelets had ended the pods that the copy lacks"
	eventRaised          = "event restore with raised versions"
	eventWitness         = "event restore with a replica that asks another one"
)

// outage is how etcd is put back, and what befalls the replicas meanwhile.
type outage struct {
	who victims
	// raised: the versions of the copy are raised above all that were seen.
	raised bool
	// late: replicas begin when kubelets have ended the pods that the API server does not know. Otherwise they begin at
	// once, and all that tells them of the restore is what the nodes were answered before.
	late bool
	// copied are the leases of the copy that have objects, carved the addresses of groups.
	copied map[netip.Addr]lease.Lease
	carved map[netip.Addr]bool
}

func (o outage) String() string {
	text := string(o.who)
	if o.late {
		text += " until kubelets have ended pods"
	}
	if o.raised {
		text += ", versions raised"
	}
	return text
}

// outages are those of a long run, in turn.
func outages() []outage {
	return []outage{
		{who: everybody}, {who: everybody, late: true, raised: true}, {who: leaderAlone, raised: true},
		{who: everybody, raised: true}, {who: allButOne}, {who: everybody, late: true}, {who: nobody, raised: true},
		{who: leaderAlone}, {who: allButOne, raised: true}, {who: nobody},
	}
}

// nextOutage draws one in a short round. There no replica dies with all others: nothing new is given then for as long
// as the round lasts.
func (r *round) nextOutage(rng *rand.Rand) outage {
	if r.length < longRound {
		return outage{who: []victims{nobody, leaderAlone, allButOne}[rng.IntN(3)], raised: rng.IntN(2) == 0}
	}
	all := outages()
	return all[int(r.site.restores.Add(1)-1)%len(all)]
}

// dies returns the replicas that are killed. The one that is left of all but one knows of the pods that the copy does
// not have, and those that begin have to ask it.
func (r *round) dies(rng *rand.Rand, o *outage) []*replica {
	switch o.who {
	case leaderAlone:
		return []*replica{r.leader(rng)}
	case everybody:
		return r.site.replicas
	case allButOne:
		left := r.site.replicas[rng.IntN(len(r.site.replicas))]
		if left.silent.Load() { // what it does not know nobody would
			o.who = nobody
			return nil
		}
		return slices.DeleteFunc(slices.Clone(r.site.replicas), func(one *replica) bool { return one == left })
	case nobody:
	}
	return nil
}

// count notes that an outage has been.
func (r *round) count(o outage) {
	for event, was := range map[string]bool{
		eventAllDead: o.who == everybody && !o.late, eventLate: o.late, eventRaised: o.raised,
		eventWitness: o.who == leaderAlone || o.who == allButOne,
	} {
		if was {
			r.Count(event)
		}
	}
}

// look reads what the copy has, before anybody writes. If no node can show what the copy lacks, replicas begin late:
// at once they would learn of the restore from nobody.
func (r *round) look(o *outage) {
	if o.who != everybody {
		return
	}
	o.copied, o.carved = map[netip.Addr]lease.Lease{}, map[netip.Addr]bool{}
	until(r.ctx, func(ctx context.Context) error {
		all, err := r.site.leases.List(ctx, "")
		for _, l := range all {
			o.copied[l.Addr] = l
		}
		return err
	})
	until(r.ctx, func(ctx context.Context) error {
		var pools v1.BCSNetPoolList
		err := r.site.admin.List(ctx, &pools, &client.ListOptions{})
		for _, p := range pools.Items {
			if a, err := netip.ParseAddr(p.Name); err == nil && p.Spec.Parent != "" {
				o.carved[a] = true
			}
			for _, text := range p.Spec.AvailableIPs {
				if a, err := netip.ParseAddr(text); err == nil && p.Spec.Parent == demandPool {
					o.carved[a] = true
				}
			}
		}
		return err
	})
	if informed, _ := r.informed(*o); len(informed) == 0 {
		r.Count("restore that no node can show")
		o.late = true
	}
}

// promises reports whether a pod that the API server knows has its address again without any replica's memory. The
// copy has to give it the address, or nobody, and then the pod's report counts. If the copy names an earlier holder of
// the address, or another address of the pod, an operator ends the pod that doctor names.
func (o outage) promises(s *slot) bool {
	b := s.sandbox
	l, exists := o.copied[b.addr]
	if l.State == lease.Active {
		// A DEL of the container that the copy names would free the address.
		return l.PodUID == s.uid && (l.ContainerID == b.id || s.leaving.Load() == 0)
	}
	if exists && l.State != lease.Available || o.carved[b.addr] || s.site.inTail(b.addr) {
		return false
	}
	for _, past := range l.History.Entries() { // what a pod has released is not brought back
		if past.Holder == lease.PastHolder(b.who()) {
			return false
		}
	}
	for _, other := range o.copied {
		if other.State == lease.Active && other.Who() == b.who() {
			return false
		}
	}
	return true
}

// informed returns the hosts whose last answer is newer than what the copy has of its address, and all others.
func (r *round) informed(o outage) (informed, others []string) {
	for h := range hosts {
		for _, host := range r.site.addresses(h) {
			addr, rest, _ := strings.Cut(r.callers.Receipt(host), ",")
			text, _, _ := strings.Cut(rest, ",")
			version, err := strconv.ParseUint(text, 10, 64)
			a, wrong := netip.ParseAddr(addr)
			l, exists := o.copied[a]
			if err == nil && wrong == nil && exists && l.Version < version {
				informed = append(informed, host)
			} else {
				others = append(others, host)
			}
		}
	}
	return informed, others
}

// showReceipts has a node show each replica what it was answered, if there is a node that has no newer answer than the
// copy: such a one must not ask first. bcsnet-node does the same.
func (r *round) showReceipts(rng *rand.Rand, o outage) {
	informed, others := r.informed(o)
	if len(others) == 0 || len(informed) == 0 {
		return
	}
	for _, one := range r.site.replicas {
		until(r.ctx, func(ctx context.Context) error {
			_, err := r.callers.Show(ctx, rng, one.URL, "/pool/"+rangePool, informed[0])
			return err
		})
	}
	r.Count("receipt shown to all replicas")
}

// vanish ends the containers of a pod of which the API server knows nothing, before any replica is there. The DEL comes
// when one is.
func (s *slot) vanish() {
	b := s.sandbox
	b.over.Store(true)
	s.uid, s.sandbox, s.taken = "", nil, false
	s.lateDEL(b, 0, s.history.Now())
}

// deletePodBefore ends the containers of a pod and deletes it, while it may be that no replica is there.
func (s *slot) deletePodBefore(b *sandbox) {
	b.over.Store(true)
	from := s.history.Now()
	s.deletePod()
	s.lateDEL(b, 0, from)
}

// inTail reports whether an address is one that the operator takes away from its pool at times.
func (f *fixture) inTail(a netip.Addr) bool {
	first, last, _ := strings.Cut(f.rangeTail, "-")
	from, to := netip.MustParseAddr(first), netip.MustParseAddr(last)
	return from.Compare(a) <= 0 && a.Compare(to) <= 0
}
