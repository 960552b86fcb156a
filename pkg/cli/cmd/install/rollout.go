package install

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/follow"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
)

// progress is how far a Deployment is with its newest version.
type progress struct {
	wanted, ready int32
	done          bool
}

// rolledOut waits until every replica of the controller runs the version that was applied, and is ready.
func (v *install) rolledOut(ctx context.Context, c dynamic.Interface) error {
	title := resource.KindDeployment + " " + resource.ControllerName
	var said progress
	deployments := c.Resource(appsv1.SchemeGroupVersion.WithResource("deployments")).Namespace(resource.SystemNamespace)
	err := follow.WaitSet[progress]{App: v.App, API: deployments, Fields: follow.Named(resource.ControllerName),
		Read: readProgress,
		See: func(set map[string]progress) (bool, error) {
			for _, p := range set {
				if p != said && !p.done {
					v.Say.Wait("%s: %d of %s ready", title, p.ready, humanize.Plural(int(p.wanted), "replica"))
				}
				said = p
				return p.done, nil
			}
			return false, nil
		}}.Until(ctx, v.timeout)
	if errors.Is(err, follow.ErrTooLong) {
		f := &app.Failure{Code: app.ExitTimeout, Message: fmt.Sprintf("%s: %d of %s ready after %s", title, said.ready,
			humanize.Plural(int(said.wanted), "replica"), v.timeout), Cause: err}
		return f.WithHint("see why: kubectl -n %s describe pods; all is applied: nothing has to be run again",
			resource.SystemNamespace)
	}
	if err == nil {
		v.Say.Done("%s is ready", title)
	}
	return err
}

func readProgress(o *unstructured.Unstructured) (progress, error) {
	var d appsv1.Deployment
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &d); err != nil {
		return progress{}, err
	}
	wanted := int32(1)
	if d.Spec.Replicas != nil {
		wanted = *d.Spec.Replicas
	}
	if d.Status.ObservedGeneration < d.Generation {
		return progress{wanted: wanted}, nil
	}
	ready := min(d.Status.UpdatedReplicas, d.Status.AvailableReplicas)
	return progress{wanted, ready, ready >= wanted && d.Status.Replicas == wanted}, nil
}
