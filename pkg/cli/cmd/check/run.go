package check

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/nodecheck"
)

// run is one run of the check, with its nodes.
type run struct {
	*nodesVerb
	core    *typedcorev1.CoreV1Client
	image   string
	rights  rights
	targets []*target
}

// target is a node with its pod.
type target struct {
	nodecheck.Node
	uid     types.UID
	created time.Time
	// startedAt is when this program first saw the pod run.
	startedAt time.Time
}

// fail records why the node has no working pod.
func (t *target) fail(check, fix, format string, args ...any) {
	t.Failure = &nodecheck.Finding{Check: check, Node: t.Name, Cause: fmt.Sprintf(format, args...), Fix: fix}
}

// running returns the nodes without a failure.
func (r *run) running() (out []*target) {
	for _, t := range r.targets {
		if t.Failure == nil {
			out = append(out, t)
		}
	}
	return out
}

func (r *run) results() (out []nodecheck.Node) {
	for _, t := range r.targets {
		out = append(out, t.Node)
	}
	return out
}

// Time limits of the parts of a run, in addition to --timeout.
const (
	// pollEvery is the polling interval.
	pollEvery = 500 * time.Millisecond
	// askTime bounds the time until all pods have got and run their plans. A kubelet delivers a plan at once, or at its
	// next synchronisation, within about 90 s.
	askTime = 2 * time.Minute
	// releaseTime bounds the time until the pods are gone and their addresses are released.
	releaseTime = 45 * time.Second
	// abortTime bounds the deletion of the pods after a failure or an interruption.
	abortTime = 15 * time.Second
)

// run creates the pods, has them ask each other, and deletes them in any case.
func (r *run) run(ctx context.Context) (err error) {
	if len(r.running()) == 0 {
		return nil
	}
	resource.OutlivePipes()
	deleted := false
	defer func() {
		if !deleted {
			r.abort(ctx)
		}
	}()
	for _, part := range []func(context.Context) error{r.create, r.awaitReady, r.sendPlans, r.awaitReports} {
		if err := part(ctx); err != nil {
			return resource.Explain(r.App, err)
		}
	}
	err = r.release(ctx)
	deleted = err == nil
	return resource.Explain(r.App, err)
}

// create creates the pods, several at once. If the API server refuses a pod, its node gets a finding.
func (r *run) create(ctx context.Context) error {
	r.Say.Start("%s in namespace %s, of image %s", humanize.Plural(len(r.running()), "pod"), r.in.Name, r.image)
	return r.each(r.running(), func(t *target) error {
		t.created = r.Now()
		made, err := r.core.Pods(r.in.Name).Create(ctx, r.pod(t), metav1.CreateOptions{})
		switch {
		case err == nil:
			t.Pod, t.uid = made.Name, made.UID
		case wasInterrupted(ctx, err) || apierrors.ReasonForError(err) == metav1.StatusReasonUnknown:
			return err // no answer: the pod may exist, and is deleted at the end
		default:
			t.fail(nodecheck.CheckPod, "fix it, and check the node again: bcsnetctl check nodes "+t.Name,
				"the API server makes no pod: %v", err)
		}
		return nil
	})
}

// each calls do for nodes, several at once, and returns the first error.
func (r *run) each(targets []*target, do func(*target) error) error {
	var group errgroup.Group
	group.SetLimit(resource.AtOnce)
	for _, t := range targets {
		group.Go(func() error { return do(t) })
	}
	return group.Wait()
}

// removeEarlier deletes the pods of earlier runs in this namespace, except those of runs that may still be going on.
func (r *run) removeEarlier(ctx context.Context) error {
	var over, going []*corev1.Pod
	err := r.eachPod(ctx, ours(labelRun), func(pod *corev1.Pod) {
		switch {
		case pod.DeletionTimestamp != nil: // its kubelet does the rest
		case endOf(pod).After(r.Now()):
			going = append(going, pod)
		default:
			over = append(over, pod)
		}
	})
	if err != nil {
		return err
	}
	for _, pod := range over {
		if r.DryRun != app.DryRunNone {
			break
		}
		if err := r.deletePod(ctx, pod); err != nil {
			return err
		}
	}
	if len(over) > 0 {
		r.Say.Done("%s of an earlier run deleted", humanize.Plural(len(over), "pod"))
	}
	if len(going) > 0 {
		r.sayGoing(going)
	}
	return nil
}

// sayGoing warns that another run has pods, until when, and how to delete them.
func (r *run) sayGoing(going []*corev1.Pod) {
	last := slices.MaxFunc(going, func(a, b *corev1.Pod) int { return endOf(a).Compare(endOf(b)) })
	r.Say.Warn("namespace %s has %s of another run, which goes on or was killed; %s until %s", r.in.Name,
		humanize.Plural(len(going), "pod"), humanize.OneOr(len(going), "it ends by itself", "they end by themselves"),
		endOf(last).Format(time.TimeOnly))
	r.Hint("if it was killed: %s", deleting(r.in.Name, last.Labels[ours(labelRun)]))
}

// endOf returns when a pod of a check ends by itself; the zero time for a pod that has ended.
func endOf(pod *corev1.Pod) time.Time {
	phase, seconds := pod.Status.Phase, pod.Spec.ActiveDeadlineSeconds
	if phase == corev1.PodFailed || phase == corev1.PodSucceeded || seconds == nil {
		return time.Time{}
	}
	return pod.CreationTimestamp.Add(time.Duration(*seconds) * time.Second)
}
