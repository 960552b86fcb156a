package doctor

import (
	"fmt"
	"iter"
	"time"

	"github.com/bcsnet/bcsnet/pkg/gone"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// IDs of the checks for leaks.
const (
	LeakPodGone         = string(gone.PodGone)
	LeakPodEnded        = string(gone.PodEnded)
	LeakPodReplaced     = string(gone.PodReplaced)
	LeakPodOtherAddress = string(gone.PodOtherAddress)
)

// leak returns the function for the check with an ID, which returns the leaks of its kind.
func leak(check string) func(*facts) []Finding {
	return func(f *facts) []Finding {
		if f.leaks == nil {
			f.findLeaks()
		}
		return f.leaks[check]
	}
}

// findLeaks scans the leases once, for all checks.
func (f *facts) findLeaks() {
	f.leaks = map[string][]Finding{}
	for l := range f.attachments() {
		pod, claim := f.pod(l.Holder), f.nodes.At(l.Host)
		if settling(l.Updated, f.Now) || pod != nil && pod.Ended && settling(pod.EndedAt, f.Now) {
			continue // too early to decide
		}
		e := gone.Evidence{
			Lease: *l, Pod: pod, Live: true, Others: f.others, Host: gone.HostOf(claim), Now: f.Now, For: long,
		}
		check, cause := gone.Suspect(e)
		if check == "" {
			continue
		}
		found := Finding{
			Check: string(check), Object: ip(l.Addr), Pools: []string{l.Pool}, Cause: cause + "; " + held(*l, f.Now),
			Release: l,
			Fix:     "bcsnetctl doctor --fix --only " + string(check), evidence: e,
		}
		if check == gone.PodOtherAddress { // the status need not list every interface: people decide
			found.Release, found.Fix = nil, "bcsnetctl ip describe "+l.Addr.String()
		} else if doubt := found.Doubt(claim); doubt != "" && f.Missing[PartNodes] == nil || !l.Host.IsValid() {
			found.Cause += f.mayRun(*l, claim)
			found.Fix = "bcsnetctl ip release " + l.Addr.String() + " --force"
		}
		f.leaks[found.Check] = append(f.leaks[found.Check], found)
	}
}

// leaked returns the number of a pool's addresses that are held for pods that are gone; 0 if the pods were not read.
func (f *facts) leaked(pool string) (n int) {
	if f.Pods == nil || f.Missing[PartPods] != nil {
		return 0
	}
	if f.leaks == nil {
		f.findLeaks()
	}
	for check, all := range f.leaks {
		if check != LeakPodOtherAddress {
			for _, one := range all {
				if one.Release.Pool == pool {
					n++
				}
			}
		}
	}
	return n
}

// long is longer than any waiting time before a second check: evidence against a leak that still holds then is
// permanent.
const long = 100 * 365 * 24 * time.Hour

// mayRun returns the reason, to be printed after the host of a leak, why containers may run there.
func (f *facts) mayRun(l lease.Lease, claim []Node) string {
	ready := 0
	for _, n := range claim {
		if n.Ready {
			ready++
		}
	}
	switch {
	case !l.Host.IsValid():
		return " on a host that is not known"
	case ready == 0:
		return ", which is not a Ready node: its container may still run"
	case ready < len(claim):
		return fmt.Sprintf(", which %d nodes claim, not all of them ready: its container may still run", len(claim))
	default:
		return ": a static pod, which may run all the same"
	}
}

// attachments yields the leases as seen from each of their attachments: while a virtual machine migrates, each
// attachment may leak by itself.
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
