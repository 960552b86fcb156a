package install

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/follow"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

const reasonLeasesHeld ipam.Reason = "LeasesHeld"

// guard refuses to delete definitions while there are pools, claims or addresses in use, unless --delete-leases is set.
func (v *uninstall) guard(ctx context.Context, c dynamic.Interface, steps []step) error {
	if !v.crds {
		return nil
	}
	pools, err := v.count(ctx, c, steps, v1.PoolResource, "")
	if err != nil {
		return err
	}
	held, err := v.count(ctx, c, steps, v1.IPResource, "status.status!="+lease.Available.String())
	if err != nil {
		return err
	}
	claims, err := v.count(ctx, c, steps, v1.ClaimResource, "")
	if err != nil || pools+held+claims == 0 {
		return err
	}
	what := fmt.Sprintf("%s, %s and %s in use or reserved", humanize.Plural(pools, "pool"),
		humanize.Plural(claims, "claim"), humanize.Plural(held, "address"))
	if v.deleteLeases {
		v.Say.Warn("deleted with the definitions: %s", what)
		return nil
	}
	return app.Refuse(reasonLeasesHeld, "the definitions stay: with them would go %s", what).
		WithHint(
			"see who holds what: bcsnetctl ip list; to delete it all the same: bcsnetctl uninstall --crds " +
				"--delete-leases")
}

// count counts the objects that match a field selector; 0 if their definition is gone. A definition that has just
// changed may not be served for a moment; that does not count as 0.
func (v *uninstall) count(
	ctx context.Context, c dynamic.Interface, steps []step, name, selector string,
) (n int, err error) {
	if !slices.ContainsFunc(
		steps, func(s step) bool { return s.want.GetName() == resource.Of(name).GroupResource().String() }) {
		return 0, nil
	}
	backoff := wait.Backoff{Steps: 8, Duration: 50 * time.Millisecond, Factor: 2}
	err = wait.ExponentialBackoffWithContext(ctx, backoff, func(ctx context.Context) (bool, error) {
		n = 0
		err := v.each(ctx, c, resource.Of(name), selector, func(page []unstructured.Unstructured) error {
			n += len(page)
			return nil
		})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		err = &app.Failure{Message: "the definitions stay: " + name +
			" are defined and not served, so nobody knows what would go with them"}
	}
	return n, err
}

// each reads objects page by page. It returns the API server's error if their kind is not served.
func (v *uninstall) each(
	ctx context.Context, c dynamic.Interface, r schema.GroupVersionResource, selector string,
	take func([]unstructured.Unstructured) error,
) error {
	for options := (metav1.ListOptions{FieldSelector: selector, Limit: resource.PageSize}); ; {
		page, err := c.Resource(r).List(ctx, options)
		switch {
		case apierrors.IsNotFound(err):
			return err
		case err != nil:
			return needAdministrator(v.App, err)
		}
		if err := take(page.Items); err != nil {
			return err
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}

// finish waits until a deleted definition is gone. The API server deletes the objects, but without a controller nobody
// removes their finalizers, so this does with --delete-leases.
func (v *uninstall) finish(ctx context.Context, c dynamic.Interface, crd step) error {
	name, _, err := unstructured.NestedString(crd.have.Object, "spec", "names", "plural")
	if err != nil {
		return err
	}
	if v.deleteLeases {
		if err := v.unfinalize(ctx, c, resource.Of(name)); err != nil {
			return err
		}
	}
	v.Say.Wait("%s: waiting until its objects are gone", resource.Title(crd.want))
	uid := crd.have.GetUID()
	read := func(o *unstructured.Unstructured) (types.UID, error) { return o.GetUID(), nil }
	err = follow.WaitSet[types.UID]{App: v.App, API: crd.api, Fields: follow.Named(crd.have.GetName()), Read: read,
		See: func(set map[string]types.UID) (bool, error) {
			return set[crd.have.GetName()] != uid, nil
		}}.Until(ctx, v.timeout)
	if errors.Is(err, follow.ErrTooLong) {
		f := &app.Failure{Code: app.ExitTimeout, Message: resource.Title(crd.want) + " is not gone after " +
			v.timeout.String(), Cause: err}
		return f.WithHint("see what is left: kubectl get %s; then run it again: it does the rest", name)
	}
	return err
}

// unfinalize removes the finalizers of all objects of a kind.
func (v *uninstall) unfinalize(ctx context.Context, c dynamic.Interface, r schema.GroupVersionResource) error {
	err := v.each(ctx, c, r, "", func(page []unstructured.Unstructured) error {
		var group errgroup.Group
		group.SetLimit(resource.AtOnce)
		for _, o := range page {
			if len(o.GetFinalizers()) == 0 {
				continue
			}
			group.Go(func() error {
				_, err := c.Resource(r).Namespace(o.GetNamespace()).Patch(ctx, o.GetName(), types.MergePatchType,
					[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{FieldManager: app.ProgramName})
				if apierrors.IsNotFound(err) {
					return nil
				}
				return needAdministrator(v.App, err)
			})
		}
		return group.Wait()
	})
	if apierrors.IsNotFound(err) {
		return nil // the definition is gone
	}
	return err
}
