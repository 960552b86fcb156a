package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// The largest pools are asked for beside one of 4,096, each by its network.
const (
	largeNetwork, smallNetwork = "bench-large", "bench-small"
	largeCallers               = 16
	// largeTurns are turns of each pool, in the time of one measurement each.
	largeTurns = 6
)

// largest measures a pool of 1,048,576 addresses with many leases: allocations beside a pool of 4,096, start, memory,
// and how soon a new address shows in the status.
func (b *bench) largest(ctx context.Context) error {
	others := len(b.report.numbers) // of other parts
	if _, err := b.networkPool(ctx, smallNetwork, "10.16.0.0/20"); err != nil {
		return err
	}
	large, err := b.networkPool(ctx, largeNetwork, "10.32.0.0/12")
	if err != nil {
		return err
	}
	say("filling a pool of 1048576 with %d leases", b.leases)
	// Of owners that are no pods: nobody takes them for given up.
	if err := b.fill(ctx, large, b.leases, func(h *lease.Holder) {
		*h = lease.Holder{Host: h.Host, ContainerID: h.ContainerID, IfName: h.IfName, Owner: "owner-" +
			h.ContainerID[:12]}
	}); err != nil {
		return err
	}
	ready, err := b.restarts(ctx)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("a pool of 1048576 with %d leases", b.leases)
	b.report.duration("start to ready, "+what, ready)
	rss, err := b.memory(ctx)
	if err != nil {
		return err
	}
	b.report.number("resident memory after a start, "+what, rss/(1<<20), "MiB")
	counted, err := b.countedWithin(ctx, large, b.leases)
	if err != nil {
		return err
	}
	b.report.number("start until the pool's status is right, "+what, counted.Seconds(), "s")
	ofLarge, ofSmall, err := b.byNetwork(ctx)
	if err != nil {
		return err
	}
	l, s := median(ofLarge), median(ofSmall)
	row := fmt.Sprintf("| allocations at %d callers, %s, beside a pool of 4096, turn by turn: median (quartiles) | "+
		"%s, %.0f/s beside %.0f/s |", largeCallers, what, byTurn(ofLarge, ofSmall, rate), l.perSecond, s.perSecond)
	fmt.Println(row)
	b.report.large = append(slices.Clone(b.report.numbers[others:]), row)
	b.report.numbers = b.report.numbers[:others]
	return nil
}

// networkPool makes a pool on demand that answers requests for a network of its name.
func (b *bench) networkPool(
	ctx context.Context, name, cidr string, with ...func(*v1.BCSNetPoolSpec),
) (*v1.BCSNetPool, error) {
	p, err := b.pool(ctx, name, cidr, v1.MaterializeOnDemand,
		append(with, func(s *v1.BCSNetPoolSpec) { s.Network = name })...)
	if err != nil {
		return nil, err
	}
	return p, b.waitNormal(ctx, p)
}

// restarts stops and starts the controller, once a round, and returns how long each start took.
func (b *bench) restarts(ctx context.Context) (ready []time.Duration, err error) {
	for range b.rounds {
		took, err := b.restart(ctx)
		if err != nil {
			return nil, err
		}
		ready = append(ready, took)
	}
	return ready, nil
}

// restart stops and starts the controller, and returns how long the start took.
func (b *bench) restart(ctx context.Context) (time.Duration, error) {
	if err := b.controller.Stop(); err != nil {
		return 0, err
	}
	began := time.Now()
	err := b.controller.Start(ctx)
	return time.Since(began), err
}

// countedWithin takes one address more and returns how long it takes until the status of a pool counts it.
func (b *bench) countedWithin(ctx context.Context, p *v1.BCSNetPool, leases int) (time.Duration, error) {
	began, s := time.Now(), service{b: b, kind: "counted", network: p.Spec.Network}
	if err := s.add(ctx, 0, 0); err != nil {
		return 0, err
	}
	for p.Status.Active != int64(leases+1) {
		if time.Since(began) > time.Minute {
			return 0, fmt.Errorf("pool %s counts %d leases in use after a minute, not %d", p.Name, p.Status.Active,
				leases+1)
		}
		if err := errors.Join(pause(ctx, 50*time.Millisecond),
			b.admin.Get(ctx, client.ObjectKeyFromObject(p), p)); err != nil {
			return 0, err
		}
	}
	took := time.Since(began)
	return took, s.del(ctx, 0, 0)
}

// byNetwork makes callers draw from the large and from the small pool in short turns.
func (b *bench) byNetwork(ctx context.Context) (large, small []result, err error) {
	if err := atRest(ctx); err != nil {
		return nil, nil, err
	}
	both := []string{largeNetwork, smallNetwork}
	results := map[string][]result{}
	for turn := range largeTurns*b.rounds + 1 {
		slices.Reverse(both)
		for _, network := range both {
			s := service{b: b, kind: fmt.Sprint(network, turn), network: network}
			r, err := load(ctx, largeCallers, b.slice/largeTurns, cycle{timed: s.add, after: s.del})
			if err != nil {
				return nil, nil, err
			}
			if turn > 0 { // the first one warms up
				results[network] = append(results[network], r)
			}
		}
	}
	return results[largeNetwork], results[smallNetwork], nil
}
