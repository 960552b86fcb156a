package allocator

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Attachment is one interface of one container.
type Attachment struct{ ContainerID, IfName string }

// NetworkGC names the attachments that a host still has of one network configuration.
type NetworkGC struct {
	Host       netip.Addr
	CNINetwork string
	// Attachments are those that stay; an empty IfName stands for eth0.
	Attachments []Attachment
	// StartedAt is when the caller began, and ArrivedAt when the first replica got the request, as in a Request.
	StartedAt, ArrivedAt time.Time
}

// CollectNetwork gives up what containers of a host hold that were attached by a network configuration, and that the
// host does not list. It leaves alone what was asked for after the call began, what was bound less than maxAge before
// the call came, what an ADD is about at this moment, and what names another network, or none. What it released comes
// back also with an error; asking again does the rest.
//
// Who calls may have made the list while a pod was set up: its address is taken, and its container is not in the list
// yet. That takes less than maxAge. It is counted by the API server's time, as the host's clock may be wrong, or be set
// in between. What is taken after the call came is not in the index yet, or under another holder, and stays: only
// holdings that are known at the beginning are given up.
func (a *Allocator) CollectNetwork(ctx context.Context, r NetworkGC) ([]lease.Lease, error) {
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
	byKey := map[string][]lease.Lease{}
	for _, l := range a.index.ByHost(r.Host) {
		if l, forgotten := l.From(g.forgotten); forgotten {
			key := Request{Owner: l.Owner, Namespace: l.Namespace, PodName: l.PodName, IfName: l.IfName}.key()
			byKey[key] = append(byKey[key], l)
		}
	}
	var mu sync.Mutex
	var released []lease.Lease
	var group errgroup.Group
	group.SetLimit(parallelWrites)
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		group.Go(func() error {
			gone, err := a.collectAttachment(ctx, key, byKey[key], g)
			mu.Lock()
			defer mu.Unlock()
			released = append(released, gone...)
			return err
		})
	}
	err := group.Wait()
	return byAddr(released), err
}

// collectAttachment releases what was forgotten of one interface of a pod or owner, unless an ADD of it is under way.
// One that comes meanwhile waits.
func (a *Allocator) collectAttachment(
	ctx context.Context, key string, all []lease.Lease, g networkGC,
) (released []lease.Lease, err error) {
	done, free := a.locks.tryAcquire(key)
	defer done()
	if !free {
		return nil, nil
	}
	for _, l := range all {
		gone, err := a.releaseOne(ctx, l, g.since(l))
		if err != nil {
			return released, fmt.Errorf("releasing %s: %w", l.Addr, err)
		}
		if gone {
			released = append(released, l)
		}
	}
	return released, nil
}

// networkGC is a NetworkGC on its way.
type networkGC struct {
	host    netip.Addr
	network string
	listed  map[Attachment]struct{}
	// asked and bound are the times before which a lease was asked for and bound that may go.
	asked, bound time.Time
}

// forgotten reports whether a lease, seen from the attachment in question, is of a container that the host knows no
// more. An earlier container of the pod that is listed keeps it, too.
func (g networkGC) forgotten(l lease.Lease) bool {
	return l.State == lease.Active && l.Host == g.host && l.ContainerID != "" && l.CNINetwork != "" &&
		l.CNINetwork == g.network && l.StartedAt.Before(g.asked) && l.Updated.Before(g.bound) && !l.Has(func(id string) bool {
		_, ok := g.listed[Attachment{id, l.IfName}]
		return ok
	})
}

// since returns forgotten for those attachments of a lease that it has now.
func (g networkGC) since(l lease.Lease) func(lease.Lease) bool {
	return func(now lease.Lease) bool {
		_, known := l.From(func(then lease.Lease) bool {
			return then.ContainerID == now.ContainerID && then.IfName == now.IfName && then.StartedAt.Equal(now.StartedAt)
		})
		return known && g.forgotten(now)
	}
}
