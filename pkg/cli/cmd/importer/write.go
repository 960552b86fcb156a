package importer

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/leasing"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/recovery"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// takenOver is the participle in messages about addresses.
const takenOver = "taken over"

// carryOut creates pools, claims and leases in this order, because an address that is kept for a missing claim is
// released. It skips objects whose pool or claim could not be created.
func (v *takeOver) carryOut(
	ctx context.Context, a *leasing.Allocator, j *job,
) (failed app.Several) {
	unmade := map[string]bool{} // pools and claims
	api, err := resource.NewPools(v.App)
	if err != nil {
		return app.Several{err}
	}
	for i := range j.plan.Pools {
		p := &j.plan.Pools[i]
		if err := v.createOne(ctx, api.API, j, p, "pool "+p.Name); err != nil {
			unmade[p.Name], failed = true, append(failed, err)
		}
	}
	claims, err := resource.NewClaims(v.App)
	if err != nil {
		return append(failed, err)
	}
	for i := range j.plan.Claims {
		c := &j.plan.Claims[i]
		name := c.Namespace + "/" + c.Name
		if err := v.createOne(ctx, claims.API.Namespace(c.Namespace), j, c, "claim "+name); err != nil {
			unmade[name], failed = true, append(failed, err)
		}
	}
	todo := slices.DeleteFunc(slices.Clone(j.plan.Leases),
		func(l lease.Lease) bool { return unmade[l.Pool] || l.Claim != "" && unmade[l.Claim] })
	return append(failed, v.createLeases(ctx, a, j, todo)...)
}

// createOne creates a pool or a claim. It leaves one that was created meanwhile.
func (v *takeOver) createOne(
	ctx context.Context, api dynamic.ResourceInterface, j *job, typed runtime.Object, what string,
) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return err
	}
	o := &unstructured.Unstructured{Object: content}
	unstructured.RemoveNestedField(o.Object, "status")
	if v.DryRun != app.DryRunClient {
		created, err := api.Create(ctx, o, metav1.CreateOptions{FieldManager: app.ProgramName,
			DryRun: v.DryRun.Options()})
		switch {
		case apierrors.IsAlreadyExists(err):
			v.Say.Note("%s is there by now", what)
			return nil
		case err != nil:
			return fmt.Errorf("%s was not made: %w", what, resource.Explain(v.App, err))
		}
		o = created
	}
	o.SetManagedFields(nil)
	j.done = append(j.done, *o)
	v.Say.Done("%s created", what)
	return nil
}

// createLeases stores the leases whose addresses have not changed since they were planned.
func (v *takeOver) createLeases(
	ctx context.Context, a *leasing.Allocator, j *job, todo []lease.Lease,
) (failed app.Several) {
	stored, changed := make([]lease.Lease, len(todo)), make([]bool, len(todo))
	errs := resource.InBulk(ctx, v.App, todo, takenOver, func(i int, l lease.Lease) (err error) {
		if stored[i] = l; v.DryRun != app.DryRunClient {
			var created bool
			stored[i], created, err = recovery.Create(ctx, a.Leases, l)
			changed[i] = err == nil && !created
		}
		return resource.Explain(v.App, err)
	})
	var addrs, late []netip.Addr
	for i, l := range stored {
		switch {
		case errs[i] != nil:
		case changed[i]:
			late = append(late, l.Addr)
		default:
			j.leases, addrs = append(j.leases, l), append(addrs, l.Addr)
		}
	}
	if len(addrs) > 0 {
		v.Say.Done("%s %s: %s", humanize.Plural(len(addrs), "address"), takenOver,
			resource.Spell(ipaddr.SetOfAddrs(addrs...)))
	}
	if len(late) > 0 {
		v.Say.Note("%s changed meanwhile and %s left alone: %s", humanize.Plural(len(late), "address"),
			humanize.OneOr(len(late), "is", "are"), resource.Spell(ipaddr.SetOfAddrs(late...)))
	}
	return append(failed, resource.Unfinished(ctx, takenOver, todo, errs))
}

// print prints all created objects, unless the table has shown them.
func (v *takeOver) print(j *job) error {
	if v.output.Printer == nil {
		return nil
	}
	items := slices.Clone(j.done)
	for _, l := range j.leases {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(store.Object(l))
		if err != nil {
			return err
		}
		o := unstructured.Unstructured{Object: content}
		o.SetManagedFields(nil)
		items = append(items, o)
	}
	return v.output.List(v.Out, items)
}
