package allocator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/bcsnet/bcsnet/pkg/gone"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// Attachment is one interface of one container.
type Attachment struct{ ContainerID, IfName string }

// NetworkGC names the attachments that a runtime has of one network configuration on a host.
type NetworkGC struct {
	Host       netip.Addr
	CNINetwork string
	// Attachments are those that stay; an empty IfName stands for eth0.
	Attachments []Attachment
	// StartedAt is when the caller began, and ArrivedAt when the first replica got the request, as in a Request.
	StartedAt, ArrivedAt time.Time
}

// NetworkCollected is what became of the leases that a list lacks.
type NetworkCollected struct {
	// Released are those whose pod is gone.
	Released []lease.Lease
	// Running are those whose pod is there: the list is not of all that has addresses by the network.
	Running []lease.Lease
	// Waiting are those whose containers may run although the pod is gone: the garbage collection frees them.
	Waiting []lease.Lease
	// Kept are all attachments that the network still has on the host and that the list lacks.
	Kept []Attachment
}

// CollectNetwork gives up what containers of a host hold that were attached by a network configuration, that the list
// lacks, and whose pod is gone.
//
// A list is a hint, the pod is the fact. It has what one runtime attached by one network, and several programs may
// attach by a network: where Multus stands above it, the runtime sends an empty list. So a pod that is there keeps its
// address, whatever the list says. Of a pod that is gone the containers may still run: the list says that they do not
// where it has a container that was attached later than they were, as its runtime is the one that attaches by this
// network. Only then the waits of package gone are over; anything else is left to the garbage collection, and so is a
// static pod.
//
// It leaves alone, too, what was asked for after the call began, what was bound less than maxAge before the call came,
// what an ADD is about at this moment, and what names another network, or none. What it released comes back also with
// an error; asking again does the rest.
//
// Who calls may have made the list while a pod was set up: its address is taken, and its container is not in the list
// yet. That takes less than maxAge. It is counted by the API server's time, as the host's clock may be wrong, or be set
// in between. What is taken after the call came is not in the index yet, or under another holder, and stays: only
// holdings that are known at the beginning are given up.
func (a *Allocator) CollectNetwork(ctx context.Context, r NetworkGC) (NetworkCollected, error) {
	began := a.moment(r.Host, r.StartedAt, r.ArrivedAt)
	g := networkGC{
		host: r.Host, network: r.CNINetwork, listed: make(map[Attachment]struct{}, len(r.Attachments)),
		asked: began.counts(), bound: began.arrived.Add(-maxAge),
	}
	for _, at := range r.Attachments {
		if at.IfName == "" {
			at.IfName = lease.DefaultIfName
		}
		g.listed[at] = struct{}{}
	}
	all := a.index.Leases.ByHost(r.Host)
	byKey := map[string][]lease.Lease{}
	for _, l := range all {
		if of, listed := l.From(g.lists); listed && of.Updated.After(g.latest) {
			g.latest = of.Updated
		}
		if l, forgotten := l.From(g.forgotten); forgotten {
			key := Request{Owner: l.Owner, Namespace: l.Namespace, PodName: l.PodName, IfName: l.IfName}.key()
			byKey[key] = append(byKey[key], l)
		}
	}
	var mu sync.Mutex
	var done NetworkCollected
	var group errgroup.Group
	group.SetLimit(parallelWrites)
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		group.Go(func() error {
			part, err := a.collectAttachment(ctx, key, byKey[key], g)
			mu.Lock()
			defer mu.Unlock()
			done.Released = append(done.Released, part.Released...)
			done.Running = append(done.Running, part.Running...)
			done.Waiting = append(done.Waiting, part.Waiting...)
			return err
		})
	}
	err := group.Wait()
	done.Released, done.Running, done.Waiting = byAddr(done.Released), byAddr(done.Running), byAddr(done.Waiting)
	done.Kept = g.kept(all, done.Released)
	return done, err
}

// collectAttachment gives up what was forgotten of one interface of a pod that is gone, unless an ADD of it is under
// way. One that comes meanwhile waits.
func (a *Allocator) collectAttachment(
	ctx context.Context, key string, all []lease.Lease, g networkGC,
) (done NetworkCollected, err error) {
	unlock, free := a.locks.tryAcquire(key)
	defer unlock()
	if !free {
		return done, nil
	}
	for _, l := range all {
		d, err := a.judgeForgotten(ctx, l)
		switch {
		case err != nil:
			return done, fmt.Errorf("finding the pod of %s: %w", l.Addr, err)
		case d.Verdict == gone.Held:
			done.Running = append(done.Running, l)
			continue
		case d.Verdict == gone.MayRun || !l.Updated.Before(g.latest):
			done.Waiting = append(done.Waiting, l)
			continue
		}
		c := lease.Change{Verb: lease.VerbCollect, By: "bcsnet-controller", Reason: string(d.Check)}
		released, err := ReleaseLease(ctx, a.leases, l, c, g.since(l))
		if err != nil {
			return done, fmt.Errorf("releasing %s: %w", l.Addr, err)
		}
		if released {
			done.Released = append(done.Released, l)
		}
	}
	return done, nil
}

// judgeForgotten decides whether nobody has an address whose containers the runtime says it has no more: no wait is
// left then. A cache may say that the pod is there, the API server alone that it is not.
func (a *Allocator) judgeForgotten(ctx context.Context, l lease.Lease) (d gone.Decision, err error) {
	if l.Owner != "" || l.PodName == "" {
		return d, nil
	}
	e := gone.Evidence{
		Lease: l, Live: true, Others: gone.Indexed(a.index), Now: a.leases.Now(),
		Host: gone.Host{Ready: true, Renewal: gone.Since},
	}
	e.Lease.Termination = 0
	pod, err := a.pods.Find(ctx, l.Namespace, l.PodName, l.PodUID, l.Host)
	switch {
	case err != nil && !errors.Is(err, workload.ErrNotFound):
		return d, readFailed(err)
	case pod.Name != "":
		e.Pod = &pod
	}
	if d = (gone.Rule{}).Decide(e); d.Verdict == gone.Gone && workload.Static(l.PodUID) {
		d.Verdict = gone.MayRun
	}
	return d, nil
}

// networkGC is a NetworkGC on its way.
type networkGC struct {
	host    netip.Addr
	network string
	listed  map[Attachment]struct{}
	// asked and bound are the times before which a lease was asked for and bound that may go.
	asked, bound time.Time
	// latest is when the last of those was bound that the list has; zero where it has none of this network.
	latest time.Time
}

// lists reports whether a lease, seen from the attachment in question, is of this network, and of a container that the
// host lists. An earlier container of the pod that is listed counts, too.
func (g networkGC) lists(l lease.Lease) bool {
	return g.has(l) && l.Has(func(id string) bool {
		_, ok := g.listed[Attachment{id, l.IfName}]
		return ok
	})
}

// has reports whether a lease, seen from the attachment in question, is of this network.
func (g networkGC) has(l lease.Lease) bool {
	return l.State == lease.Active && l.Host == g.host && l.ContainerID != "" && l.CNINetwork != "" &&
		l.CNINetwork == g.network
}

// forgotten reports whether a lease, seen from the attachment in question, is one of this network that the list lacks,
// although it is old enough to be there.
func (g networkGC) forgotten(l lease.Lease) bool {
	return g.has(l) && !g.lists(l) && l.StartedAt.Before(g.asked) && l.Updated.Before(g.bound)
}

// kept returns the attachments of this network that are neither listed nor released.
func (g networkGC) kept(all, released []lease.Lease) (kept []Attachment) {
	kept = []Attachment{}
	freed := make(map[netip.Addr]bool, len(released))
	for _, l := range released {
		freed[l.Addr] = true
	}
	for _, l := range all {
		of, unlisted := l.From(func(l lease.Lease) bool { return g.has(l) && !g.lists(l) })
		if unlisted && !freed[l.Addr] {
			kept = append(kept, Attachment{of.ContainerID, of.IfName})
		}
	}
	return kept
}

// since returns forgotten for those attachments of a lease that it has now.
func (g networkGC) since(l lease.Lease) func(lease.Lease) bool {
	return func(now lease.Lease) bool {
		_, known := l.From(func(then lease.Lease) bool {
			return then.ContainerID == now.ContainerID && then.IfName == now.IfName &&
				then.StartedAt.Equal(now.StartedAt)
		})
		return known && g.forgotten(now)
	}
}
