package judge

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Ledger is who must have which address now: from the answer to an ADD until its pod is about to give the
// address up, or an operator to take it.
type Ledger struct {
	*Verdict
	mu sync.Mutex
	by map[netip.Addr]Holding
}

// Holding is a line of the ledger.
type Holding struct {
	Pod, Container string
	// Second is another container that has it, too, while a virtual machine migrates live.
	Second string
	Since  uint64 // the version of the object that was answered
	// awaited: the store was put back, and the address was not seen with its container since.
	awaited bool
	// until is the end of what the holder may rely on; zero for none.
	until time.Time
}

// over reports whether the holder may have lost its address by a time.
func (h Holding) over(at time.Time) bool { return !h.until.IsZero() && at.After(h.until) }

// NewLedger makes an empty one.
func NewLedger(v *Verdict) *Ledger { return &Ledger{Verdict: v, by: map[netip.Addr]Holding{}} }

// Hold notes that a container has an address as of a version of its object.
func (l *Ledger) Hold(a netip.Addr, pod, container string, since uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now, taken := l.by[a]; taken && !now.has(container) && !now.over(time.Now()) {
		l.Wrong("%s was given to container %.8s of %s while container %.8s of %s has it", a, container, pod,
			now.Container, now.Pod)
		return
	}
	second := l.by[a].Second
	if second == container {
		return
	}
	l.by[a] = Holding{Pod: pod, Container: container, Second: second, Since: since}
}

// HoldBeside notes that a container of a virtual machine has an address as of a version of its object, alone or beside
// one other of the machine.
func (l *Ledger) HoldBeside(a netip.Addr, machine, container string, since uint64) {
	l.mu.Lock()
	h, held := l.by[a]
	if held && h.Pod == machine && !h.has(container) && h.Second == "" {
		h.Second, h.Since = container, since
		l.by[a] = h
		l.mu.Unlock()
		return
	}
	l.mu.Unlock()
	l.Hold(a, machine, container, since)
}

// has reports whether a container is one of the holding's.
func (h Holding) has(container string) bool {
	return h.Container == container || h.Second != "" && h.Second == container
}

// in reports whether a lease says the same: each container of the holding has the address.
func (h Holding) in(l lease.Lease) bool {
	for _, container := range []string{h.Container, h.Second} {
		if _, has := l.From(func(l lease.Lease) bool { return l.ContainerID == container }); !has && container != "" {
			return false
		}
	}
	return true
}

// Until notes that a container may lose its address after a time, whether it has ended or not: as long as that, its
// host has had to end it. It is judged by the time of the write, not by when somebody learns of that.
func (l *Ledger) Until(a netip.Addr, container string, end time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h, held := l.by[a]; held && h.Container == container {
		h.until = end
		l.by[a] = h
	}
}

// Holds reports whether a container has an address by the ledger.
func (l *Ledger) Holds(a netip.Addr, container string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, held := l.by[a]
	return held && h.has(container)
}

// End notes that a holder may lose its address from now on.
func (l *Ledger) End(a netip.Addr, container string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch h := l.by[a]; {
	case !h.has(container):
	case h.Second == "":
		delete(l.by, a)
	default:
		if h.Container == container {
			h.Container = h.Second
		}
		h.Second = ""
		l.by[a] = h
	}
}

// All returns a copy of the ledger.
func (l *Ledger) All() map[netip.Addr]Holding {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.by)
}

// PutBack notes that the store was put back to an earlier copy: versions go back, and every holder must be seen again.
func (l *Ledger) PutBack() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for a, h := range l.by {
		h.awaited = true
		l.by[a] = h
	}
}

// Awaited returns the addresses that were not seen with their containers since the store was put back, and should
// have been.
func (l *Ledger) Awaited() map[netip.Addr]Holding {
	all := l.All()
	maps.DeleteFunc(all, func(_ netip.Addr, h Holding) bool { return !h.awaited || h.over(time.Now()) })
	return all
}

// Awaits reports whether an address was not seen with its container since the store was put back.
func (l *Ledger) Awaits(a netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.by[a].awaited
}

// Seen judges one version of one address.
func (l *Ledger) Seen(now lease.Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, held := l.by[now.Addr]
	own := now.State == lease.Active && h.in(now)
	switch {
	case held && h.awaited:
		if own {
			h.Since, h.awaited = now.Version, false
			l.by[now.Addr] = h
		}
		return
	case !held, now.Version <= h.Since, own:
		return
	case h.over(now.Updated):
		delete(l.by, now.Addr)
		return
	}
	l.Wrong("live pod %s (container %.8s) lost %s: version %d is %s, container %.8s of %s; history %v",
		h.Pod, h.Container, now.Addr, now.Version, now.State, now.ContainerID, now.Who(), now.History.Entries())
	delete(l.by, now.Addr)
}

// Differences between the leases and what the pods should have.
func Differences(all []lease.Lease, want map[netip.Addr]Holding) (wrong []string) {
	found := map[netip.Addr]bool{}
	for _, l := range all {
		h, wanted := want[l.Addr]
		switch {
		case !wanted:
			wrong = append(wrong, fmt.Sprintf("%s is held by container %.8s of %s (pod %s, since %s): a leak", l.Addr,
				l.ContainerID, l.Who(), l.PodUID, l.Updated))
		case !h.in(l):
			wrong = append(wrong, fmt.Sprintf("%s is held by container %.8s of %s, not by %.8s of %s", l.Addr,
				l.ContainerID, l.Who(), h.Container, h.Pod))
		case (l.Other != nil) != (h.Second != ""):
			wrong = append(wrong, fmt.Sprintf("%s has the attachments %.8s and %+v, not %.8s and %.8s of %s", l.Addr,
				l.ContainerID, l.Other, h.Container, h.Second, h.Pod))
		}
		found[l.Addr] = true
	}
	for a, h := range want {
		if !found[a] {
			wrong = append(wrong, fmt.Sprintf("%s of container %.8s of %s is held by nobody", a, h.Container, h.Pod))
		}
	}
	slices.Sort(wrong)
	return wrong
}
