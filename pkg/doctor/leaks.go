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

// Leak says by which check a lease is a leak, and why; check is empty when it is none, or when it is too early to
// say. pod is the one of the holder's name, nil when there is none.
func Leak(l ipam.Lease, pod *workload.Pod, others Others, now time.Time) (check, cause string) {
	if settling(l.Updated, now) || pod != nil && pod.Ended && settling(pod.EndedAt, now) {
		return "", ""
	}
	if check, cause = Judge(l, pod, others, now); check != "" {
		cause += "; " + held(l, now)
	}
	return check, cause
}

// Others finds the leases of a pod, by its UID, and those on a lease's host, at least as far as they name the same pod.
type Others func(l ipam.Lease, uid string) []ipam.Lease

// Judge is Leak for those who look twice, and at the pod itself: it need not settle. An owner that is no pod, and
// a container of an unknown pod, leak nothing.
func Judge(l ipam.Lease, pod *workload.Pod, others Others, now time.Time) (check, cause string) {
	switch {
	case l.State != ipam.Active || l.Owner != "" || l.PodName == "":
		return "", ""
	case pod == nil:
		return LeakPodGone, fmt.Sprintf("pod %s does not exist", l.Who())
	case l.PodUID != "" && pod.UID != l.PodUID && replaced(l, pod, others, now):
		return LeakPodReplaced, fmt.Sprintf("pod %s is another one now than the holder", l.Who())
	case pod.Ended:
		return LeakPodEnded, fmt.Sprintf("pod %s has ended", l.Who())
	case l.PodUID != "" && pod.UID != l.PodUID:
		return "", "" // it may be the pod's after all, bound with an old UID
	case pod.Deleting || !hasOthers(l, pod):
		return "", ""
	default:
		return LeakPodOtherAddress, fmt.Sprintf("pod %s has %s instead", l.Who(), addrs(pod.Addrs))
	}
}

// Skew is how far the clocks of API servers may be apart, with what timestamps leave out of a second.
const Skew = 10 * time.Second

// replaced says whether a lease with another UID than the pod of its name has is surely for an earlier one. A request that
// names no UID may have got it from a replica that had not heard of the pod yet.
func replaced(l ipam.Lease, pod *workload.Pod, others Others, now time.Time) bool {
	if slices.Contains(pod.Addrs, l.Addr) {
		return false // as of a lease that was restored from a file of its time
	}
	return l.Updated.Add(Skew).Before(pod.Created) || overtaken(l, pod, others) ||
		hasOthers(l, pod) && now.Sub(l.Updated) >= workload.Reported
}

// overtaken says whether a container that came later holds another address on the same interface: one of the pod that
// now has the name of the lease's holder, or one of that name on the same host, under whichever UID. Whose container
// the lease was for, it is no more: were it one of the pod, bound with an old UID, both requests came from one
// host, by one clock.
func overtaken(l ipam.Lease, pod *workload.Pod, others Others) bool {
	return slices.ContainsFunc(others(l, pod.UID), func(o ipam.Lease) bool {
		return o.State == ipam.Active && o.ContainerID != "" && o.Namespace == l.Namespace && o.PodName == l.PodName &&
			(o.PodUID == pod.UID || o.Host == l.Host) && o.IfName == l.IfName && o.Addr.Is4() == l.Addr.Is4() &&
			o.StartedAt.After(l.StartedAt)
	})
}

// hasOthers says whether a pod reports the addresses of the lease's interface, and the lease's is none of them.
func hasOthers(l ipam.Lease, pod *workload.Pod) bool {
	if l.IfName != ipam.DefaultIfName && !pod.Networks {
		return false // the status tells of the first interface alone
	}
	return len(pod.Addrs) > 0 && !slices.Contains(pod.Addrs, l.Addr)
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
		check, cause := Leak(*l, f.pod(l.Holder), f.others, f.Now)
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
