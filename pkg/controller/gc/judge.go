package gc

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/controller/node"
	"github.com/bcsnet/bcsnet/pkg/gone"
	"github.com/bcsnet/bcsnet/pkg/hosts"
	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// Judge decides about a lease by the observations of this leader's passes. If live is true, it reads the pod from the
// API server; otherwise the cache counts as the API server's answer. If there are two attachments, the one with less
// evidence against it decides.
func (c *Collector) Judge(ctx context.Context, l lease.Lease, live bool) (d gone.Decision, err error) {
	for side := range l.Attachments() {
		of, err := c.judge(ctx, side, live)
		if err != nil {
			return of, err
		}
		if !side.FromSecond || of.Verdict < d.Verdict {
			d = of
		}
	}
	return d, nil
}

// judge decides about the attachment from which a lease is seen.
func (c *Collector) judge(ctx context.Context, l lease.Lease, live bool) (d gone.Decision, err error) {
	now := time.Now()
	c.mu.Lock()
	s, ok := c.suspects[spotOf(l)]
	c.mu.Unlock()
	if !ok || !sameHolding(s.lease, l) {
		s = suspect{lease: l, since: now, first: c.Leases.Now()}
	}
	if live {
		return c.lastLook(ctx, s, now)
	}
	e := c.evidence(s, now)
	e.Live = true
	e.Pod, err = c.cachedPod(ctx, l.Holder)
	return c.timed().Decide(e), err
}

// doubt returns the reason why the containers of a suspect may still run, as far as that is known without asking the
// API server; empty if there is none.
func (c *Collector) doubt(s suspect, now time.Time) string {
	e := c.evidence(s, now)
	e.Live = true
	return c.timed().Doubt(e, s.check)
}

// evidence returns the passes' evidence about a suspect.
func (c *Collector) evidence(s suspect, now time.Time) gone.Evidence {
	return c.evidenceOn(c.Nodes.Of(s.lease), s, now)
}

// evidenceOn returns the passes' evidence about a suspect, together with that of some nodes that claim its host.
func (c *Collector) evidenceOn(claims []node.Claim, s suspect, now time.Time) gone.Evidence {
	e := gone.Evidence{
		Lease: s.lease, Pod: s.pod, Others: gone.Indexed(c.Index.Leases), Now: c.Leases.Now(), Since: s.first,
		For:  now.Sub(s.since),
		Host: gone.Host{Away: s.first}, // without a Node, it may still be running
	}
	e.Lease.Termination = c.longest(s.lease)
	for i, n := range claims {
		t := s.nodes[n.Name]
		h := gone.Host{
			Ready: n.Ready, Away: n.Away, OutOfService: n.OutOfService, Renewal: t.renewal, Missed: t.missed,
		}
		if i == 0 {
			e.Host = h
		} else {
			e.Host.Also = append(e.Host.Also, h)
		}
	}
	return e
}

// timed returns the rule with a tolerance for the times of the passes, so that a pass that comes a little early does
// not cost another interval.
func (c *Collector) timed() gone.Rule {
	r, early := c.Rule, c.Every/10
	r.Apart, r.Margin = r.Apart-early, r.Margin-early
	return r
}

// lastLook decides about a suspect by the API server's answer, before its address is taken back.
func (c *Collector) lastLook(ctx context.Context, s suspect, now time.Time) (d gone.Decision, err error) {
	if failpoint.Broken("collect", "live") { // relies on the cache
		e := c.evidence(s, now)
		e.Pod, err = c.cachedPod(ctx, s.lease.Holder)
		return c.timed().Decide(e), err
	}
	claims := c.Nodes.Of(s.lease)
	if err := c.confirmOff(ctx, claims); err != nil {
		return d, err
	}
	e := c.evidenceOn(claims, s, now)
	if e.Pod, err = c.livePod(ctx, s.lease); err != nil {
		return d, err
	}
	e.Live = true
	return c.timed().Decide(e), nil
}

// confirmOff asks the API server whether nodes that are out of service still are: the cache may lag, and the machine
// may be back.
func (c *Collector) confirmOff(ctx context.Context, claims []node.Claim) error {
	for i := range claims {
		if n := &claims[i]; n.OutOfService && !n.Ready {
			var o corev1.Node
			if err := c.Live.Get(ctx, types.NamespacedName{Name: n.Name}, &o); client.IgnoreNotFound(err) != nil {
				return err
			}
			is := hosts.Of(&o) // empty if the Node is gone
			n.OutOfService = is.OutOfService && !is.Ready
		}
	}
	return nil
}

// livePod returns the pod of a lease from the API server; nil if there is none.
func (c *Collector) livePod(ctx context.Context, l lease.Lease) (*workload.Pod, error) {
	pod, err := c.Pods.FindLive(ctx, l.Namespace, l.PodName, "")
	switch {
	case errors.Is(err, workload.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &pod, nil
}

// identify corrects a lease that has an older UID of its pod: it gets the current UID if the API server's pod also
// reports the address. Otherwise code that compares UIDs would take the pod for another one.
func (c *Collector) identify(ctx context.Context, l lease.Lease) {
	ctx, cancel := context.WithTimeout(ctx, allocator.MaxRequestTime)
	defer cancel()
	pod, err := c.livePod(ctx, l)
	if err != nil || pod == nil || !gone.Misnamed(l, *pod) {
		return // the next pass repeats it
	}
	next, ok := lease.Identify(l, pod.UID)
	if !ok {
		return
	}
	switch _, err := c.Leases.Write(ctx, next); {
	case err == nil:
		c.Log.Info("a lease named an earlier pod than the one that has the address: corrected",
			"address", l.Addr.String(),
			"pod", l.Who(), "pod_uid", pod.UID, "earlier_uid", l.PodUID)
	case store.IgnoreConflict(err) != nil:
		c.Log.Warn("a lease names an earlier pod than the one that has the address", "address", l.Addr.String(), "pod",
			l.Who(), "error", err)
	}
}
