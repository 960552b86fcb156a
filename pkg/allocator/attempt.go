package allocator

import (
	"context"
	"net/netip"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// attempt is one ADD on its way through the phases: what was found out about the request, and how far it has come.
type attempt struct {
	Request
	began moment
	// waitUntil is the time at which the request stops waiting for terminating pods.
	waitUntil time.Time
	// holder is whom addresses are held for; podVersion is the version at which its pod was found.
	holder     lease.Holder
	podVersion uint64
	// constraints of the pod. refused keeps a refusal by policy: it blocks new addresses, and not the ones already
	// held.
	constraints Constraints
	refused     *ipam.Refusal
	// families are the address families that both the request and the constraints allow.
	families ipam.Families
	// prefer are addresses of an earlier write of unknown outcome. A read showed that it is not stored; it may be yet.
	// The request asks for the same address, so that only one of the two writes can win.
	prefer []netip.Addr
	progress
}

// progress holds what the phases have found and done. Each pass through them begins with an empty one.
type progress struct {
	// held are the leases that the request has so far. fresh are those of them that this pass took from the free
	// addresses: the phase conclude, or preferKept, may give them back.
	held, fresh []lease.Lease
	// kept means that pods of the claim are terminating, and that the claim keeps all that the request lacks already:
	// it waits for none. If pick chooses a free address all the same, somebody was faster, and the attempt begins anew.
	kept bool
	// picks are assumed for the request, and to be written.
	picks []ipam.Pick
}

// begin makes the attempt of a request that begins now.
func (a *Adder) begin(ctx context.Context, r Request) *attempt {
	if r.IfName == "" {
		r.IfName = lease.DefaultIfName
	}
	t := &attempt{
		Request: r, began: a.engine.moment(r.Host, r.StartedAt, r.ArrivedAt), waitUntil: waitDeadline(ctx),
		families: r.Families,
	}
	t.StartedAt = t.began.counts()
	return t
}
