package gc

import (
	"context"
	"errors"
	"time"

	"github.com/bcsnet/bcsnet/pkg/gone"
	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// Judge decides about a lease by what the passes of this leader have seen. live has it read the pod from the API
// server; without, the cache counts as if it were the API server's answer. Of two attachments the one that is less gone
// decides.
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

// judge decides about the attachment that a lease is seen from.
func (c *Collector) judge(ctx context.Context, l lease.Lease, live bool) (d gone.Decision, err error) {
	now := time.Now()
	c.mu.Lock()
	s, ok := c.suspects[spotOf(l)]
	c.mu.Unlock()
	if !ok || !sameHolding(s.lease, l) {
		s = suspect{lease: l, since: now, first: c.Leases.Now()}
	}
	e := c.evidence(s, now)
	if e.Live = true; live {
		e.Pod, err = c.livePod(ctx, l)
	} else {
		e.Pod, err = c.cachedPod(ctx, l.Holder)
	}
	return c.timed().Decide(e), err
}

// doubt returns why the containers of a suspect may still run, as far as that is known without asking the API server
// for its pod; empty for no doubt.
func (c *Collector) doubt(s suspect, now time.Time) string {
	e := c.evidence(s, now)
	e.Live = true
	return c.timed().Doubt(e, s.check)
}

// evidence returns what the passes know of a suspect.
func (c *Collector) evidence(s suspect, now time.Time) gone.Evidence {
	e := gone.Evidence{
		Lease: s.lease, Others: gone.Indexed(c.Index), Now: c.Leases.Now(), Since: s.first, For: now.Sub(s.since),
		Host: gone.Host{Ready: true, Renewal: s.renewal, Missed: s.missed},
	}
	e.Lease.Termination = c.longest(s.lease)
	if since, away := c.Nodes.AwaySince(s.lease.Host); away {
		e.Host = gone.Host{Away: since}
		if !c.Nodes.Known(s.lease.Host) {
			e.Host.Away = s.first // it may be there for all that is known, as with a second network card
		}
	}
	return e
}

// timed returns the rule with a tolerance for the times of the passes: one that comes a little early does not cost
// another interval.
func (c *Collector) timed() gone.Rule {
	r, early := c.Rule, c.Every/10
	r.Apart, r.Margin = r.Apart-early, r.Margin-early
	return r
}

// lastLook reads the pod of a lease from the API server before its address is taken back. live is false where that
// could not be read.
func (c *Collector) lastLook(ctx context.Context, l lease.Lease) (pod *workload.Pod, live bool, err error) {
	if failpoint.Broken("collect", "live") { // relies on the cache
		pod, err = c.cachedPod(ctx, l.Holder)
		return pod, false, err
	}
	pod, err = c.livePod(ctx, l)
	return pod, err == nil, err
}

// livePod returns the pod of a lease as the API server has it; nil when there is none.
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
