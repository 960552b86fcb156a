package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// builds compares this build of the controller with another one on a pool of 4,096, both alone on the same control
// plane in turn.
func (b *bench) builds(ctx context.Context) error {
	if b.beside == "" {
		return nil
	}
	p, err := b.pool(ctx, "bench-builds", "10.128.0.0/20", v1.MaterializeAlways)
	if err != nil {
		return err
	}
	if err := b.waitNormal(ctx, p); err != nil {
		return err
	}
	this := b.controller
	defer func() { b.controller = this }()
	other, err := b.cp.StartController(ctx, controlplane.ControllerOptions{Name: "beside", Binary: b.beside})
	if err != nil {
		return err
	}
	if err := errors.Join(other.Stop(), this.Stop()); err != nil {
		return err
	}
	turns := []*controlplane.Controller{other, this}
	for _, k := range []kind{allocate, release} {
		for _, callers := range []int{1, 16, 64} {
			say("%s: %d callers of each build", k, callers)
			results := map[*controlplane.Controller][]result{}
			for round := range b.rounds {
				slices.Reverse(turns)
				for _, b.controller = range turns {
					r, err := b.alone(ctx, callers, k, round)
					if err != nil {
						return err
					}
					results[b.controller] = append(results[b.controller], r)
				}
			}
			b.report.build(k.String(), callers, results[other], results[this])
		}
	}
	return this.Start(ctx)
}

// alone takes one measurement of the controller, which runs only for that time.
func (b *bench) alone(ctx context.Context, callers int, k kind, round int) (result, error) {
	if err := b.controller.Start(ctx); err != nil {
		return result{}, err
	}
	s := service{b: b, kind: fmt.Sprintf("build/%d/%s/%d", callers, k, round)}
	r, err := b.warmLoad(ctx, callers, k.cycle(s.add, s.del, s.first))
	return r, errors.Join(err, b.controller.Stop())
}
