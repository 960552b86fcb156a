package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/block"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

const (
	// splitNetwork and flatNetwork are the same addresses, in blocks and in one piece, each on a control plane of its
	// own: a namespace that could be given a block draws from no flat pool.
	splitNetwork, flatNetwork = "bench-split", "bench-flat"
	blocksNetwork             = "10.80.0.0/13"
	// owned is the number of blocks that namespaces have, of blockLength; fewLeases, then manyLeases addresses of each
	// are in use.
	owned, blockLength    = 4096, 27
	fewLeases, manyLeases = 4, 16
	// startTurns are starts of each controller, by the number of rounds.
	startTurns = 3
)

// blocks measures a network of which 4,096 blocks are owned beside a flat pool of the same addresses, and namespaces
// that get their first block.
func (b *bench) blocks(ctx context.Context) error {
	flat, err := setUp(ctx, b.settings, b.report)
	if err != nil {
		return err
	}
	defer flat.close()
	if _, err := flat.networkPool(ctx, flatNetwork, blocksNetwork); err != nil {
		return err
	}
	split, err := b.networkPool(ctx, splitNetwork, blocksNetwork, inBlocks)
	if err != nil {
		return err
	}
	say("making %d blocks", owned)
	var group errgroup.Group
	group.SetLimit(maxCallers)
	for i := range owned {
		group.Go(func() error {
			_, err := b.filler.CreateBlock(ctx, tenantBlock(split, i, tenant(i)))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if err := b.startsBeside(ctx, flat, "without leases"); err != nil {
		return err
	}
	written, err := b.writtenByChange(ctx, split)
	if err != nil {
		return err
	}
	b.report.block("pools written by a change of the parent", fmt.Sprint(written))
	if err := b.startsWithLeases(ctx, flat, split, 0, fewLeases); err != nil {
		return err
	}
	if err := b.startsWithLeases(ctx, flat, split, fewLeases, manyLeases); err != nil {
		return err
	}
	for _, callers := range []int{1, 16, maxCallers} {
		what := fmt.Sprintf("allocations a second at %d callers, of those of the flat pool", callers)
		inBlocks, ofFlat := service{b: b, kind: "split", network: splitNetwork},
			service{b: flat, kind: "flat", network: flatNetwork}
		if err := b.inTurns(ctx, what, callers, rate, contender{inBlocks.add, inBlocks.del},
			contender{ofFlat.add, ofFlat.del}); err != nil {
			return err
		}
	}
	return b.newcomers(ctx, flat)
}

// startsWithLeases measures starts once so many addresses of each block are in use, of which some are already.
func (b *bench) startsWithLeases(ctx context.Context, flat *bench, split *v1.BCSNetPool, have, want int) error {
	say("making %d leases, in blocks and in a flat pool", owned*(want-have))
	err := errors.Join(b.fillBlocks(ctx, split, have, want, true), flat.fillBlocks(ctx, split, have, want, false))
	if err != nil {
		return err
	}
	return b.startsBeside(ctx, flat, fmt.Sprintf("with %d leases", owned*want))
}

// inBlocks makes a pool one that is split into blocks, which namespaces get by themselves.
func inBlocks(s *v1.BCSNetPoolSpec) { s.BlockSize, s.AutoAssign = blockLength, true }

func tenant(i int) string { return fmt.Sprintf("tenant-%d", i) }

// tenantBlock returns a block of a pool by its number.
func tenantBlock(p *v1.BCSNetPool, number int, namespace string) ipam.Pool {
	parent := store.Pool(p)
	first := netip.MustParsePrefix(p.Spec.AvailableIPs[0]).Addr().As4()
	at := uint32(first[0])<<24 | uint32(first[1])<<16 + uint32(number)<<(32-blockLength)
	addr := netip.AddrFrom4([4]byte{byte(at >> 24), byte(at >> 16), byte(at >> 8), byte(at)})
	of := ipam.Pool{Parent: p.Name, Block: true, Namespaces: map[string]struct{}{namespace: {}}, Plan: parent.Plan}
	of.Plan.CIDR = netip.PrefixFrom(addr, blockLength)
	of.Name = block.Name(p.Name, of.Plan.CIDR)
	return of
}

// fillBlocks takes the first addresses of each block that is owned, but for those that are taken: as leases of the
// block, or of the flat pool.
func (b *bench) fillBlocks(ctx context.Context, split *v1.BCSNetPool, have, want int, ofBlocks bool) error {
	var group errgroup.Group
	group.SetLimit(maxCallers)
	for i := range owned {
		of := tenantBlock(split, i, tenant(i))
		params := lease.Params{Pool: flatNetwork, Bits: of.Plan.Subnet.Bits(), Gateway: of.Plan.Gateway}
		if ofBlocks {
			params.Pool = of.Name
		}
		group.Go(func() error {
			a := of.Plan.CIDR.Addr()
			for n := range want {
				if a = a.Next(); n < have {
					continue
				}
				if err := take(ctx, b.filler, a, params, ownerIn(tenant(i), i, n)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// ownerIn returns a holder that is no pod: nobody takes its lease for given up.
func ownerIn(namespace string, i, n int) lease.Holder {
	h := holder(i, n)
	return lease.Holder{
		Host: netip.MustParseAddr(host(i)), ContainerID: h.ContainerID, IfName: h.IfName,
		Namespace: namespace, Owner: fmt.Sprintf("owner-%s-%d", namespace, n),
	}
}

// take makes a lease of an address that has no object.
func take(ctx context.Context, c *store.Client, a netip.Addr, params lease.Params, h lease.Holder) error {
	next, ok := lease.Bind(lease.Lease{Addr: a}, params, h, lease.Retention{}, c.Now())
	if !ok {
		return fmt.Errorf("a lease of %s cannot be bound", a)
	}
	_, err := c.Write(ctx, next)
	return err
}

// startsBeside measures starts of the controller of blocks beside those of a flat pool, in turn, and how long a plain
// informer takes to list the same pools: who reads 4,096 objects more needs some time for that.
func (b *bench) startsBeside(ctx context.Context, flat *bench, what string) error {
	if err := atRest(ctx); err != nil {
		return err
	}
	both := []*bench{flat, b}
	ready, listed := map[*bench][]time.Duration{}, map[*bench][]time.Duration{}
	for range startTurns * b.rounds {
		slices.Reverse(both)
		for _, of := range both {
			took, err := of.restart(ctx)
			if err != nil {
				return err
			}
			ready[of] = append(ready[of], took)
			if took, err = of.plainList(ctx); err != nil {
				return err
			}
			listed[of] = append(listed[of], took)
		}
	}
	b.report.beside("start to ready, "+what+", of that of the flat pool", ready[b], ready[flat])
	b.report.longer(what, [2][]time.Duration{ready[b], ready[flat]}, [2][]time.Duration{listed[b], listed[flat]})
	return nil
}

// plainList returns how long a plain informer takes until it has all pools.
func (b *bench) plainList(ctx context.Context) (time.Duration, error) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	began := time.Now()
	err := startInformer(ctx, b.controller.Config, &v1.BCSNetPool{})
	return time.Since(began), err
}

// writtenByChange changes the parent of blocks, and counts the pools that are written in the seconds after.
func (b *bench) writtenByChange(ctx context.Context, p *v1.BCSNetPool) (written int, err error) {
	versions := func() (map[string]string, error) {
		var all v1.BCSNetPoolList
		if err := b.admin.List(ctx, &all); err != nil {
			return nil, err
		}
		of := map[string]string{}
		for _, o := range all.Items {
			if o.Spec.Parent == p.Name || o.Name == p.Name {
				of[o.Name] = fmt.Sprint(o.Generation, o.ResourceVersion)
			}
		}
		return of, nil
	}
	before, err := versions()
	if err != nil {
		return 0, err
	}
	if err := errors.Join(b.change(ctx, p, func() { p.Spec.VLAN = 7 }), b.waitNormal(ctx, p),
		pause(ctx, 5*time.Second)); err != nil {
		return 0, err
	}
	after, err := versions()
	for name, v := range after {
		if before[name] != v {
			written++
		}
	}
	return written, err
}

// contender is one of two that take turns: what is timed, and what undoes it.
type contender struct{ timed, after operation }

// inTurns compares two contenders in short turns, in an order that changes every time, and reports the one beside the
// other by a quantity of both.
func (b *bench) inTurns(
	ctx context.Context, what string, callers int, of func(result) float64, one, other contender,
) error {
	if err := atRest(ctx); err != nil {
		return err
	}
	both, results := []int{0, 1}, [2][]result{}
	for turn := range largeTurns*b.rounds + 1 {
		slices.Reverse(both)
		for _, i := range both {
			// The containers of one turn are others than those of the turns before.
			anew := func(op operation) operation {
				if op == nil {
					return nil
				}
				return func(ctx context.Context, caller, n int) error {
					return op(ctx, caller,
						(callers<<8|turn)<<20+n)
				}
			}
			c := [2]contender{one, other}[i]
			r, err := load(ctx, callers, b.slice/largeTurns, cycle{timed: anew(c.timed), after: anew(c.after)})
			if err != nil {
				return err
			}
			if turn > 0 { // the first one warms up
				results[i] = append(results[i], r)
			}
		}
	}
	b.report.contest(what, of, results[0], results[1])
	return nil
}
