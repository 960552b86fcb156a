package importer

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"go4.org/netipx"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/importer"
	"github.com/bcsnet/bcsnet/pkg/importer/system"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// withdrawals reads and changes which addresses another system does not allocate.
type withdrawals struct {
	*app.App
	by importer.Withdrawer
}

// carriers returns the objects that speak for a pool.
func (w withdrawals) carriers(all []unstructured.Unstructured, p *v1.BCSNetPool) (out []*unstructured.Unstructured) {
	for i := range all {
		if w.by.Carries(&all[i], p) {
			out = append(out, &all[i])
		}
	}
	return out
}

// list returns the objects that can withdraw addresses.
func (w withdrawals) list(ctx context.Context) ([]unstructured.Unstructured, error) {
	items, served, err := listOthers(ctx, w.App, w.by.Kind())
	if err == nil && !served {
		err = notServed(&system.NotServedError{Kind: w.by.Kind()})
	}
	return items, err
}

// seen returns what the objects withdraw of each pool, and what is wrong with them.
func (w withdrawals) seen(
	items []unstructured.Unstructured, pools []v1.BCSNetPool,
) (out importer.Seen, wrong []importer.Remark, err error) {
	out = importer.Seen{
		Withdrawn: map[string]*netipx.IPSet{}, Torn: map[string]*netipx.IPSet{}, By: map[string]string{},
	}
	for i := range pools {
		p := &pools[i]
		for i := range items {
			if problem := w.by.Problem(&items[i], p); problem != "" {
				wrong = append(wrong, importer.Remark{
					Object: items[i].GetKind() + " " + resource.KeyOf(&items[i]), Cause: problem,
				})
			}
		}
		all := w.carriers(items, p)
		if len(all) == 0 && w.by.New(p) == nil {
			continue
		}
		set, some := ipaddr.SetOf(), ipaddr.SetOf()
		for i, o := range all {
			one, err := w.by.Withdrawn(o)
			if err != nil {
				return out, nil, fmt.Errorf("%s: %w", o.GetKind()+" "+resource.KeyOf(o), err)
			}
			if set = ipaddr.Intersect(set, one); i == 0 {
				set = one
			}
			some = importer.Union(some, one)
			out.By[p.Name] += fmt.Sprintf("%s/%d ", o.GetUID(), o.GetGeneration())
		}
		// An object can speak for two pools, one for each address family.
		if subnet := store.Pool(p).Plan.Subnet; subnet.IsValid() {
			whole := ipaddr.SetOf(netipx.RangeOfPrefix(subnet))
			set, some = ipaddr.Intersect(set, whole), ipaddr.Intersect(some, whole)
		}
		out.Withdrawn[p.Name], out.Torn[p.Name] = set, ipaddr.Subtract(some, set)
	}
	slices.SortFunc(wrong, func(a, b importer.Remark) int { return cmp.Compare(a.Object, b.Object) })
	return out, slices.Compact(wrong), nil // a problem is that of many pools
}

// read returns what is withdrawn of each pool: what all objects say that speak for it. A pool for which none can speak
// is missing.
func (w withdrawals) read(ctx context.Context, pools []v1.BCSNetPool) (importer.Seen, error) {
	items, err := w.list(ctx)
	if err != nil {
		return importer.Seen{}, err
	}
	seen, _, err := w.seen(items, pools)
	return seen, err
}

// change withdraws some addresses of a pool and gives others back, and reads the result. It stores nothing over a
// change of somebody else.
func (w withdrawals) change(ctx context.Context, p *v1.BCSNetPool, add, back *netipx.IPSet) error {
	items, _, err := listOthers(ctx, w.App, w.by.Kind())
	if err != nil {
		return err
	}
	c, err := w.Dynamic()
	if err != nil {
		return err
	}
	objects := w.carriers(items, p)
	if made := w.by.New(p); len(objects) == 0 && made != nil {
		objects = append(objects, made)
	}
	for _, o := range objects {
		api := c.Resource(w.by.Kind()).Namespace(o.GetNamespace())
		err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			return w.changeOne(ctx, api, o, p, add, back)
		})
		if apierrors.IsForbidden(err) { // the role bcsnet-operator changes nothing of other systems
			return app.Refuse(ipam.ReasonForbidden, "%v", err).WithHint(
				"you need the right to create, update and delete %s", w.by.Kind().GroupResource())
		}
		if err != nil {
			return fmt.Errorf("%s was not changed: %w", o.GetKind()+" "+resource.KeyOf(o), resource.Explain(w.App, err))
		}
	}
	if w.DryRun != app.DryRunNone {
		return nil
	}
	now, err := w.read(ctx, []v1.BCSNetPool{*p})
	if err != nil {
		return err
	}
	set, some := now.Withdrawn[p.Name], importer.Union(now.Withdrawn[p.Name], now.Torn[p.Name])
	if left := importer.Union(ipaddr.Subtract(add, set), ipaddr.Intersect(back, some)); len(left.Ranges()) > 0 {
		return app.Refuse(app.ReasonLeaseChanged, "pool %s: %s is not as it was written to the other system",
			p.Name, resource.Spell(left)).WithHint("somebody changes its objects; find out who, then run it again")
	}
	return nil
}

// changeOne changes one object with its current version.
func (w withdrawals) changeOne(
	ctx context.Context, api dynamic.ResourceInterface, o *unstructured.Unstructured, p *v1.BCSNetPool,
	add, back *netipx.IPSet,
) error {
	now, err := api.Get(ctx, o.GetName(), metav1.GetOptions{})
	exists := err == nil
	if apierrors.IsNotFound(err) && w.by.New(p) != nil {
		now, err = w.by.New(p), nil
	}
	if err != nil {
		return err
	}
	before, err := w.by.Withdrawn(now)
	if err != nil {
		return err
	}
	next := ipaddr.Subtract(importer.Union(before, add), back)
	if next.Equal(before) {
		return nil
	}
	if problem := w.by.Problem(now, p); exists && problem != "" {
		return app.Refuse(app.ReasonLeaseChanged, "%s", problem)
	}
	if err := w.by.Set(now, next); err != nil {
		return err
	}
	options := metav1.UpdateOptions{FieldManager: app.ProgramName, DryRun: w.DryRun.Options()}
	switch {
	case !exists:
		_, err = api.Create(ctx, now, metav1.CreateOptions{FieldManager: options.FieldManager, DryRun: options.DryRun})
		if apierrors.IsAlreadyExists(err) {
			err = apierrors.NewConflict(w.by.Kind().GroupResource(), o.GetName(), err)
		}
	case w.by.Spent(now):
		uid, version := now.GetUID(), now.GetResourceVersion()
		err = api.Delete(ctx, o.GetName(), metav1.DeleteOptions{DryRun: options.DryRun,
			Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}})
	default:
		_, err = api.Update(ctx, now, options)
	}
	return err
}
