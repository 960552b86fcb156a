package doctor

import (
	"iter"
	"net/netip"
	"slices"
	"time"

	"github.com/bcsnet/bcsnet/pkg/gone"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// IDs of the leaks.
const (
	LeakPodGone         = string(gone.PodGone)
	LeakPodEnded        = string(gone.PodEnded)
	LeakPodReplaced     = string(gone.PodReplaced)
	LeakPodOtherAddress = string(gone.PodOtherAddress)
)

// Leak returns the check by which a lease is a leak, and why; check is empty when it is none, or when it is too early
// to decide. pod is the one of the holder's name, nil when there is none.
func Leak(l lease.Lease, pod *workload.Pod, others gone.Others, now time.Time) (check, cause string) {
	if settling(l.Updated, now) || pod != nil && pod.Ended && settling(pod.EndedAt, now) {
		return "", ""
	}
	found, cause := gone.Record(l, pod, others, now)
	if found != "" {
		cause += "; " + held(l, now)
	}
	return string(found), cause
}

// leak returns a check that finds the leases that are a leak by its ID.
func leak(check string) func(*facts) []Finding {
	return func(f *facts) []Finding {
		if f.leaks == nil {
			f.findLeaks()
		}
		return f.leaks[check]
	}
}

// findLeaks goes through the leases once, for all checks.
func (f *facts) findLeaks() {
	f.leaks = map[string][]Finding{}
	for l := range f.attachments() {
		check, cause := Leak(*l, f.pod(l.Holder), f.others, f.Now)
		if check == "" {
			continue
		}
		found := Finding{
			Object: ip(l.Addr), Pools: []string{l.Pool}, Cause: cause, Release: l,
			Fix: "bcsnetctl doctor --fix --only " + check,
		}
		if check == LeakPodOtherAddress { // the status need not list every interface: people decide
			found.Release, found.Fix = nil, "bcsnetctl ip describe "+l.Addr.String()
			f.leaks[check] = append(f.leaks[check], found)
			continue
		}
		switch n := f.nodes[l.Host]; {
		case !l.Host.IsValid():
			found.Cause += " on a host that is not known"
			found.Fix = "bcsnetctl ip release " + l.Addr.String() + " --force"
		case f.Missing[PartNodes] == nil && (n == nil || !n.Ready):
			found.Cause += ", which is no ready node: its container may still run"
			found.Fix = "bcsnetctl ip release " + l.Addr.String() + " --force"
		case check == LeakPodGone && workload.Static(l.PodUID):
			found.Cause += ": a static pod, which may run all the same"
			found.Fix = "bcsnetctl ip release " + l.Addr.String() + " --force"
		}
		f.leaks[check] = append(f.leaks[check], found)
	}
}

// attachments yields the leases as seen from each of their attachments: while a virtual machine migrates, either may
// leak by itself.
func (f *facts) attachments() iter.Seq[*lease.Lease] {
	return func(yield func(*lease.Lease) bool) {
		for i := range f.Leases {
			if f.Leases[i].Other == nil {
				if !yield(&f.Leases[i]) {
					return
				}
				continue
			}
			for side := range f.Leases[i].Attachments() {
				if !yield(&side) {
					return
				}
			}
		}
	}
}

// HostReady reports whether a host is a node that is ready: only there a pod that is gone has surely left no container
// behind.
func (s *Snapshot) HostReady(host netip.Addr) bool {
	return slices.ContainsFunc(s.Nodes, func(n Node) bool { return n.Ready && slices.Contains(n.Addrs, host) })
}
