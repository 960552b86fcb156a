package importer

import (
	"fmt"
	"net/netip"

	"go4.org/netipx"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// sight is one look at both systems.
type sight struct {
	CutOver

	// reporters are the running pods that report an address, holders the rows that have it.
	reporters map[netip.Addr][]workload.Pod
	holders   map[netip.Addr]Address
	// taken are the addresses that are not free in the other system, or that a pod reports.
	taken *netipx.IPSet
	// known are those that the other system has for the only pod that reports them; of those of the node, mine are
	// those of pods whose names do not come again, and named the others.
	known, mine, named map[netip.Addr]bool
}

func newSight(c CutOver) *sight {
	s := &sight{CutOver: c, reporters: map[netip.Addr][]workload.Pod{}, holders: map[netip.Addr]Address{},
		known: map[netip.Addr]bool{}, mine: map[netip.Addr]bool{}, named: map[netip.Addr]bool{}}
	var taken []netip.Addr
	for _, p := range c.Pods {
		if p.Ended || p.HostNetwork {
			continue
		}
		for _, a := range p.Addrs {
			s.reporters[a], taken = append(s.reporters[a], p), append(taken, a)
		}
	}
	for _, claim := range c.Claims {
		if claim.Addr.IsValid() {
			taken = append(taken, claim.Addr)
		}
	}
	for _, row := range c.Addresses {
		if row.State == Free {
			continue
		}
		first, twice := s.holders[row.Addr]
		if twice && first.holder() != row.holder() {
			row.State = Unclear
		}
		s.holders[row.Addr], taken = row, append(taken, row.Addr)
	}
	for a, row := range s.holders {
		if pods := s.reporters[a]; len(pods) == 1 && isOf(row, pods[0]) {
			s.known[a] = true
			switch {
			case s.Node != "" && pods[0].Node != s.Node:
			case comesAgain(pods[0], s.ByName):
				s.named[a] = true
			default:
				s.mine[a] = true
			}
		}
	}
	s.taken = ipaddr.SetOfAddrs(taken...)
	return s
}

// isOf reports whether the other system has an address for a pod. What a claim there keeps stays there.
func isOf(row Address, p workload.Pod) bool {
	return row.State == Held && row.Claim == "" && p.Namespace+"/"+p.Name == row.pod() &&
		(row.Holder.PodUID == "" || row.Holder.PodUID == p.UID)
}

// comesAgain reports whether a later pod can have the name of this one, on any node, and get the address again that the
// other system has for the name.
func comesAgain(p workload.Pod, byName bool) bool {
	switch p.Controller.Kind {
	case "":
		return byName && !p.Generated
	case "ReplicaSet", "ReplicationController", "DaemonSet", "Job", "CloneSet", "GameDeployment":
		return !p.Generated
	}
	return true // a StatefulSet, whose pods have generateName as well, a virtual machine, or an unknown kind
}

// ours returns the addresses that the pool of a name here allocates.
func (s *sight) ours(pool string) *netipx.IPSet {
	if here := s.Here[pool]; here != nil {
		if p := store.Pool(here); p.Plan.Usable != nil {
			return p.Plan.Usable
		}
	}
	return ipaddr.SetOf()
}

// usable returns the addresses that either system allocates of a pool. What is withdrawn may be missing in the pool as
// the reader knows it: the other system excludes it.
func (s *sight) usable(p *v1.BCSNetPool) *netipx.IPSet {
	return Union(store.Pool(p).Plan.Usable, s.Withdrawn[p.Name])
}

// wrong returns why a pool is left alone; empty if it is not.
func (s *sight) wrong(p *v1.BCSNetPool) string {
	if there := store.Pool(p); there.Problem != "" {
		return "it cannot be made: " + there.Problem
	}
	if _, told := s.Withdrawn[p.Name]; !told {
		return "no object of the other system can withdraw addresses of it"
	}
	for name := range s.Here {
		if name != p.Name && ipaddr.Meet(s.ours(name).Ranges(), s.usable(p).Ranges()) {
			return fmt.Sprintf("pool %s here has addresses of it", name)
		}
	}
	here := s.Here[p.Name]
	switch {
	case here == nil:
	case here.Labels[v1.ImportedLabel] != s.System:
		return "the pool of its name here is not of an import of this system"
	case here.DeletionTimestamp != nil:
		return "the pool of its name here is being deleted: run it again when it is gone"
	}
	if both := ipaddr.Subtract(s.ours(p.Name), s.Withdrawn[p.Name]); !empty(both) {
		return fmt.Sprintf("both systems allocate %s: cordon the pool here, and have the other system withdraw them, "+
			"or take them out of the pool here", ipaddr.FormatSet(both))
	}
	for a := range ipaddr.All(s.ours(p.Name)) {
		l, _ := s.Index.Leases.Get(a)
		if l.State != lease.Active {
			continue
		}
		for _, pod := range s.reporters[a] {
			if pod.Namespace+"/"+pod.Name == s.holders[a].pod() && l.HasOtherName(pod.Namespace, pod.Name) {
				return fmt.Sprintf("%s has %s here, and %s has it in the other system", l.Who(), a, s.holders[a].pod())
			}
		}
	}
	return ""
}
