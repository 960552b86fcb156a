package check

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/nodecheck"
)

// release deletes the pods, and waits until they are gone and their addresses are released.
func (r *run) release(ctx context.Context) error {
	began := r.Now()
	if err := r.deletePods(ctx); err != nil {
		return err
	}
	r.Say.Wait("waiting until the pods are gone and their addresses are back")
	within, stop := context.WithTimeout(ctx, releaseTime)
	defer stop()
	var pods map[types.UID]*corev1.Pod
	var leases map[string][]lease.Lease
	err := wait.PollUntilContextCancel(within, pollEvery, true, func(ctx context.Context) (_ bool, err error) {
		if pods, err = r.pods(ctx); err != nil {
			return false, err
		}
		leases, err = r.leases(ctx)
		return len(pods)+len(leases) == 0, err
	})
	if ctx.Err() != nil || err != nil && within.Err() == nil {
		return cmp.Or(ctx.Err(), err)
	}
	for _, t := range r.targets {
		if t.uid == "" {
			continue
		}
		t.Release = nodecheck.Release{
			Asked: true, Left: pods[t.uid] != nil, Held: addrsOf(leases[t.Pod]), Within: r.Now().Sub(began),
		}
	}
	return nil
}

func addrsOf(leases []lease.Lease) (out []netip.Addr) {
	for _, l := range leases {
		out = append(out, l.Addr)
	}
	return out
}

// deletePods deletes all pods of this run, including pods whose creation got no answer.
func (r *run) deletePods(ctx context.Context) error {
	pods, err := r.pods(ctx)
	if err != nil {
		return err
	}
	var group errgroup.Group
	group.SetLimit(resource.AtOnce)
	for _, pod := range pods {
		group.Go(func() error { return r.deletePod(ctx, pod) })
	}
	return group.Wait()
}

func (r *run) deletePod(ctx context.Context, pod *corev1.Pod) error {
	err := r.core.Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: new(int64(1)), Preconditions: &metav1.Preconditions{UID: &pod.UID},
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// abort deletes the pods of a failed run, and waits abortTime at most until they are gone.
func (r *run) abort(interrupted context.Context) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(interrupted), abortTime)
	defer stop()
	r.Say.Wait("deleting the pods; what a second Ctrl-C leaves ends by itself within %s", r.timeout+afterwards)
	err := r.deletePods(ctx)
	if err == nil {
		err = wait.PollUntilContextCancel(ctx, pollEvery, true, func(ctx context.Context) (bool, error) {
			pods, err := r.pods(ctx)
			return len(pods) == 0, err
		})
	}
	if err == nil {
		r.Say.Done("the pods are gone")
		return
	}
	r.Say.Warn("pods may be left in namespace %s: %v", r.in.Name, resource.Explain(r.App, err))
	r.Hint("delete them: %s", deleting(r.in.Name, r.id))
}

// deleting returns the command that deletes the pods of a run.
func deleting(namespace, id string) string {
	return fmt.Sprintf("kubectl -n %s delete pods -l %s=%s", namespace, ours(labelRun), id)
}
