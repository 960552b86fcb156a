package rebuild

import (
	"slices"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// stillHeld says whether a lost lease is still needed, and why not. pod is the one of the holder's name, nil when
// there is none. What belongs to no pod is always needed: nobody but an operator gives it up. So is what changed lately: the
// pod's status may be of an earlier sandbox, and the lease's UID that of an earlier pod. If not, the collection takes it back.
func stillHeld(l ipam.Lease, pod *workload.Pod, now time.Time) (held bool, why string) {
	if l.State == ipam.Reserved || l.Owner != "" || l.PodName == "" {
		return true, ""
	}
	switch {
	case pod == nil:
		return false, "its pod does not exist"
	case pod.Ended:
		return false, "its pod has ended"
	case slices.Contains(pod.Addrs, l.Addr), now.Sub(l.Updated) < workload.Reported:
		return true, "" // also where the UID differs: that of a static pod's mirror changes while the pod runs on
	case l.PodUID != "" && pod.UID != l.PodUID:
		return false, "another pod has taken the place of its pod"
	case len(pod.Addrs) > 0 && (l.IfName == ipam.DefaultIfName || pod.Networks):
		return false, "its pod has another address"
	default:
		return true, ""
	}
}
