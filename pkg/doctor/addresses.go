package doctor

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

func ip(a netip.Addr) Object { return Object{"ip", a.String()} }

// podsWithoutLease finds addresses that pods have without a lease.
func podsWithoutLease(f *facts) (out []Finding) {
	for i := range f.Pods {
		p := &f.Pods[i]
		if p.HostNetwork || p.Ended || p.Deleting || settling(p.Started, f.Now) {
			continue
		}
		for _, a := range p.Addrs {
			for pool := range f.servedBy(a) {
				if found, ok := f.unleased(p, a, pool); ok {
					out = append(out, found)
				}
				break // one pool is enough to know that the address is ours
			}
		}
	}
	return out
}

func (f *facts) unleased(p *workload.Pod, a netip.Addr, pool *Pool) (Finding, bool) {
	name := p.Namespace + "/" + p.Name
	found := Finding{
		Object: Object{"pod", name}, Pools: []string{pool.Name},
		Fix: fmt.Sprintf("bcsnetctl pool remove-ip %s %s", pool.Name, a),
	}
	l := f.leases[a]
	switch {
	case l != nil && settling(l.Updated, f.Now):
		return found, false
	case l == nil || l.State == lease.Available:
		found.Cause = fmt.Sprintf("it has %s of pool %s, which is free by its record", a, pool.Name)
	case l.IsRetained():
		found.Cause = fmt.Sprintf("it has %s of pool %s, which claim %s keeps and nobody has by its record", a,
			pool.Name, l.Claim)
	case l.IsQuarantined():
		found.Cause = fmt.Sprintf("it has %s of pool %s, which is quarantined: %s answered for it", a, pool.Name,
			l.Conflict.MAC)
	case l.State == lease.Reserved:
		found.Cause = fmt.Sprintf("it has %s of pool %s, which is reserved", a, pool.Name)
	case l.Owner == "" && l.PodName == "" || has(*l, p.UID, name):
		return found, false // a lease with only a container may be the pod's
	default:
		found.Cause = fmt.Sprintf("it has %s of pool %s, which %s holds", a, pool.Name, l.Who())
		found.Fix = fmt.Sprintf("kubectl -n %s delete pod %s", p.Namespace, p.Name)
	}
	return found, true
}

// has reports whether an attachment of a lease belongs to a pod, by its UID, or by its name if the lease has no UID.
func has(l lease.Lease, uid, name string) bool {
	_, ok := l.From(func(l lease.Lease) bool {
		return l.Owner == "" && (l.PodUID == uid || l.PodUID == "" && l.Who() == name)
	})
	return ok
}

func leasesWithoutPool(f *facts) (out []Finding) {
	for i := range f.Leases {
		if l := &f.Leases[i]; l.State != lease.Available && f.pools[l.Pool] == nil {
			out = append(out, Finding{
				Object: ip(l.Addr), Pools: []string{l.Pool}, Fix: "bcsnetctl pool create --help",
				Cause: fmt.Sprintf("there is no pool %s; %s", l.Pool, f.holder(l)),
			})
		}
	}
	return out
}

// leasesEmptied finds free objects in a state in which the controller never leaves one.
func leasesEmptied(f *facts) (out []Finding) {
	for i := range f.Leases {
		l := &f.Leases[i]
		if l.State != lease.Available || l.Deleting {
			continue
		}
		found := Finding{Object: ip(l.Addr), Pools: []string{l.Pool}, Fix: "bcsnetctl rebuild --dry-run=client"}
		switch held := l.Owner != "" || l.PodName != "" || l.ContainerID != ""; {
		case held:
			found.Cause = fmt.Sprintf("it is free by its state, and its record still names %s", l.Who())
		case l.Claim != "":
			found.Cause = fmt.Sprintf("it is free by its state, and its record still names claim %s", l.Claim)
		case l.HeldFinalizer:
			found.Cause = "it is free by its record, and still has the finalizer of one that is in use"
		default:
			continue
		}
		out = append(out, found)
	}
	return out
}

func leasesDraining(f *facts) (out []Finding) {
	for i := range f.Leases {
		l := &f.Leases[i]
		p := f.pools[l.Pool]
		if p == nil || l.State != lease.Active || !p.Lacks(l.Addr) {
			continue
		}
		out = append(out, Finding{
			Object: ip(l.Addr), Pools: []string{l.Pool}, Fix: "bcsnetctl pool describe " + l.Pool,
			Cause: fmt.Sprintf("pool %s no longer has it; %s", l.Pool, f.holder(l)),
		})
	}
	return out
}

// leasesOutdated finds pools with leases whose settings differ from the pool's current ones.
func leasesOutdated(f *facts) []Finding {
	counts := map[string]*lease.Outdated{}
	for i := range f.Leases {
		l := &f.Leases[i]
		if p := f.pools[l.Pool]; counts[l.Pool] == nil && p != nil && p.Valid() && !p.Terminating {
			counts[l.Pool] = lease.NewOutdated(p.Settings())
		}
		if o := counts[l.Pool]; o != nil {
			o.Add(*l)
		}
	}
	return eachPool(func(_ *facts, p *Pool) (Finding, bool) {
		o := counts[p.Name]
		if o == nil || o.Leases == 0 {
			return Finding{}, false
		}
		var by []string
		for _, name := range lease.SettingNames() {
			if n := o.By[name]; n > 0 {
				by = append(by, fmt.Sprintf("%s (%d)", name, n))
			}
		}
		fix := "bcsnetctl lease list --outdated"
		if p.BlockSize == 0 { // leases of blocks name the block
			fix += " --pool " + p.Name
		}
		return onPool(p, fmt.Sprintf("%s %s other settings than the pool has now: %s",
				humanize.Plural(o.Leases, "lease"), humanize.OneOr(o.Leases, "has", "have"), strings.Join(by, ", ")),
				fix),
			true
	})(f)
}

// longMigration is the time for which two pods of a virtual machine may have its address without a finding.
const longMigration = time.Hour

// leasesOfTwoPods finds addresses that two pods of a virtual machine have had for longer than longMigration, measured
// from the second pod's allocation.
func leasesOfTwoPods(f *facts) (out []Finding) {
	for i := range f.Leases {
		l := &f.Leases[i]
		if l.Other == nil || f.Now.Sub(l.Updated) < longMigration {
			continue
		}
		out = append(out, Finding{
			Object: ip(l.Addr), Pools: []string{l.Pool}, Fix: "kubectl -n " + l.Namespace + " get vmi,vmim,pods",
			Cause: fmt.Sprintf("%s and %s have both had it for %s", l.Where(), l.Other.Where(), ago(l.Updated, f.Now)),
		})
	}
	return out
}

// addressesStuck finds objects that somebody deleted. The time of the deletion is not known here, but objects that the
// controller deletes do not stay.
func addressesStuck(f *facts) (out []Finding) {
	for i := range f.Leases {
		l := &f.Leases[i]
		if !l.Deleting {
			continue
		}
		found := Finding{Object: ip(l.Addr), Pools: []string{l.Pool}, Fix: "bcsnetctl ip describe " + l.Addr.String()}
		switch {
		case l.State != lease.Available:
			found.Cause = fmt.Sprintf("its object was deleted by hand and goes when it is released; %s", f.holder(l))
		case settling(l.Updated, f.Now):
			continue
		default:
			found.Cause = "its object was deleted and nobody holds it, but it has a finalizer that is not ours"
			found.Fix += " -o yaml" // which shows the finalizer
		}
		out = append(out, found)
	}
	return out
}

// holder describes who holds a lease, and since when.
func (f *facts) holder(l *lease.Lease) string {
	switch {
	case l.IsRetained():
		return "claim " + l.Claim + " keeps it"
	case l.IsQuarantined():
		return "quarantined"
	case l.State == lease.Reserved:
		return "reserved"
	}
	return l.Who() + ", " + held(*l, f.Now)
}
