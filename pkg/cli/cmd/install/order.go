package install

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
)

// carryOut applies the steps and returns the applied objects. With --wait it waits until their pods run; an upgrade
// then waits for the controller before it touches the nodes.
func (v *install) carryOut(
	ctx context.Context, c dynamic.Interface, steps []step,
) (applied []unstructured.Unstructured, err error) {
	waits := v.wait && !v.crdsOnly && v.DryRun == app.DryRunNone
	first, nodes := steps, []step(nil)
	if waits && v.upgrade {
		first, nodes = v.parts(steps)
	}
	if applied, err = v.applyAll(ctx, first); err != nil {
		return applied, err
	}
	if err := v.adopt(ctx, c, steps); err != nil {
		return applied, err
	}
	if !waits {
		v.hintRollouts()
		return applied, nil
	}
	if err := v.awaitKind(ctx, steps, resource.KindDeployment, len(nodes)); err != nil {
		return applied, err
	}
	more, err := v.applyAll(ctx, nodes)
	applied = append(applied, more...)
	if err != nil {
		return applied, err
	}
	return applied, v.awaitKind(ctx, steps, resource.KindDaemonSet, 0)
}

// parts separates the steps of the node side from the others.
func (v *install) parts(steps []step) (cluster, nodes []step) {
	for _, s := range steps {
		if v.isOnNodes(s) {
			nodes = append(nodes, s)
		} else {
			cluster = append(cluster, s)
		}
	}
	return cluster, nodes
}

// awaitKind waits until all workloads of a kind are rolled out. left is the number of steps that follow, for messages.
func (v *install) awaitKind(ctx context.Context, steps []step, kind string, left int) error {
	for _, s := range steps {
		if s.want.GetKind() != kind {
			continue
		}
		if err := v.rolledOut(ctx, s, left); err != nil {
			return err
		}
	}
	return nil
}

// hintRollouts names the commands that show the progress.
func (v *install) hintRollouts() {
	if v.crdsOnly || v.DryRun != app.DryRunNone {
		return
	}
	v.Hint("see the controller start: kubectl -n %s rollout status deployment %s", resource.SystemNamespace,
		resource.ControllerName)
	if v.node {
		v.Hint("see nodes get the plugins: kubectl -n %s rollout status daemonset %s", resource.SystemNamespace,
			nodeName)
	}
}
