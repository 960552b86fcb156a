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

// Verdict is what is known of the holder of a lease.
type Verdict uint8

// Values of Verdict. Only Gone lets anybody take the address away without an operator's word. Two callers in package
// allocator read Record alone, as more is known to them: noMore, where the same workload's next pod vouches for the
// earlier one, and releaseReported, where the pod itself reports another address in place of this one.
const (
	// Held: nothing speaks against the lease, or only what people have to weigh.
	Held Verdict = iota
	// MayRun: the API server knows of no holder, and its containers may still run.
	MayRun
	// Gone: nobody has the address.
	Gone
)

// Times that a verdict waits for.
const (
	// Apart is how long it takes between two looks.
	Apart = 20 * time.Second
	// Margin is how much longer than its grace period the containers of a pod may run whose object has gone: until the
	// kubelet knows of it, and for what it does besides.
	Margin = 15 * time.Second
	// Grace is how long containers may run on a host that is away. (The grace period of a pod is Termination.)
	Grace = 24 * time.Hour
	// Silence is the time after which a node whose kubelet does not answer is no longer ready; kube-controller-manager
	// waits for 50 seconds.
	Silence = time.Minute
)

// Renewal is the state of a host's Lease in kube-node-lease.
type Renewal uint8

// Values of Renewal.
const (
	// Unread: it could not be read.
	Unread Renewal = iota
	// NoLease: the node has none, or it is not asked for. That the node is ready counts after the time of Silence.
	NoLease
	// Before: it was not renewed since the first look.
	Before
	// Once: it was renewed once since. That request may have been under way when the host was cut off.
	Once
	// Since: it was renewed again after that. The kubelet is in touch with the API server and knows which pods are no
	// more.
	Since
)

// Host is what is known of the host of a lease: of a Node that claims its address.
type Host struct {
	// Ready: a node that is ready has its address.
	Ready bool
	// Away is since when none has; zero where that is not known.
	Away time.Time
	// OutOfService: the node has the taint by which somebody vouches that its machine is off.
	OutOfService bool
	// Renewal of the node that has.
	Renewal Renewal
	// Missed is how long after the first look it was seen last that the host was not in touch. Its kubelet learns of a pod
	// that is no more when it is back, and only then begins to end the containers.
	Missed time.Duration
	// Also are the other Nodes that claim the address. Nobody can see on which of their machines the containers are, so
	// nothing is certain that is not certain of each.
	Also []Host
}

// HostOf returns what the Nodes that claim a host's address say of it, to those who ask for no renewals.
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

// each returns a host as each Node that claims it says.
func (h Host) each() []Host { return append([]Host{h}, h.Also...) }

// Off reports whether a lease rests on nothing any more because its machine is off: each Node that claims its host is
// out of service and not ready. Who asked for the address after the node was away was there all the same, and a static
// pod starts with its machine, whatever the API server knows.
func (h Host) Off(l lease.Lease) bool {
	return !slices.ContainsFunc(h.each(), func(h Host) bool { return !h.off(l) })
}

func (h Host) off(l lease.Lease) bool {
	return h.OutOfService && !h.Ready && !h.Away.IsZero() && !l.Updated.After(h.Away.Add(Skew)) &&
		!workload.Static(l.PodUID)
}

// Evidence is what is known of a lease and its holder.
type Evidence struct {
	Lease lease.Lease
	// Pod is the one of the holder's name; nil when there is none. Live: the API server said so, not a cache, and where it
	// matters that the host is out of service, it said that, too.
	Pod  *workload.Pod
	Live bool
	// Others are the other leases that may belong to the pod.
	Others Others
	Host   Host
	// Now is the API server's time. Since is when the holder was first seen to be no more, by the same clock; zero stands
	// for Now.
	Now, Since time.Time
	// For is how long it has been seen so, from the first look until this one: zero for who looks once.
	For time.Duration
}

// Rule is how long to wait.
type Rule struct {
	// Apart is the time between two looks. Grace is how long containers may run on a host that is away, and those of a
	// static pod that the API server does not know; zero for ever.
	Apart, Grace time.Duration
	// Termination is the least grace period that pods are taken to have, Margin how much longer their containers may run.
	Termination, Margin time.Duration
	// Silence is the time after which a node that is cut off is no longer ready: it counts where there is no Lease.
	Silence time.Duration
}

// Default returns the rule that holds where nothing else is configured.
func Default() Rule {
	return Rule{Apart: Apart, Grace: Grace, Termination: lease.UsualTermination, Margin: Margin, Silence: Silence}
}

// Decision is a verdict and what it rests on.
type Decision struct {
	Verdict Verdict
	// Check is what speaks against the lease, Cause the same in words; empty for nothing.
	Check Check
	Cause string
	// Doubt says why its containers may still run, where they may.
	Doubt string
}

// Decide judges whether nobody has the address of a lease any more.
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

// Suspect returns what speaks against a lease, and the reason in words: what Record finds, or that its pod is being
// deleted while its machine is off, so that no kubelet will ever end it.
func Suspect(e Evidence) (Check, string) {
	check, cause := Record(e.Lease, e.Pod, e.Others, e.Now)
	if l := e.Lease; check == "" && ofPod(l) && e.Pod != nil && e.Pod.Deleting && e.Pod.UID == l.PodUID && e.Host.Off(l) {
		return PodGone, fmt.Sprintf("pod %s is being deleted, and host %s is out of service", l.Who(), l.Host)
	}
	return check, cause
}

// Doubt returns why containers of a lease may still run although a check speaks against it; empty when they surely do
// not. What the pod itself shows counts on any host. Else each Node that claims the host has to say so.
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

// over reports whether the kubelet itself has said that each container of the lease's very pod has ended, for good. A
// static pod starts again under its UID.
func over(e Evidence, check Check) bool {
	return check == PodEnded && e.Pod != nil && e.Pod.Over && e.Pod.UID == e.Lease.PodUID &&
		!workload.Static(e.Lease.PodUID)
}

// doubtOn returns why containers may still run on the machine of one Node.
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
			return fmt.Sprintf("host %s is no ready node", name(host.IsValid(), host.String()))
		}
	case static:
		if !r.passed(e, e.Since) {
			return "it is a static pod, which runs whether the API server knows of it or not"
		}
	case failpoint.Broken("host", "collect"):
	case h.Renewal == NoLease:
		if since < r.Silence {
			return fmt.Sprintf("host %s may be cut off since lately", host)
		}
	case h.Renewal != Since:
		return fmt.Sprintf("host %s has not renewed its Lease since", host)
	}
	return r.seen(e, since, r.Ending(e.Lease, check))
}

// seen returns what is missing of two looks, of which the last one asks the API server; empty for nothing.
func (r Rule) seen(e Evidence, since, need time.Duration) string {
	switch {
	case since < need && need > r.Apart:
		return fmt.Sprintf("it has not been so for %s, as long as its pod may take to end", need)
	case since < need:
		return "it has not been so for long enough"
	case !e.Live && !failpoint.Broken("live", "collect"):
		return "the API server has not been asked"
	}
	return ""
}

// Ending returns for how long a check has to speak against a lease before the lease is given up. The object of a pod
// that was deleted by force is gone at once, and so is one that the store does not have after it was put back: its
// kubelet gives the containers the grace period of the pod from then on. One that has ended had its time before.
func (r Rule) Ending(l lease.Lease, check Check) time.Duration {
	switch {
	case failpoint.Broken("look", "collect"):
		return 0
	case check != PodGone && check != PodReplaced:
		return r.Apart
	}
	return max(r.Apart, max(r.Termination, l.Termination)+r.Margin)
}

// passed reports whether the grace period has passed that began at a time.
func (r Rule) passed(e Evidence, began time.Time) bool {
	return r.Grace != 0 && !began.IsZero() && e.Now.Sub(began) >= r.Grace
}

func name(known bool, text string) string {
	if !known {
		return "unknown"
	}
	return text
}

// Told returns since when a holder is no more, by the API server alone, for those who look once: since its pod has
// ended, was deleted, or another was made in its place; zero where there is no pod any more.
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
