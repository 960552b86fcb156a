package allocator

import (
	"context"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// confirm waits until the watch has delivered the writes of the request and looks the attachment up again: whatever
// another replica did before them is visible now.
func (a *Adder) confirm(ctx context.Context, t *attempt) error {
	if failpoint.Broken("write") || failpoint.Broken("confirm") {
		return a.preferKept(ctx, t)
	}
	var version uint64
	for _, l := range t.held {
		version = max(version, l.Version)
	}
	end := a.engine.leases.Begin(ctx, store.StageConfirm)
	err := a.engine.index.Feed.WaitSeen(ctx, version)
	end(err)
	if err != nil {
		return ipam.Refuse(ipam.ReasonOutcomeUnknown, "address %s is stored, but the watch did not deliver it in time",
			t.held[0].Addr).
			WithHint("ask again: the same request gets it")
	}
	held, err := a.holdings.of(ctx, t.holder)
	if err != nil {
		return err
	}
	same := slices.EqualFunc(byAddr(held), byAddr(t.held), func(x, y lease.Lease) bool {
		return x.Addr == y.Addr && x.ContainerID == y.ContainerID
	})
	if !same {
		return errStale
	}
	t.held = held
	if err := a.yield(ctx, t); err != nil {
		return err
	}
	return a.preferKept(ctx, t)
}

// yield gives new addresses back where another pod of the same key got one of the same kind before, at another replica:
// of two pods that ask for one machine at once, the one that was written first has the address. It returns errStale
// then: the next attempt finds that pod.
func (a *Adder) yield(ctx context.Context, t *attempt) error {
	c := t.constraints
	if c.PodPrimaryKey == "" || len(t.fresh) == 0 || failpoint.Broken("yield") {
		return nil
	}
	for _, l := range t.fresh {
		earlier := func(o lease.Lease) bool {
			// else it is not an address for this pod
			_, passes, refusal := inherits(a.engine.index, t.want(nil), t.holder, o)
			return passes && refusal == nil && cameFirst(o, l)
		}
		if !slices.ContainsFunc(a.engine.index.Leases.ByKey(c.Claim, c.PodPrimaryKey), earlier) {
			continue
		}
		if _, err := FreeLease(ctx, a.engine.leases, l, lease.Change{}, l.SameHolding); err != nil {
			return err
		}
		return errStale
	}
	return nil
}

func byAddr(ls []lease.Lease) []lease.Lease {
	return slices.SortedFunc(slices.Values(ls), func(a, b lease.Lease) int { return a.Addr.Compare(b.Addr) })
}

// preferKept gives a new address back where the watch has shown, meanwhile, one that is kept for the pod, and returns
// errStale: the next attempt takes the kept one.
func (a *Adder) preferKept(ctx context.Context, t *attempt) error {
	if t.constraints.PodPrimaryKey == "" {
		return nil
	}
	for _, l := range t.fresh {
		if !a.engine.index.RetainsOwn(t.want(nil), l) {
			continue
		}
		if _, err := FreeLease(ctx, a.engine.leases, l, lease.Change{}, l.SameHolding); err != nil {
			return err
		}
		return errStale
	}
	return nil
}
