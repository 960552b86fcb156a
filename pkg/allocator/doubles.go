package allocator

import (
	"context"
	"slices"
	"sync"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// doubles are pods and owners that seem to hold two addresses of one family, or of two networks, on one interface. An ADD
// that finds this mends it; but the one that took the second may have ended before its confirmation, with its client or its
// replica, and its holder may live for long without another. Leases of owners are never collected.
type doubles struct {
	mu sync.Mutex
	by map[double]ipam.Holder
}

// double is an attachment.
type double struct{ owner, podUID, ifName string }

func newDoubles() *doubles { return &doubles{by: map[double]ipam.Holder{}} }

func (d *doubles) put(h ipam.Holder) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.by[double{h.Owner, h.PodUID, h.IfName}] = h
}

// take empties the set.
func (d *doubles) take() map[double]ipam.Holder {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := d.by
	d.by = map[double]ipam.Holder{}
	return all
}

// isDouble reports whether the holder of a lease has more than one request gets. One whose interface nobody knows, as it
// was made again from what its pod reports, is no double of any: it may be another interface's.
func (a *Allocator) isDouble(l ipam.Lease) bool {
	if l.State != ipam.Active || l.PodUID == "" && l.Owner == "" || l.IfName == "" {
		return false
	}
	return tooMany(slices.DeleteFunc(a.index.ByAttachment(l.Holder), func(l ipam.Lease) bool { return l.State != ipam.Active }), a.network)
}

// settleDoubles has the doubles keep what an ADD would answer. Those that it could not look at come again.
func (a *Allocator) settleDoubles(ctx context.Context) {
	for _, h := range a.doubles.take() {
		if !a.settleDouble(ctx, h) {
			a.doubles.put(h)
		}
	}
}

func (a *Allocator) settleDouble(ctx context.Context, h ipam.Holder) bool {
	ctx, cancel := context.WithTimeout(ctx, settleEvery)
	defer cancel()
	release, err := a.locks.acquire(ctx, Request{Owner: h.Owner, Namespace: h.Namespace, PodName: h.PodName, IfName: h.IfName}.key())
	if err != nil {
		return false
	}
	defer release()
	_, again, err := a.held(ctx, ipam.Holder{Owner: h.Owner, PodUID: h.PodUID, IfName: h.IfName})
	return err == nil && !again
}
