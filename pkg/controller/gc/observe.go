package gc

import (
	"context"
	"iter"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bcsnet/bcsnet/pkg/gone"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// suspect is a lease that looks abandoned.
type suspect struct {
	lease lease.Lease
	// pod is the pod with the holder's name in the cache; nil if there is none.
	pod *workload.Pod
	// check is the evidence, and cause the same in words. since is the time at which this process first saw it, by the
	// local clock, and first the time at which any process did, by the API server's clock.
	check gone.Check
	cause string
	since time.Time
	first time.Time
	// nodes are the nodes that claim its host.
	nodes map[string]touch
	// reported reports whether a dry run has logged it.
	reported bool
}

// spot is an attachment of an address. An address has a second attachment while a virtual machine migrates. Each is
// judged separately, as if it were a lease, and only an abandoned one ends.
type spot struct {
	addr   netip.Addr
	second bool
}

func spotOf(l lease.Lease) spot { return spot{l.Addr, l.FromSecond} }

// attachments yields the leases in use, sorted by address, as seen from each of their attachments.
func (c *Collector) attachments() iter.Seq[lease.Lease] {
	return func(yield func(lease.Lease) bool) {
		for _, l := range c.Index.Leases.Find(func(l lease.Lease) bool { return l.State == lease.Active }) {
			for side := range l.Attachments() {
				if !yield(side) {
					return
				}
			}
		}
	}
}

// sameHolding reports whether a lease has the same holding as when it was seen before. Its version may differ: when a
// pool's gateway or mask changes, all of its leases are written without a request.
func sameHolding(before, now lease.Lease) bool {
	return before.Bound() == now.Bound() && before.SameHolding(now)
}

func (s suspect) fields() []any {
	l := s.lease
	return []any{
		"address", l.Addr.String(), "pool", l.Pool, "pod", l.Who(), "pod_uid", l.PodUID, "container", l.ContainerID,
		"host", l.Host.String(), "check", string(s.check), "cause", s.cause,
	}
}

// observe updates the suspects from the caches and the Leases of their hosts, and counts the active leases. It also
// corrects leases that have an older UID of their pod.
func (c *Collector) observe(ctx context.Context, now time.Time) (active int) {
	seen, long := map[spot]suspect{}, map[spot]patient{}
	for l := range c.attachments() {
		if !l.FromSecond {
			active++
		}
		if l.Owner != "" || l.PodName == "" || l.Namespace == "" {
			continue
		}
		pod, err := c.cachedPod(ctx, l.Holder)
		if err != nil {
			continue
		}
		if p, ok := c.patience(l, pod); ok {
			long[spotOf(l)] = p
		}
		if pod != nil && gone.Misnamed(l, *pod) {
			c.identify(ctx, l)
			continue
		}
		s := suspect{lease: l, pod: pod, since: now, first: c.Leases.Now()}
		if s.check, s.cause = gone.Suspect(c.evidence(s, now)); s.check == "" || s.check == gone.PodOtherAddress {
			continue
		}
		if before, ok := c.suspects[spotOf(l)]; ok && sameHolding(before.lease, l) && before.check == s.check {
			s.since, s.first, s.reported, s.nodes = before.since, before.first, before.reported, before.nodes
		}
		if at, ok := c.waits.since(l); ok && at.Before(s.first) {
			s.first = at // an earlier process saw it
		}
		seen[spotOf(l)] = s
	}
	c.listen(ctx, seen, now)
	c.setSuspects(seen, long)
	return active
}

// setSuspects replaces the suspects, which refusals mention, and the data about pods with a long grace period.
func (c *Collector) setSuspects(suspects map[spot]suspect, all map[spot]patient) {
	byPool := map[string]int{}
	for _, s := range suspects {
		byPool[s.lease.Pool]++
	}
	c.Index.Pools.SetGone(byPool)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.suspects, c.patient = suspects, all
}

// cachedPod returns the pod with a holder's name; nil if there is none.
func (c *Collector) cachedPod(ctx context.Context, h lease.Holder) (*workload.Pod, error) {
	var o corev1.Pod
	err := c.Cached.Get(ctx, types.NamespacedName{Namespace: h.Namespace, Name: h.PodName}, &o)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	pod := workload.FromObject(&o)
	return &pod, nil
}

// patient is a pod with a longer grace period than its lease has: the lease comes from an earlier release, or the pod
// was deleted with a longer one. It is remembered until after the pod is gone.
type patient struct {
	uid         string
	termination time.Duration
}

// patience returns the data to remember about a pod while a lease names it, if its grace period is longer than the
// lease's.
func (c *Collector) patience(l lease.Lease, pod *workload.Pod) (p patient, ok bool) {
	if pod != nil && pod.UID == l.PodUID {
		p = patient{pod.UID, pod.Termination}
	} else {
		p = c.patient[spotOf(l)]
	}
	return p, p.uid == l.PodUID && p.termination > max(l.Termination, lease.UsualTermination)
}

// longest returns the longest grace period of a lease's pod that the passes have seen.
func (c *Collector) longest(l lease.Lease) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.patient[spotOf(l)]; p.uid == l.PodUID {
		return max(p.termination, l.Termination)
	}
	return l.Termination
}
