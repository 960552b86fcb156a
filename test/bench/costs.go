package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// costs are the requests that the API server got, by what they were for, and how many operations made them.
type costs struct {
	add, again, del map[string]float64
	// status are the writes of status, which come some time after what they report.
	status     map[string]float64
	operations float64
}

// costsOf counts them, by the API server's own metrics. One container at a time per pod, so: take, repeat, release, for
// each of some hundreds of containers.
func (b *bench) costsOf(ctx context.Context, s service) (costs, error) {
	c := costs{
		add: map[string]float64{}, again: map[string]float64{}, del: map[string]float64{}, status: map[string]float64{},
	}
	for c.operations < 500 {
		for _, step := range []struct {
			into map[string]float64
			op   operation
		}{{c.add, s.add}, {c.again, s.add}, {c.del, s.del}} {
			before, err := b.apiRequests(ctx)
			if err != nil {
				return c, err
			}
			for caller := range maxCallers {
				if err := step.op(ctx, caller, int(c.operations)); err != nil {
					return c, err
				}
			}
			after, err := b.apiRequests(ctx)
			if err != nil {
				return c, err
			}
			for k, v := range after {
				into := step.into
				if strings.HasSuffix(k, "/status") {
					into = c.status
				}
				into[k] += v - before[k]
			}
		}
		c.operations += maxCallers
	}
	return c, nil
}

// rows formats the rows of a table; of names the kind of allocation.
func (c costs) rows(of string) []string {
	var out []string
	for _, step := range []struct {
		what   string
		counts map[string]float64
	}{
		{"first " + of + "allocation", c.add}, {"repeated " + of + "allocation", c.again}, {of + "release", c.del},
		{"status, per " + of + "allocation with its repetition and release", c.status},
	} {
		var parts []string
		for k, n := range step.counts {
			if n != 0 {
				parts = append(parts, fmt.Sprintf("%.3f %s", n/c.operations, k))
			}
		}
		slices.Sort(parts)
		out = append(out, fmt.Sprintf("| %s | %s |", step.what, strings.Join(parts, ", ")))
	}
	return out
}
