package cleanup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/leasing"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/gone"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// leftAlone is why an address was not released after all: not a failure.
type leftAlone string

func (l leftAlone) Error() string { return string(l) }

// done is what becomes of leases, in a sentence.
const done = "released"

// end waits, looks at the pods and hosts once more, and releases what is gone still. With --force it waits for nothing.
func (v *cleanup) end(ctx context.Context, j *judgement) error {
	if err := v.wait(ctx, j); err != nil {
		return err
	}
	nodes, err := v.hosts(ctx)
	if err != nil && !v.force {
		return err
	}
	author := ""
	if v.DryRun != app.DryRunClient {
		author = v.Author(ctx)
	}
	held := j.leases()
	failed := resource.InBulk(ctx, v.App, held, done, func(i int, l lease.Lease) error {
		f := j.ends[i]
		change := lease.Change{Verb: lease.VerbRelease, By: author, Reason: v.reason}
		if !v.force && f.fate == isGone {
			change.Reason = cmp.Or(v.reason, "cleanup: "+string(f.check))
			kept, err := j.again.Release(ctx, l, f.check, gone.HostOf(nodes.At(l.Host)), change, v.kept)
			if err == nil && kept != "" {
				return leftAlone(kept)
			}
			return err
		}
		if v.DryRun == app.DryRunClient {
			return nil
		}
		return leasing.GiveUpOne(ctx, v.App, v.leases, l, change, leasing.Giving{Free: v.kept, Side: true})
	})
	return v.report(ctx, held, failed)
}

// wait lets the time go by that is between the two looks, where something is to be looked at twice.
func (v *cleanup) wait(ctx context.Context, j *judgement) error {
	if v.force || v.between == 0 || v.DryRun != app.DryRunNone || of(j.ends, isGone) == 0 {
		return nil
	}
	v.Say.Wait("waiting %s before a second look at the pods of %s", v.between,
		humanize.Plural(of(j.ends, isGone), "lease"))
	select {
	case <-time.After(v.between):
		return nil
	case <-ctx.Done():
		return &app.Failure{Message: "nothing was released", Cause: ctx.Err()}
	}
}

// whole returns the addresses that nobody has any more, each once, and those that one of two pods of a virtual machine
// has still.
func whole(released []lease.Lease) (free, halves []lease.Lease) {
	ends := func(a netip.Addr, second bool) bool {
		return slices.ContainsFunc(released, func(l lease.Lease) bool { return l.Addr == a && l.FromSecond == second })
	}
	for _, l := range released {
		switch {
		case l.Other == nil:
			free = append(free, l)
		case !ends(l.Addr, !l.FromSecond):
			halves = append(halves, l)
		case !l.FromSecond:
			free = append(free, l)
		}
	}
	return free, halves
}

// report prints what was released, and says what was not and why.
func (v *cleanup) report(ctx context.Context, held []lease.Lease, failed []error) error {
	var released, tried []lease.Lease
	var errs []error
	var left []string
	for i, l := range held {
		if alone, ok := errors.AsType[leftAlone](failed[i]); ok {
			left = append(left, fmt.Sprintf("%s is not released: %s", l.Addr, alone))
			continue
		}
		tried, errs = append(tried, l), append(errs, failed[i])
		if failed[i] == nil {
			released = append(released, l)
		}
	}
	if v.kind.single && len(released) == 0 && len(left) > 0 && len(tried) == 0 {
		return app.Refuse(app.ReasonLeaseChanged, "%s", left[0]).
			WithHint("see who has it now: bcsnetctl ip describe %s", held[0].Addr)
	}
	for _, text := range left[:min(len(left), leasing.MaxLines)] {
		v.Say.Note("%s", text)
	}
	if more := len(left) - leasing.MaxLines; more > 0 {
		v.Say.Note("  and %s are not", humanize.Plural(more, "more lease"))
	}
	free, halves := whole(released)
	stay := ""
	if !v.kept {
		stay = resource.StayRetained(slices.DeleteFunc(slices.Clone(free),
			func(l lease.Lease) bool { return l.State != lease.Active }))
	}
	if len(free) > 0 || len(halves)+len(errs) == 0 {
		v.Say.Done("%s %s%s", humanize.Plural(len(free), "address"), done, stay)
	}
	for _, l := range halves {
		v.Say.Done("%s has %s no more; %s has it", l.Who(), l.Addr, l.Other.Where())
	}
	printed := resource.PrintLeases(v.App, &v.output, resource.LeaseColumns(v.App, false), released)
	return app.Several{resource.Unfinished(ctx, done, tried, errs), printed}.Compact()
}
