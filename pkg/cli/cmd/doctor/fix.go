package doctor

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/leasing"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/doctor"
	"github.com/bcsnet/bcsnet/pkg/gone"
	"github.com/bcsnet/bcsnet/pkg/hosts"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// leakFixer releases leaked addresses. The snapshot is the first check of the holders. Before each write the pod is
// checked again, and the write fails if the address has changed since the snapshot.
type leakFixer struct {
	*verb
	snapshot *doctor.Snapshot
	leases   *store.Client
	// nodes has the nodes of the last look.
	nodes *hosts.Table
}

// run releases the leaks that the user agrees to, and returns the remaining findings.
func (f *leakFixer) run(ctx context.Context, found []doctor.Finding) (left []doctor.Finding, err error) {
	for _, part := range doctor.Reads(leakChecks(f.checks)) {
		if why := f.snapshot.Missing[part]; why != nil {
			return found, fmt.Errorf("nothing is released: %s cannot be read: %w", part, why)
		}
	}
	if f.leases, err = f.verb.Leases(); err != nil {
		return nil, err
	}
	f.nodes = hosts.NewTable(f.snapshot.Nodes...)
	fixable, left := f.choose(found)
	if len(fixable) == 0 {
		f.Say.Note("nothing that --fix can release")
		return left, nil
	}
	if f.DryRun == app.DryRunNone {
		if fixable, left, err = f.recheck(ctx, fixable, left); err != nil {
			return append(left, fixable...), err
		}
	}
	more, err := f.releaseAll(ctx, fixable)
	return append(more, left...), err
}

// recheck waits for --settle, because a kubelet may need that long to end the containers of a pod that was deleted by
// force. It returns the leaks that can still be released; the others are appended to left.
func (f *leakFixer) recheck(ctx context.Context, fixable, left []doctor.Finding) (_, _ []doctor.Finding, err error) {
	if err := f.looks().Wait(ctx, humanize.Plural(len(fixable), "leak")); err != nil {
		return fixable, left, err
	}
	nodes, err := resource.ListNodes(ctx, f.verb.App)
	if err != nil {
		return fixable, left, err
	}
	f.nodes = resource.Table(nodes)
	still, others := f.choose(fixable)
	return still, append(left, others...), nil
}

// looks returns the times of the two checks of the holders: the snapshot, and --settle later.
func (f *leakFixer) looks() leasing.Recheck {
	return leasing.Recheck{
		App: f.verb.App, Leases: f.leases, Looks: resource.Looks{First: f.snapshot.Now, Between: f.settle},
	}
}

// choose separates the leaks that can be released, judged by the latest list of nodes, from all other findings, and
// warns on which hosts leaks stay.
func (f *leakFixer) choose(found []doctor.Finding) (fixable, left []doctor.Finding) {
	alone := map[netip.Addr]bool{}
	for _, one := range found {
		switch {
		case one.Release == nil:
			left = append(left, one)
		case one.Doubt(f.nodes.At(one.Release.Host)) != "":
			left, alone[one.Release.Host] = append(left, one), true
		default:
			fixable = append(fixable, one)
		}
	}
	f.leftAlone(alone)
	return fixable, left
}

// leakChecks returns the checks whose findings --fix can release.
func leakChecks(checks []doctor.Check) []doctor.Check {
	return slices.DeleteFunc(slices.Clone(checks), func(c doctor.Check) bool { return c.Group != doctor.GroupLeaks })
}

// leftAlone warns on which hosts leaks stay.
func (f *leakFixer) leftAlone(hosts map[netip.Addr]bool) {
	var names []string
	for _, h := range slices.SortedFunc(maps.Keys(hosts), netip.Addr.Compare) {
		if h.IsValid() {
			names = append(names, h.String())
		}
	}
	if hosts[netip.Addr{}] {
		f.Say.Warn("not released: addresses on unknown hosts")
	}
	if len(names) > 0 {
		f.Say.Warn("not released: addresses on %s: containers may still run there", humanize.List(names))
		f.Hint("when a machine is off: bcsnetctl release-host %s", names[0])
	}
}

// releaseAll asks before each release, unless the user agreed to all, and returns the findings that were not released.
func (f *leakFixer) releaseAll(ctx context.Context, fixable []doctor.Finding) (left []doctor.Finding, err error) {
	answers, answer := bufio.NewReader(f.In), app.AnswerAll
	if !f.yes && f.DryRun == app.DryRunNone {
		answer = ""
	}
	for len(fixable) > 0 {
		if one := fixable[0]; answer != app.AnswerAll {
			answer, err = f.Prompt(ctx, answers, fmt.Sprintf("release %s (%s)?", one.Release.Addr, one.Cause))
		}
		n := 1
		switch {
		case err != nil || answer == app.AnswerQuit:
			return append(left, fixable...), err
		case answer == app.AnswerNo:
			left, fixable = append(left, fixable[0]), fixable[1:]
			continue
		case answer == app.AnswerAll:
			n = min(maxBatch, len(fixable))
		}
		kept, err := f.release(ctx, fixable[:n])
		left, fixable = append(left, kept...), fixable[n:]
		if err != nil {
			return append(left, fixable...), err
		}
	}
	return left, nil
}

// maxBatch bounds the leaks that are released before their results are printed.
const maxBatch = 128

// release releases leaks, several at once, and prints their results in order.
func (f *leakFixer) release(ctx context.Context, batch []doctor.Finding) (left []doctor.Finding, err error) {
	kept, failed := make([]string, len(batch)), make([]error, len(batch))
	change := lease.Change{Verb: lease.VerbRelease, By: f.Author(ctx)}
	again := f.looks()
	var group errgroup.Group
	group.SetLimit(resource.AtOnce)
	for i, one := range batch {
		group.Go(func() error {
			change := change
			change.Reason = "doctor: " + one.Check
			kept[i], failed[i] = again.Release(ctx, *one.Release, gone.Check(one.Check),
				gone.HostOf(f.nodes.At(one.Release.Host)), change, false)
			return nil
		})
	}
	_ = group.Wait() // each has its own error
	if ctx.Err() != nil {
		defer f.Say.Note("the others are not released: run it again, it does the rest")
	}
	var all app.Several
	for i, one := range batch {
		switch {
		case failed[i] != nil:
			all, left = append(all, fmt.Errorf("%s was not released: %w", one.Release.Addr,
				resource.Explain(f.verb.App, failed[i]))), append(left, one)
		case kept[i] != "":
			f.Say.Note("%s is not released: %s", one.Release.Addr, kept[i])
		case f.DryRun != app.DryRunNone:
			left = append(left, one)
			fallthrough
		default:
			f.Say.Done("%s released: %s", one.Release.Addr, one.Cause)
		}
	}
	return left, all.OrNil()
}
