package holding

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Pass gives an address that an object holds to another object, which has it already beside the first one. It fails if
// the first one does not hold it any more.
func (h *Holders) Pass(ctx context.Context, l lease.Lease, to types.NamespacedName) error {
	next := h.Owner(to)
	_, passed, err := h.Leases.Update(ctx, l,
		func(l lease.Lease) (lease.Lease, bool) { return lease.Pass(l, next, h.Leases.Now()) }, l.SameHolding)
	switch {
	case err != nil:
		return err
	case !passed:
		return fmt.Errorf("address %s of %s was changed meanwhile", l.Addr, l.Owner)
	}
	h.Log.Info("an address was passed on", "address", l.Addr.String(), "holder", l.Owner, "to", next)
	return nil
}

// WhyNot returns why an object could not get what a request asks for beside what it holds; nil if it could. Then the
// object waits, and again is the time after which to ask again. If the object has an address of the pool, it does not
// matter what its namespace may have at most: it would give that address up for the new one.
func (h *Holders) WhyNot(
	ctx context.Context, name types.NamespacedName, r allocator.Request,
) (refusal *ipam.Refusal, again time.Duration, err error) {
	r.Owner, r.Namespace, r.ForObject = h.Owner(name), name.Namespace, true
	r.IfName += "/next"
	h.waiting.For(name.String(), h.Index.Pools.CountedAs(r.Pool))
	_, _, err = h.Adder.Propose(ctx, r)
	why, refused := errors.AsType[*ipam.Refusal](err)
	switch {
	case refused && why.Reason == ipam.ReasonQuotaExceeded && h.counts(name, r.Pool):
		err = nil
	case refused && !passing(why.Reason):
		return why, waitEvery, nil
	}
	h.waiting.Set(name.String(), false)
	return nil, 0, err
}

// counts reports whether an object has an address of a pool; of any one if no single pool is named.
func (h *Holders) counts(name types.NamespacedName, pool string) bool {
	return slices.ContainsFunc(h.Held(name), func(l lease.Lease) bool {
		return pool == "" || h.Index.Pools.CountedAs(l.Pool) == h.Index.Pools.CountedAs(pool)
	})
}
