package install

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/follow"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/doctor"
)

// established waits until the API server serves a definition.
func (v *install) established(ctx context.Context, crd step) error {
	name, said, why := crd.want.GetName(), false, ""
	served := func(o *unstructured.Unstructured) (bool, error) {
		why = doctor.NotServed(crd.want.Object, o.Object)
		return why == "", nil
	}
	err := follow.WaitSet[bool]{App: v.App, API: crd.api, Fields: follow.Named(name), Read: served,
		See: func(set map[string]bool) (bool, error) {
			if !set[name] && !said {
				v.Say.Wait("%s: waiting until it is served", resource.Title(crd.want))
				said = true
			}
			return set[name], nil
		}}.Until(ctx, v.timeout)
	if errors.Is(err, follow.ErrTooLong) {
		f := &app.Failure{Code: app.ExitTimeout, Cause: err, Message: strings.TrimSuffix(fmt.Sprintf(
			"%s is not served after %s: %s", resource.Title(crd.want), v.timeout, why), ": ")}
		return f.WithHint("see why: kubectl get crd %s -o yaml; then run it again: it does the rest", name)
	}
	return err
}

// sameObject compares two versions of an object without the fields that every write changes.
func sameObject(a, b *unstructured.Unstructured) bool {
	return equality.Semantic.DeepEqual(bare(a), bare(b))
}

// bare returns the fields of an object except those that every write changes.
func bare(o *unstructured.Unstructured) map[string]any {
	o = o.DeepCopy()
	o.SetManagedFields(nil)
	o.SetResourceVersion("")
	o.SetGeneration(0)
	unstructured.RemoveNestedField(o.Object, "status")
	return o.Object
}
