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
	// Attachments are the attachments that stay; an empty IfName stands for eth0.
	Attachments []Attachment
	// StartedAt and ArrivedAt mean the same as in a Request.
	StartedAt, ArrivedAt time.Time
}

// NetworkCollected has the leases that a list lacks, by what became of them.
type NetworkCollected struct {
	// Released are the leases that were freed: their pods are gone.
	Released []lease.Lease
	// Running are the leases of pods that exist, although the list lacks them. They stay.
	Running []lease.Lease
	// Waiting are the leases whose containers may still run although the pod is gone. The collector frees them.
	Waiting []lease.Lease
	// Kept are all attachments that the network still has on the host and that the list lacks.
	Kept []Attachment
}

// CollectNetwork releases the leases of containers of a host that were attached by a network configuration, are missing
// in the list, and whose pod is gone.
//
// A list is a hint, the pod is the fact. The list has what one runtime attached by one network, and several programs
// may attach by a network: if Multus is above it, the runtime sends an empty list. So a pod that is there keeps its
// address, whatever the list says. The containers of a pod that is gone may still run. They do not if the list has a
// container that was attached later than they were: then its runtime is the one that attaches by this network. Only
// then the waits of package gone are over. All else is left to the garbage collection, and so is a static pod.
//
// Also left alone are leases that were asked for after the call began, that were bound less than maxAge before the call
// came, that an ADD is about at this moment, and that name another network, or none. The released leases come back also
// with an error. To ask again does the rest.
//
// The caller may have made the list while a pod was set up: its address is taken, and its container is not in the list
// yet. That takes less than maxAge. It is counted by the API server's time, as the host's clock may be wrong, or be set
// in between. Addresses that are taken after the call came are not in the index yet, or have another holder, and stay:
// only leases that are known at the beginning are released.
func (m *Repairer) CollectNetwork(ctx context.Context, r NetworkGC) (NetworkCollected, error) {
	began := m.engine.moment(r.Host, r.StartedAt, r.ArrivedAt)
	g := networkGC{
		host: r.Host, network: r.CNINetwork, listed: make(map[Attachment]struct{}, len(r.Attachments)),
		askedBefore: began.counts(), boundBefore: began.arrived.Add(-maxAge),
	}
	for _, at := range r.Attachments {
		if at.IfName == "" {
			at.IfName = lease.DefaultIfName
		}
		g.listed[at] = struct{}{}
	}
	all := m.engine.index.Leases.ByHost(r.Host)
	byKey := map[string][]lease.Lease{}
	for _, l := range all {
		if of, listed := l.From(g.lists); listed && of.Updated.After(g.latest) {
			g.latest = of.Updated
		}
		if l, unlisted := l.From(g.unlisted); unlisted {
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
			part, err := m.collectAttachment(ctx, key, byKey[key], g)
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

// collectAttachment gives up what the list lacks of one interface of a pod that is gone, unless an ADD of it is under
// way. One that comes meanwhile waits.
func (m *Repairer) collectAttachment(
	ctx context.Context, key string, all []lease.Lease, g networkGC,
) (done NetworkCollected, err error) {
	unlock, free := m.engine.locks.tryAcquire(key)
	defer unlock()
	if !free {
		return done, nil
	}
	for _, l := range all {
		d, err := m.judgeUnlisted(ctx, l)
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
		released, err := ReleaseLease(ctx, m.engine.leases, l, c, g.unlistedSince(l))
		if err != nil {
			return done, fmt.Errorf("releasing %s: %w", l.Addr, err)
		}
		if released {
			done.Released = append(done.Released, l)
		}
	}
	return done, nil
}

// judgeUnlisted decides whether nobody has an address whose containers the runtime says it has no more: no wait is left
// then. A cache may say that the pod is there, only the API server that it is not.
func (m *Repairer) judgeUnlisted(ctx context.Context, l lease.Lease) (d gone.Decision, err error) {
	if l.Owner != "" || l.PodName == "" {
		return d, nil
	}
	e := gone.Evidence{
		Lease: l, Live: true, Others: gone.Indexed(m.engine.index.Leases), Now: m.engine.leases.Now(),
		Host: gone.Host{Ready: true, Renewal: gone.Since},
	}
	e.Lease.Termination = 0
	pod, err := m.engine.pods.Find(ctx, l.Namespace, l.PodName, l.PodUID, l.Host)
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
