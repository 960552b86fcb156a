package doctor

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// IDs of the leaks, for those who judge a single lease.
const (
	LeakPodGone         = "leak-pod-gone"
	LeakPodEnded        = "leak-pod-ended"
	LeakPodReplaced     = "leak-pod-replaced"
	LeakPodOtherAddress = "leak-pod-other-address"
)

// Leak says by which check a lease is a leak, and why; check is empty when it is none. pod is the one of
// the holder's name, nil when there is none. An owner that is no pod, and a container of an unknown pod,
// leak nothing.
func Leak(l ipam.Lease, pod *workload.Pod, now time.Time) (check, cause string) {
	if l.State != ipam.Active || l.Owner != "" || l.PodName == "" || settling(l.Updated, now) {
		return "", ""
	}
	since := held(l, now)
	switch {
	case pod == nil:
		return LeakPodGone, fmt.Sprintf("pod %s does not exist; %s", l.Who(), since)
	case l.PodUID != "" && pod.UID != l.PodUID:
		return LeakPodReplaced, fmt.Sprintf("pod %s is another one now than the holder; %s", l.Who(), since)
	case pod.Ended && !settling(pod.EndedAt, now):
		return LeakPodEnded, fmt.Sprintf("pod %s has ended; %s", l.Who(), since)
	case pod.Ended || pod.Deleting || len(pod.Addrs) == 0 || slices.Contains(pod.Addrs, l.Addr):
		return "", ""
	case l.IfName != ipam.DefaultIfName && !pod.Networks:
		return "", "" // the status tells of the first interface alone
	default:
		return LeakPodOtherAddress, fmt.Sprintf("pod %s has %s instead; %s", l.Who(), addrs(pod.Addrs), since)
	}
}

// leak finds the leases that are a leak by one check.
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
	for i := range f.Leases {
		l := &f.Leases[i]
		check, cause := Leak(*l, f.pod(l.Holder), f.Now)
		if check == "" {
			continue
		}
		found := Finding{
			Object: ip(l.Addr), Pools: []string{l.Pool}, Cause: cause, Release: l,
			Fix: "bcsnetctl doctor --fix --only " + check,
		}
		if check == LeakPodOtherAddress { // the status need not tell of every interface: people decide
			found.Release, found.Fix = nil, "bcsnetctl ip describe "+l.Addr.String()
			f.leaks[check] = append(f.leaks[check], found)
			continue
		}
		switch n := f.nodes[l.Host]; {
		case !l.Host.IsValid():
			found.Cause += " on a host that is not known"
			found.Fix = "bcsnetctl ip release " + l.Addr.String()
		case f.Missing[PartNodes] == nil && (n == nil || !n.Ready):
			found.Cause += ", which is no ready node: its container may still run"
			found.Fix = "bcsnetctl ip release " + l.Addr.String()
		}
		f.leaks[check] = append(f.leaks[check], found)
	}
}

// HostReady says whether a host is a node that is ready: only there a pod that is gone has surely left no
// container behind.
func (s *Snapshot) HostReady(host netip.Addr) bool {
	return slices.ContainsFunc(s.Nodes, func(n Node) bool { return n.Ready && slices.Contains(n.Addrs, host) })
}
