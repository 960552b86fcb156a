package clusterapi

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/controller/leadership"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// answer gives a claim its address: first the lease, then the IPAddress, then the name of that in the claim's status.
func (r *Reconciler) answer(
	ctx context.Context, name types.NamespacedName, c *claim, a *address,
) (again time.Duration, err error) {
	told, held := c.Status.AddressRef.Name != "", r.holders.Held(name)
	if a == nil && (told || len(held) > 0) { // it was made a moment ago, or is gone
		if a, err = r.liveAddress(ctx, name); err != nil {
			return 0, err
		}
	}
	if a != nil && a.DeletionTimestamp != nil && !a.of(c.UID) && !told {
		return r.release(ctx, name, a, "its claim is gone, and there is another one of the name")
	}
	request := allocator.Request{Pool: c.Spec.PoolRef.Name}
	if a != nil {
		if !a.addr().IsValid() || a.Spec.PoolRef != c.Spec.PoolRef || a.Spec.ClaimRef.Name != c.Name {
			return r.refuse(ctx, c, &ipam.Refusal{Reason: ipam.ReasonClaimConflict, Message: fmt.Sprintf(
				"IPAddress %s exists already, with address %s of pool %s for claim %s; it stays as it is", name,
				a.Spec.Address, a.Spec.PoolRef.Name, a.Spec.ClaimRef.Name)})
		}
		request.Addrs = []netip.Addr{a.addr()}
		// Nobody was told of any other address: the IPAddress is the answer.
		if err := r.holders.GiveBackOthers(ctx, name, request.Addrs); err != nil {
			return 0, err
		}
		held = r.holders.Held(name)
	}
	if a == nil || len(held) != 1 || held[0].Addr != a.addr() {
		if a == nil {
			if err := r.noteUntold(ctx, name); err != nil {
				return 0, err
			}
		}
		taken, refusal, again, err := r.holders.Take(ctx, name, request)
		switch {
		case err != nil:
			return 0, err
		case refusal != nil:
			next, err := r.refuse(ctx, c, refusal)
			return leadership.Sooner(next, again), err
		}
		held = []lease.Lease{taken[0].Lease}
	}
	if err := r.keepAddress(ctx, c, a, held[0]); err != nil {
		return r.published.Wrote(name.String(), err), nil
	}
	r.untold.Delete(name)
	return r.publish(ctx, c, true, reasonReady, fmt.Sprintf("it has address %s/%d of pool %s", held[0].Addr,
		held[0].Bits, c.Spec.PoolRef.Name))
}

// noteUntold notes that nobody was told of what a claim holds, until the term ends. Without a note, a claim that is
// gone together with its IPAddress keeps its address.
func (r *Reconciler) noteUntold(ctx context.Context, name types.NamespacedName) error {
	r.untold.Store(name, true)
	err := ctx.Err()
	if err != nil { // the notes of the term may have been cleared already
		r.untold.Delete(name)
	}
	return err
}

// liveAddress reads the IPAddress of a claim from the API server; nil if there is none.
func (r *Reconciler) liveAddress(ctx context.Context, name types.NamespacedName) (*address, error) {
	u, err := r.addresses.Live(ctx, name)
	return read[address](u), err
}
