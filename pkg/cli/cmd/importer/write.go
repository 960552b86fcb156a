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

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/importer"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/recovery"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// carryOut creates pools, claims and leases in this order, because an address that is kept for a missing claim is
// released. It skips objects whose pool or claim could not be created.
func (v *takeOver) carryOut(ctx context.Context, j *job) (failed app.Several) {
	unmade := map[string]bool{} // pools and claims
	api, err := resource.NewPools(v.App)
	if err != nil {
		return app.Several{err}
	}
	for i := range j.plan.Pools {
		p := &j.plan.Pools[i]
		if err := v.createOne(ctx, api.API, j, p, importer.PoolObject(p.Name)); err != nil {
			unmade[p.Name], failed = true, append(failed, err)
			j.unfinished[p.Spec.Parent] = true // it serves the addresses of a group that is missing
		}
	}
	claims, err := resource.NewClaims(v.App)
	if err != nil {
		return append(failed, err)
	}
	for i := range j.plan.Claims {
		c := &j.plan.Claims[i]
		name := c.Namespace + "/" + c.Name
		if err := v.createOne(ctx, claims.API.Namespace(c.Namespace), j, c, importer.ClaimObject(name)); err != nil {
			unmade[name], failed = true, append(failed, err)
		}
	}
	j.plan.Leases = slices.DeleteFunc(j.plan.Leases, func(l lease.Lease) bool {
		skip := unmade[l.Pool] || l.Claim != "" && unmade[l.Claim]
		if skip {
			j.unfinished[l.Pool] = true
		}
		return skip
	})
	failed = append(failed, v.createLeases(ctx, v.leases, j)...)
	return append(failed, v.uncordon(ctx, api, j)...)
}

// createOne creates a pool or a claim. It leaves one that was created meanwhile.
func (v *takeOver) createOne(
	ctx context.Context, api dynamic.ResourceInterface, j *job, typed runtime.Object, what string,
) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	o, err := j.object(typed, what)
	if err != nil {
		return err
	}
	if v.DryRun != app.DryRunClient {
		created, err := resource.Create(ctx, api, o, metav1.CreateOptions{FieldManager: app.ProgramName,
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

// object returns a pool or a claim as it is made.
func (j *job) object(typed runtime.Object, what string) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	o := &unstructured.Unstructured{Object: content}
	if stored := j.stored[what]; stored != nil { // as it is in the backup, with what this release does not know
		o = stored.DeepCopy()
		if _, ok := typed.(*v1.BCSNetPool); ok {
			err = restoring(o)
		}
	}
	unstructured.RemoveNestedField(o.Object, "status")
	return o, err
}

// createLeases stores the leases of the plan whose addresses have not changed since they were planned.
func (v *takeOver) createLeases(ctx context.Context, leases *store.Client, j *job) (failed app.Several) {
	todo := j.plan.Leases
	changed := make([]bool, len(todo))
	errs := resource.InBulk(ctx, v.App, todo, v.words.done, func(i int, l lease.Lease) error {
		if v.DryRun == app.DryRunClient {
			return nil
		}
		now, created, err := recovery.Create(ctx, leases, l)
		if err != nil {
			return resource.Explain(v.App, err)
		}
		changed[i] = !created && !importer.SameUse(now, l) // a second import may be as fast
		todo[i] = now
		return nil
	})
	var addrs, late []netip.Addr
	for i, l := range todo {
		switch {
		case errs[i] != nil:
			j.unfinished[l.Pool] = true
		case changed[i]:
			late = append(late, l.Addr)
		default:
			addrs = append(addrs, l.Addr)
			if v.output.Printer != nil {
				j.leases = append(j.leases, l)
			}
		}
	}
	if len(addrs) > 0 {
		v.Say.Done("%s %s: %s", humanize.Plural(len(addrs), "address"), v.words.done,
			resource.Spell(ipaddr.SetOfAddrs(addrs...)))
	}
	if len(late) > 0 {
		v.Say.Note("%s changed meanwhile and %s not changed here: %s", humanize.Plural(len(late), "address"),
			humanize.OneOr(len(late), "is", "are"), resource.Spell(ipaddr.SetOfAddrs(late...)))
	}
	return append(failed, resource.Unfinished(ctx, v.words.done, todo, errs))
}

// print prints all created objects, unless the table has shown them.
func (v *takeOver) print(j *job) error {
	if v.output.Printer == nil {
		return nil
	}
	object := func(l lease.Lease) (*unstructured.Unstructured, error) {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(store.Object(l))
		o := &unstructured.Unstructured{Object: content}
		o.SetManagedFields(nil)
		return o, err
	}
	if stream := printer.NewListStream(&v.output); stream != nil {
		return v.stream(stream, j, object)
	}
	items := slices.Clone(j.done)
	for _, l := range j.leases {
		o, err := object(l)
		if err != nil {
			return err
		}
		items = append(items, *o)
	}
	return v.output.List(v.Out, items)
}

// stream prints the objects one by one: all of them would not fit into memory where there are many addresses.
func (v *takeOver) stream(
	s *printer.ListStream, j *job, object func(lease.Lease) (*unstructured.Unstructured, error),
) error {
	write := func(o *unstructured.Unstructured, err error) error {
		if err != nil {
			return err
		}
		text, err := s.Text(o)
		if err != nil {
			return err
		}
		return s.Write(v.Out, slices.Values([][]byte{text}))
	}
	for i := range j.done {
		if err := write(&j.done[i], nil); err != nil {
			return err
		}
	}
	for _, l := range j.leases {
		if err := write(object(l)); err != nil {
			return err
		}
	}
	return s.Close(v.Out)
}
