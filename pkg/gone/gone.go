package gone

import (
	"fmt"
	"slices"
	"time"

	"github.com/bcsnet/bcsnet/pkg/hosts"
	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// Verdict is the state of a lease's holder.
type Verdict uint8

// Values of Verdict. Without an operator's word, only Gone allows taking the address away. Two callers in package
// allocator only use Record, because they know more: in noMore the next pod of the same workload vouches for the
// earlier one, and in releaseReported the pod itself reports another address instead of this one.
const (
	// Held: no evidence against the lease, or only evidence that people have to judge.
	Held Verdict = iota
	// MayRun: the API server shows no holder, but its containers may still run.
	MayRun
	// Gone: nobody has the address.
	Gone
)

// Times for which a verdict waits.
const (
	// Apart is the time between two checks.
	Apart = 20 * time.Second
	// Margin is the time for which containers of a deleted pod may run beyond its grace period: until the kubelet
	// learns of the deletion, and for its other work.
	Margin = 15 * time.Second
	// Grace is the time for which containers may run on a host that is not ready. (The grace period of a pod is
	// Termination.)
	Grace = 24 * time.Hour
	// Silence is the time after which a node with a silent kubelet is no longer ready; kube-controller-manager waits
	// for 50 seconds.
	Silence = time.Minute
)

// Renewal is the state of a host's Lease in kube-node-lease.
type Renewal uint8

// Values of Renewal.
const (
	// Unread: the Lease could not be read.
	Unread Renewal = iota
	// NoLease: the node has no Lease, or the caller does not ask for it. A ready node counts after the time of Silence.
	NoLease
	// Before: the Lease was not renewed since the first check.
	Before
	// Once: the Lease was renewed once since. That request may have been in progress when the host was cut off.
	Once
	// Since: the Lease was renewed again. The kubelet is in touch with the API server and knows which pods are gone.
	Since
)

// Host is the evidence about the host of a lease, from a Node that claims the host's address.
type Host struct {
	// Ready reports whether the Node is ready.
	Ready bool
	// Away is the time at which the Node became not ready; zero if that is unknown.
	Away time.Time
	// OutOfService reports whether the node has the taint by which somebody vouches that its machine is off.
	OutOfService bool
	// Renewal is the renewal state of the Node's Lease.
	Renewal Renewal
	// Missed is the time after the first check at which the host was last seen out of touch. Its kubelet learns of a
	// deleted pod when it is back, and only then starts to end the containers.
	Missed time.Duration
	// Also are the other Nodes that claim the address. It is unknown on which of their machines the containers are, so
	// evidence counts only if it holds for each Node.
	Also []Host
}

// HostOf returns the evidence of the Nodes that claim a host's address, without renewals.
func HostOf(claim []hosts.Node) (h Host) {
	for i, n := range claim {
		one := Host{Ready: n.Ready, OutOfService: n.OutOfService, Renewal: NoLease}
		if !n.Ready {
			one.Away = n.Since
		}
		if i == 0 {
			h = one
		} else {
			h.Also = append(h.Also, one)
		}
	}
	return h
}

// each returns the host's evidence separately for each Node that claims it.
func (h Host) each() []Host { return append([]Host{h}, h.Also...) }

// Off reports whether a lease is void because its machine is off: each Node that claims its host is out of service and
// not ready. Leases that were updated after the node was last ready are excluded, and so are static pods, which start
// with their machine whatever the API server knows.
func (h Host) Off(l lease.Lease) bool {
	return !slices.ContainsFunc(h.each(), func(h Host) bool { return !h.off(l) })
}

func (h Host) off(l lease.Lease) bool {
	return h.OutOfService && !h.Ready && !h.Away.IsZero() && !l.Updated.After(h.Away.Add(Skew)) &&
		!workload.Static(l.PodUID)
}

// Evidence is everything that Decide considers about a lease and its holder.
type Evidence struct {
	Lease lease.Lease
	// Pod is the pod of the holder's name; nil if there is none. Live reports whether the API server said so, not a
	// cache; the same for the host, if it matters that the host is out of service.
	Pod  *workload.Pod
	Live bool
	// Others are the other leases that may belong to the pod.
	Others Others
	Host   Host
	// Now is the API server's time. Since is when the holder was first seen to be gone, by the same clock; zero means
	// Now.
	Now, Since time.Time
	// For is the time from the first check that saw it gone until this one; zero for callers that check once.
	For time.Duration
}

// Rule has the times to wait.
type Rule struct {
	// Apart is the time between two checks. Grace is the time for which containers may run on a host that is not ready,
	// or containers of a static pod that the API server does not know; zero means for ever.
	Apart, Grace time.Duration
	// Termination is the minimum grace period assumed for pods, Margin the additional time for which their containers
	// may run.
	Termination, Margin time.Duration
	// Silence is the time after which a node that is cut off is no longer ready; used if there is no Lease.
	Silence time.Duration
}

// Default returns the rule that applies without configuration.
func Default() Rule {
	return Rule{Apart: Apart, Grace: Grace, Termination: lease.UsualTermination, Margin: Margin, Silence: Silence}
}

// Decision is a verdict with its reasons.
type Decision struct {
	Verdict Verdict
	// Check is the evidence against the lease, Cause the same in words; both are empty without evidence.
	Check Check
	Cause string
	// Doubt is the reason why containers may still run; empty otherwise.
	Doubt string
}

// Decide returns whether the holder of a lease is gone.
func (r Rule) Decide(e Evidence) Decision {
	d := Decision{}
	d.Check, d.Cause = Suspect(e)
	if d.Check == "" || d.Check == PodOtherAddress {
		return d
	}
	if d.Doubt = r.Doubt(e, d.Check); d.Doubt != "" {
		d.Verdict = MayRun
		return d
	}
	d.Verdict = Gone
	return d
}

// Suspect returns the evidence against a lease, and the reason in words. The evidence is Record's, or that its pod is
// being deleted while its machine is off, so that no kubelet will ever end the pod.
func Suspect(e Evidence) (Check, string) {
	check, cause := Record(e.Lease, e.Pod, e.Others, e.Now)
	if l := e.Lease; check == "" && ofPod(l) && e.Pod != nil && e.Pod.Deleting && e.Pod.UID == l.PodUID &&
		e.Host.Off(l) {
		return PodGone, fmt.Sprintf("pod %s is being deleted, and host %s is out of service", l.Who(), l.Host)
	}
	return check, cause
}

// Doubt returns the reason why containers of a lease may still run in spite of a check; empty if they certainly do not.
// Evidence of the pod itself counts on any host. Other evidence must hold for each Node that claims the host.
func (r Rule) Doubt(e Evidence, check Check) string {
	if over(e, check) {
		return r.seen(e, e.For, r.Ending(e.Lease, check))
	}
	for _, h := range e.Host.each() {
		if doubt := r.doubtOn(h, e, check); doubt != "" {
			return doubt
		}
	}
	return ""
}

// over reports whether the kubelet has reported that each container of the lease's own pod has ended for good. A static
// pod starts again under its UID.
func over(e Evidence, check Check) bool {
	return check == PodEnded && e.Pod != nil && e.Pod.Over && e.Pod.UID == e.Lease.PodUID &&
		!workload.Static(e.Lease.PodUID)
}

// doubtOn returns the reason why containers may still run on the machine of one Node.
func (r Rule) doubtOn(h Host, e Evidence, check Check) string {
	since := e.For
	if h.Ready {
		since -= h.Missed
	}
	host, static := e.Lease.Host, check == PodGone && workload.Static(e.Lease.PodUID) && !failpoint.Broken("static")
	switch {
	case h.off(e.Lease):
		return r.seen(e, e.For, r.Apart)
	case !h.Ready && !failpoint.Broken("host", "collect"):
		if !r.passed(e, h.Away) {
			return fmt.Sprintf("host %s is not a Ready node", name(host.IsValid(), host.String()))
		}
	case static:
		if !r.passed(e, e.Since) {
			return "it is a static pod, which runs whether the API server knows of it or not"
		}
	case failpoint.Broken("host", "collect"):
	case h.Renewal == NoLease:
		if since < r.Silence {
			return fmt.Sprintf("host %s may have lost its connection recently", host)
		}
	case h.Renewal != Since:
		return fmt.Sprintf("host %s has not renewed its Lease since", host)
	}
	return r.seen(e, since, r.Ending(e.Lease, check))
}

// seen returns the missing part of two checks, the last of which must ask the API server; empty if nothing is missing.
func (r Rule) seen(e Evidence, since, need time.Duration) string {
	switch {
	case since < need && need > r.Apart:
		return fmt.Sprintf("this has not been so for %s, the time that its pod may take to end", need)
	case since < need:
		return "it has not been so for long enough"
	case !e.Live && !failpoint.Broken("live", "collect"):
		return "the API server has not been asked"
	}
	return ""
}

// Ending returns the time for which a check must hold before the lease is given up. After a forced deletion, or a
// restore of an older store, the pod's object is gone at once, and the kubelet gives the containers the pod's grace
// period from then on. A pod that has ended had its grace period before.
func (r Rule) Ending(l lease.Lease, check Check) time.Duration {
	switch {
	case failpoint.Broken("look", "collect"):
		return 0
	case check != PodGone && check != PodReplaced:
		return r.Apart
	}
	return max(r.Apart, max(r.Termination, l.Termination)+r.Margin)
}

// passed reports whether the host's grace period has passed since a time.
func (r Rule) passed(e Evidence, began time.Time) bool {
	return r.Grace != 0 && !began.IsZero() && e.Now.Sub(began) >= r.Grace
}

func name(known bool, text string) string {
	if !known {
		return "unknown"
	}
	return text
}

// Told returns the time at which a holder was gone according to the API server, for callers that check once: when its
// pod ended, was deleted, or was replaced; zero if there is no pod any more.
func Told(check Check, pod *workload.Pod) time.Time {
	switch {
	case pod == nil:
	case check == PodEnded:
		return pod.EndedAt
	case check == PodReplaced:
		return pod.Created
	case check == PodGone:
		return pod.DeletedAt
	}
	return time.Time{}
}
