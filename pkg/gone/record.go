package gone

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// Check names the evidence against a lease; empty for none. Histories and metrics contain it, and it is the ID of
// doctor's finding.
type Check string

// Values of Check.
const (
	// PodGone: there is no pod of the holder's name.
	PodGone Check = "leak-pod-gone"
	// PodEnded: the pod has Succeeded or Failed.
	PodEnded Check = "leak-pod-ended"
	// PodReplaced: the pod of the holder's name is another one.
	PodReplaced Check = "leak-pod-replaced"
	// PodOtherAddress: the pod reports other addresses. People decide: the status need not list every interface.
	PodOtherAddress Check = "leak-pod-other-address"
)

// Skew bounds the difference between the clocks of API servers and hosts, including the fractions of a second that
// timestamps lack.
const Skew = 10 * time.Second

// Others finds the leases of a pod by its UID, and at least those leases on a lease's host that name the same pod.
type Others func(l lease.Lease, uid string) []lease.Lease

// Leases finds leases by their holders: those of the index do.
type Leases interface {
	ByAttachment(h lease.Holder) []lease.Lease
	ByHost(host netip.Addr) []lease.Lease
}

// Indexed returns an Others that uses an index.
func Indexed(x Leases) Others {
	return func(l lease.Lease, uid string) []lease.Lease {
		return append(x.ByAttachment(lease.Holder{PodUID: uid, IfName: l.IfName}), x.ByHost(l.Host)...)
	}
}

// Record compares a lease with the pod of the holder's name, nil for none, and returns the evidence with the reason in
// words. Containers may still run in any case: see Decide. There is never evidence against the lease of an owner, or of
// a container of an unknown pod.
func Record(l lease.Lease, pod *workload.Pod, others Others, now time.Time) (check Check, cause string) {
	switch {
	case !ofPod(l):
		return "", ""
	case pod == nil:
		return PodGone, fmt.Sprintf("pod %s does not exist", l.Who())
	case l.PodUID != "" && pod.UID != l.PodUID && replaced(l, pod, others, now):
		return PodReplaced, fmt.Sprintf("pod %s is another one now than the holder", l.Who())
	case pod.Ended:
		return PodEnded, fmt.Sprintf("pod %s has ended", l.Who())
	case l.PodUID != "" && pod.UID != l.PodUID:
		return "", "" // it may be the pod's lease, bound with an old UID
	case pod.Deleting || !hasOthers(l, pod):
		return "", ""
	default:
		return PodOtherAddress, fmt.Sprintf("pod %s has %s instead", l.Who(), list(pod.Addrs))
	}
}

// ofPod reports whether the holder of a lease is a pod with a known name.
func ofPod(l lease.Lease) bool { return l.State == lease.Active && l.Owner == "" && l.PodName != "" }

// Misnamed reports whether a lease has an older UID of the pod that has its address: the pod reports the address and
// has the name in the lease.
func Misnamed(l lease.Lease, pod workload.Pod) bool {
	return l.State == lease.Active && l.Owner == "" && l.PodUID != "" && pod.UID != l.PodUID &&
		pod.Namespace == l.Namespace && pod.Name == l.PodName &&
		!pod.Ended && !pod.Deleting && !pod.HostNetwork && slices.Contains(pod.Addrs, l.Addr)
}

// replaced reports whether a lease with another UID than the pod of its name certainly belongs to an earlier pod. A
// request without a UID may have got the lease from a replica that had not seen the pod yet.
func replaced(l lease.Lease, pod *workload.Pod, others Others, now time.Time) bool {
	if slices.Contains(pod.Addrs, l.Addr) {
		return false // such as a lease restored from an old file
	}
	return l.UIDNamed || l.Updated.Add(Skew).Before(pod.Created) || overtaken(l, pod, others) ||
		hasOthers(l, pod) && now.Sub(l.Updated) >= workload.Reported
}

// overtaken reports whether a later container holds another address on the same interface: a container of the pod that
// now has the name of the lease's holder, or one of that name on the same host with any UID. Then the container of the
// lease no longer exists: even if the lease was bound for this pod with an old UID, both requests came from one host,
// by one clock.
func overtaken(l lease.Lease, pod *workload.Pod, others Others) bool {
	return slices.ContainsFunc(others(l, pod.UID), func(o lease.Lease) bool {
		return o.State == lease.Active && o.ContainerID != "" && o.Namespace == l.Namespace && o.PodName == l.PodName &&
			(o.PodUID == pod.UID || o.Host == l.Host) && o.IfName == l.IfName && o.Addr.Is4() == l.Addr.Is4() &&
			o.StartedAt.After(l.StartedAt)
	})
}

// hasOthers reports whether a pod reports addresses for the lease's interface, but not the lease's address.
func hasOthers(l lease.Lease, pod *workload.Pod) bool {
	if l.IfName != lease.DefaultIfName && !pod.Networks {
		return false // the status shows only the first interface
	}
	return len(pod.Addrs) > 0 && !slices.Contains(pod.Addrs, l.Addr)
}

func list(all []netip.Addr) string {
	var out []string
	for _, a := range all {
		out = append(out, a.String())
	}
	return strings.Join(out, ", ")
}
