package rebuild

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/leasing"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/recovery"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// plan compares the reports of pods with the existing leases. The leases come from a watch, so they are never older
// than the pods.
func (v *verb) plan(ctx context.Context, a *leasing.Allocator) (plan recovery.Plan, err error) {
	defer v.Say.WaitLater("reading all pods in " + v.Where())()
	if err := a.Open(ctx, v.App); err != nil {
		return plan, err
	}
	if len(a.Index.Pools.All()) == 0 {
		return plan, app.Refuse(app.ReasonPoolNotFound,
			"there are no pools, so no address can have a lease").
			WithHint("create the pools again first: kubectl apply -f POOLS")
	}
	nodes, err := resource.ListNodes(ctx, v.App)
	if err != nil {
		return plan, err
	}
	table := resource.Table(nodes)
	now := a.Leases.Now()
	pods, err := resource.AllPods(ctx, v.App)
	if err != nil {
		return plan, resource.Explain(v.App, err)
	}
	objects, err := resource.ListReports(ctx, v.App)
	if err != nil {
		v.Say.Warn("IPAddresses of Cluster API, or Services, cannot be read, so what they say does not count: %v", err)
	}
	plan = recovery.Make(recovery.Input{
		Now: now, Index: a.Index, Pods: slices.Values(pods), Objects: slices.Values(objects),
		Hosts: func(p workload.Pod) []netip.Addr { return table.ActsFor(p.Node) },
		Lost:  func(string) bool { return true }, // the user says so by calling the command, and confirms what it shows
	})
	plan.Create = slices.Concat(plan.Objects, plan.Create)
	slices.SortStableFunc(plan.Create, func(a, b lease.Lease) int { return a.Addr.Compare(b.Addr) })
	if len(v.names) > 0 {
		other := func(pool string) bool { return !slices.Contains(v.names, pool) }
		plan.Create = slices.DeleteFunc(plan.Create, func(l lease.Lease) bool { return other(l.Pool) })
		plan.Conflicts = slices.DeleteFunc(plan.Conflicts, func(c recovery.Conflict) bool { return other(c.Pool) })
		maps.DeleteFunc(plan.Waiting, func(pool string, _ []string) bool { return other(pool) })
	}
	return plan, nil
}

// show prints what would be done and what would not. The leases go to standard output as a table; other formats print
// them as they are stored.
func (v *verb) show(ctx context.Context, plan recovery.Plan) error {
	if n := len(plan.Create); n > 0 {
		who := "running pods"
		if slices.ContainsFunc(plan.Create, func(l lease.Lease) bool { return l.Owner != "" }) {
			who += ", IPAddresses or Services"
		}
		v.Say.Start("%s that %s report %s no lease: %s", humanize.Plural(n, "address"), who,
			humanize.OneOr(n, "has", "have"), byPool(plan.Create))
		if v.output.Printer == nil {
			if err := printer.NewTable(&v.output, v.planColumns()).Write(v.Out, plan.Create); err != nil {
				return err
			}
		}
	} else {
		v.Say.Note("nothing to rebuild: every address that a running pod reports is held")
	}
	v.warnConflicts(plan.Conflicts)
	for _, pool := range slices.Sorted(maps.Keys(plan.Waiting)) {
		names := plan.Waiting[pool]
		v.Say.Warn("pool %s: %s on its hosts %s told of no address yet and may have one: %s",
			pool, humanize.Plural(len(names), "pod"), humanize.OneOr(len(names), "has", "have"), humanize.List(names))
	}
	if len(plan.Waiting) > 0 {
		v.Hint("run it again when they have told, or have ended")
	}
	if len(plan.Create) > 0 {
		v.noteLeader(ctx)
	}
	return nil
}

// planColumns returns the columns of leases without those that a pod does not report.
func (v *verb) planColumns() []printer.Column[lease.Lease] {
	return slices.DeleteFunc(resource.LeaseColumns(v.App, false),
		func(c printer.Column[lease.Lease]) bool { return c.Name == "AGE" || c.Name == "CONTAINER" })
}

func (v *verb) warnConflicts(all []recovery.Conflict) {
	for _, c := range all {
		who := "pod " + c.Pod
		if o, ok := workload.ParseOwner(c.Pod); ok {
			who = o.What() + " " + o.Namespace + "/" + o.Name
		}
		v.Say.Warn("%s of pool %s: %s reports it, and %s", c.Addr, c.Pool, who, c.Cause)
	}
}

// noteLeader prints that a running controller does the same. It prints nothing if the user may not read the Lease.
func (v *verb) noteLeader(ctx context.Context) {
	c, err := v.Dynamic()
	if err != nil {
		return
	}
	lease, err := resource.LeaderLease(ctx, c)
	if err != nil {
		return
	}
	if leader := resource.LeaderOf(lease); leader.Leads(v.Now()) {
		v.Say.Note(
			"a controller runs (%s leads): it does the same when it starts; doing it here, too, does no harm",
			leader.Leader)
	}
}

// conflictsStay returns the error for conflicts: the command cannot decide which side is right.
func conflictsStay(all []recovery.Conflict) error {
	if len(all) == 0 {
		return nil
	}
	addrs := app.Map(all, func(c recovery.Conflict) netip.Addr { return c.Addr })
	stay := &app.Failure{
		Code: app.ExitFindings, Message: fmt.Sprintf("%s %s: %s", humanize.Plural(len(all), "conflict"),
			humanize.OneOr(len(all), "stays", "stay"), resource.Spell(ipaddr.SetOfAddrs(addrs...))),
	}
	if _, object := workload.ParseOwner(all[0].Pod); object {
		return stay.WithHint("see who has the address: bcsnetctl ip describe %s", all[0].Addr)
	}
	namespace, name, _ := strings.Cut(all[0].Pod, "/")
	return stay.
		WithHint("see who has the address: bcsnetctl ip describe %s; a pod that is in the wrong gets another when it "+
			"is made anew: kubectl delete pod -n %s %s",
			all[0].Addr, namespace, name)
}

// byPool counts leases by pool: "2 of pool blue, 1 of pool green".
func byPool(leases []lease.Lease) string {
	n := map[string]int{}
	for _, l := range leases {
		n[l.Pool]++
	}
	parts := app.Map(slices.Sorted(maps.Keys(n)),
		func(pool string) string { return fmt.Sprintf("%d of pool %s", n[pool], pool) })
	return strings.Join(parts, ", ")
}

// rebuilt is the participle in messages about addresses.
const rebuilt = "rebuilt"

// create stores leases. It returns those that their pods hold now, and a conflict for each that somebody else holds.
func (v *verb) create(
	ctx context.Context, a *leasing.Allocator, todo []lease.Lease,
) (made []lease.Lease, late []recovery.Conflict, err error) {
	stored := make([]lease.Lease, len(todo))
	failed := resource.InBulk(ctx, v.App, todo, rebuilt, func(i int, l lease.Lease) (err error) {
		if stored[i] = l; v.DryRun != app.DryRunClient {
			stored[i], _, err = recovery.Create(ctx, a.Leases, l)
		}
		return resource.Explain(v.App, err)
	})
	var addrs []netip.Addr
	for i, l := range stored {
		want := todo[i]
		switch {
		case failed[i] != nil:
		// Created here or by a controller.
		case l.State == lease.Active && l.PodUID == want.PodUID && l.Owner == want.Owner:
			made, addrs = append(made, l), append(addrs, l.Addr)
		case l.State == lease.Active:
			late = append(late, recovery.Conflict{Addr: l.Addr, Pool: want.Pool, Pod: want.Who(), Cause: l.Who() +
				" holds it now"})
		case l.State == lease.Reserved:
			late = append(late, recovery.Conflict{
				Addr: l.Addr, Pool: want.Pool, Pod: want.Who(), Cause: "it is reserved by now",
			})
		default:
			v.Say.Note("%s is left free: %s had it and gave it up meanwhile, or its object is being deleted", l.Addr,
				want.Who())
		}
	}
	v.warnConflicts(late)
	if len(addrs) > 0 {
		v.Say.Done("%s %s: %s", humanize.Plural(len(addrs), "address"), rebuilt,
			resource.Spell(ipaddr.SetOfAddrs(addrs...)))
	}
	return made, late, resource.Unfinished(ctx, rebuilt, todo, failed)
}
