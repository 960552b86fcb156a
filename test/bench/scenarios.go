package main

import (
	"context"
	"fmt"
	"math/bits"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
)

// compared is one measurement of all: the three floors with the controller stopped, then bcsnet. The first two are
// empty where they were left out.
type compared struct {
	bare, handler, informer, service result
}

// Which floors are compared with: all, or only the handler with an informer, which takes half the time.
const (
	allFloors = iota
	fairFloor
)

// kind is one of the writes that are compared.
type kind int

const (
	allocate kind = iota // an update of an object that exists
	release              // the same, back
	first                // a create: the first use of an address on demand
)

func (k kind) String() string { return [...]string{"allocate", "release", "first allocation"}[k] }

// cycle times one of two operations that undo each other.
func (k kind) cycle(take, free, create operation) cycle {
	switch k {
	case release:
		return cycle{before: take, timed: free}
	case first:
		return cycle{timed: create}
	default:
		return cycle{timed: take, after: free}
	}
}

// compareAt takes rounds of all in turn, so that whatever else the machine does meets all alike.
func (b *bench) compareAt(ctx context.Context, callers int, k kind, floors int) (c compared, err error) {
	var bares, handlers, informers, services []result
	for round := range b.rounds {
		if err := b.controller.Stop(); err != nil {
			return c, err
		}
		if floors == allFloors {
			if err := b.bare.prepare(ctx, maxCallers); err != nil {
				return c, err
			}
			r, err := b.warmLoad(ctx, callers, k.cycle(b.bare.take, b.bare.free, b.bare.create))
			if err != nil {
				return c, fmt.Errorf("bare client: %w", err)
			}
			bares = append(bares, r)
			if r, err = b.handled(ctx, callers, k, false); err != nil {
				return c, err
			}
			handlers = append(handlers, r)
		}
		r, err := b.handled(ctx, callers, k, true)
		if err != nil {
			return c, err
		}
		informers = append(informers, r)
		if err := b.controller.Start(ctx); err != nil {
			return c, err
		}
		s := service{b: b, kind: fmt.Sprintf("%d/%s/%d", callers, k, round)}
		if r, err = b.warmLoad(ctx, callers, k.cycle(s.add, s.del, s.first)); err != nil {
			return c, fmt.Errorf("bcsnet: %w", err)
		}
		services = append(services, r)
	}
	return compared{median(bares), median(handlers), median(informers), median(services)}, nil
}

// handled takes one measurement of the empty handler, which runs only for that time: its watch would cost the API
// server as much as the controller's own.
func (b *bench) handled(ctx context.Context, callers int, k kind, informer bool) (result, error) {
	if err := b.restartFloor(ctx, informer); err != nil {
		return result{}, err
	}
	defer b.stopFloor()
	through := func(method string) operation {
		return func(ctx context.Context, i, n int) error { return b.floor.call(ctx, method, i, n) }
	}
	r, err := b.warmLoad(ctx, callers, k.cycle(through(http.MethodPost), through(http.MethodDelete),
		through(http.MethodPut)))
	if err != nil {
		return r, fmt.Errorf("empty handler, informer %t: %w", informer, err)
	}
	return r, nil
}

// warmUp is the time for which a process that was just started runs before it is measured: connections, leadership and
// the first garbage collections are no part of an operation.
const warmUp = 700 * time.Millisecond

func (b *bench) warmLoad(ctx context.Context, callers int, c cycle) (result, error) {
	other := func(op operation) operation { // for other containers than those that are measured
		if op == nil {
			return nil
		}
		return func(ctx context.Context, caller, n int) error { return op(ctx, caller, -n-1) }
	}
	if err := atRest(ctx); err != nil {
		return result{}, err
	}
	if _, err := load(ctx, callers, warmUp, cycle{other(c.before), other(c.timed), other(c.after)}); err != nil {
		return result{}, err
	}
	return load(ctx, callers, b.slice, c)
}

func (b *bench) restartFloor(ctx context.Context, informer bool) error {
	b.stopFloor()
	return b.startFloor(ctx, informer)
}

// floors compares at 1, 16 and 64 callers on a pool of 4,096 whose objects exist.
func (b *bench) floors(ctx context.Context) error {
	p, err := b.pool(ctx, "bench-4096", "10.16.0.0/20", v1.MaterializeAlways)
	if err != nil {
		return err
	}
	if err := b.waitNormal(ctx, p); err != nil {
		return err
	}
	if err := b.compare(ctx, allocate, release); err != nil {
		return err
	}
	return b.drop(ctx, p)
}

// compare reports kinds of writes at 1, 16 and 64 callers.
func (b *bench) compare(ctx context.Context, kinds ...kind) error {
	for _, k := range kinds {
		for _, callers := range []int{1, 16, 64} {
			say("%s: %d callers beside the floors", k, callers)
			c, err := b.compareAt(ctx, callers, k, allFloors)
			if err != nil {
				return err
			}
			b.report.floor(k.String(), callers, c)
		}
	}
	return nil
}

// first compares allocations of addresses whose object does not exist yet. It comes last: what it makes
// stays.
func (b *bench) first(ctx context.Context) error {
	if _, err := b.pool(ctx, "bench-first", "10.144.0.0/12", v1.MaterializeOnDemand); err != nil {
		return err
	}
	return b.compare(ctx, first)
}

// prefixBits returns the length of the IPv4 prefix that has as many addresses, or just more.
func prefixBits(size int) int { return 32 - bits.Len(uint(size-1)) }

// pools measures whether the size of a pool and how full it is make a difference.
func (b *bench) pools(ctx context.Context) error {
	const callers = 16
	for i, size := range []int{256, 4096, b.large} {
		mode := v1.MaterializeAlways
		if size > v1.MaterializeAutoLimit {
			mode = v1.MaterializeOnDemand
		}
		p, err := b.pool(ctx, fmt.Sprintf("bench-%d", size), fmt.Sprintf("10.%d.0.0/%d", 32+i*16, prefixBits(size)),
			mode)
		if err != nil {
			return err
		}
		if err := b.waitNormal(ctx, p); err != nil {
			return err
		}
		for _, full := range []bool{false, true} {
			if full {
				say("filling 90 %% of a pool of %d", size)
				if err := b.fill(ctx, p, size*9/10, nil); err != nil {
					return err
				}
			}
			say("allocate: pool of %d, 90 %% full: %t", size, full)
			c, err := b.compareAt(ctx, callers, allocate, fairFloor)
			if err != nil {
				return err
			}
			b.report.pool(size, full, callers, c)
		}
		if size < b.large {
			if err := b.empty(ctx, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// requests counts what one operation costs on the API server, by its own metrics.
func (b *bench) requests(ctx context.Context) error {
	p, err := b.pool(ctx, "bench-requests", "10.96.0.0/22", v1.MaterializeAlways)
	if err != nil {
		return err
	}
	if err := b.waitNormal(ctx, p); err != nil {
		return err
	}
	c, err := b.costsOf(ctx, service{b: b, kind: "requests"})
	if err != nil {
		return err
	}
	b.report.requests(c)
	return b.drop(ctx, p)
}

// starts measures a new large pool, a restart with as many leases, and memory.
func (b *bench) starts(ctx context.Context) error {
	name := fmt.Sprintf("bench-%d", b.large)
	var p v1.BCSNetPool
	if err := b.admin.Get(ctx, client.ObjectKey{Name: name}, &p); err != nil { // the part pools did not run
		made, err := b.pool(ctx, name, "10.64.0.0/16", v1.MaterializeOnDemand)
		if err != nil {
			return err
		}
		p = *made
	}
	say("filling a pool of %d", b.large)
	if err := b.fill(ctx, &p, b.large-2*maxCallers, nil); err != nil {
		return err
	}
	ready, err := b.restarts(ctx)
	if err != nil {
		return err
	}
	b.report.duration(fmt.Sprintf("start to ready with %d leases", b.large), ready)
	rss, err := b.memory(ctx)
	if err != nil {
		return err
	}
	b.report.number(fmt.Sprintf("resident memory with %d leases, after a start", b.large), rss/(1<<20), "MiB")
	perAddress, err := indexBytes(ctx, b.filler)
	if err != nil {
		return err
	}
	b.report.number("index, per address", perAddress, "bytes")
	var drawable []time.Duration
	s := service{b: b, kind: "drawable"}
	if err := b.drop(ctx, &p); err != nil {
		return err
	}
	for i := range b.rounds {
		began := time.Now()
		p, err := b.pool(ctx, fmt.Sprintf("new-%d", i), fmt.Sprintf("10.%d.0.0/16", 128+i), v1.MaterializeOnDemand)
		if err != nil {
			return err
		}
		for s.add(ctx, i, i) != nil {
			if err := pause(ctx, 2*time.Millisecond); err != nil {
				return err
			}
		}
		drawable = append(drawable, time.Since(began))
		if err := s.del(ctx, i, i); err != nil {
			return err
		}
		if err := b.drop(ctx, p); err != nil {
			return err
		}
	}
	b.report.duration("new pool of 65536 addresses until its first address is given", drawable)
	return nil
}
