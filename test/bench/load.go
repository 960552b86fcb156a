package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// result is what one measurement found.
type result struct {
	perSecond float64
	p50, p99  time.Duration
	ops       int
	// cpu is the processor time of all processes per cycle, by process name.
	cpu map[string]time.Duration
}

// operation is one timed call; caller numbers the callers from 0, n the calls of one caller.
type operation func(ctx context.Context, caller, n int) error

// cycle is an operation to time, with what comes before and after it untimed; these may be nil.
type cycle struct{ before, timed, after operation }

// load runs a cycle from a number of callers at once until the time is over. What is not timed counts
// neither for latency nor for throughput.
func load(ctx context.Context, callers int, length time.Duration, c cycle) (result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	type caller struct {
		took []time.Duration
		busy time.Duration
	}
	all := make([]caller, callers)
	before, err := cpu()
	if err != nil {
		return result{}, err
	}
	end := time.Now().Add(length)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			untimed := func(op operation, n int) bool {
				if op == nil {
					return true
				}
				err := op(ctx, i, n)
				if err != nil {
					cancel(fmt.Errorf("caller %d, beside operation %d: %w", i, n, err))
				}
				return err == nil
			}
			for n := 0; time.Now().Before(end) && ctx.Err() == nil; n++ {
				if !untimed(c.before, n) {
					return
				}
				began := time.Now()
				if err := c.timed(ctx, i, n); err != nil {
					cancel(fmt.Errorf("caller %d, operation %d: %w", i, n, err))
					return
				}
				took := time.Since(began)
				all[i].took = append(all[i].took, took)
				all[i].busy += took
				if !untimed(c.after, n) {
					return
				}
			}
		})
	}
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return result{}, err
	}
	after, err := cpu()
	if err != nil {
		return result{}, err
	}
	r := result{cpu: map[string]time.Duration{}}
	var took []time.Duration
	for _, c := range all {
		if c.busy > 0 {
			r.perSecond += float64(len(c.took)) / c.busy.Seconds()
		}
		took = append(took, c.took...)
	}
	slices.Sort(took)
	r.ops = len(took)
	if r.ops > 0 {
		r.p50, r.p99 = took[r.ops/2], took[r.ops*99/100]
		for name, t := range after {
			r.cpu[name] = (t - before[name]) / time.Duration(r.ops)
		}
	}
	return r, nil
}

// median takes the median of each number; nothing of no results.
func median(rs []result) result {
	if len(rs) == 0 {
		return result{}
	}
	pick := func(less func(a, b result) int) result {
		s := slices.Clone(rs)
		slices.SortFunc(s, less)
		return s[len(s)/2]
	}
	return result{
		perSecond: pick(func(a, b result) int { return compare(a.perSecond, b.perSecond) }).perSecond,
		p50:       pick(func(a, b result) int { return int(a.p50 - b.p50) }).p50,
		p99:       pick(func(a, b result) int { return int(a.p99 - b.p99) }).p99,
		ops:       rs[0].ops,
		cpu:       medianCPU(rs),
	}
}

func medianCPU(rs []result) map[string]time.Duration {
	out := map[string]time.Duration{}
	for name := range rs[0].cpu {
		var all []time.Duration
		for _, r := range rs {
			all = append(all, r.cpu[name])
		}
		slices.Sort(all)
		out[name] = all[len(all)/2]
	}
	return out
}

func compare(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
