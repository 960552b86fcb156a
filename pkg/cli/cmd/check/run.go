package check

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/nodecheck"
)

// run is one run of the check: its nodes, and what it knows of each.
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
	// startedAt is when the pod was first seen running.
	startedAt time.Time
}

// fail notes why the node has no working pod.
func (t *target) fail(check, fix, format string, args ...any) {
	t.Failure = &nodecheck.Finding{Check: check, Node: t.Name, Cause: fmt.Sprintf(format, args...), Fix: fix}
}

// running returns the nodes that have, or are to have, a working pod.
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

// Bounds of the parts of a run, beside --timeout.
const (
	// pollEvery is the time between two looks.
	pollEvery = 500 * time.Millisecond
	// askTime is how long pods may take to get their plan and to do what it says. A kubelet delivers it at once, or
	// with its next synchronisation within some 90 s.
	askTime = 2 * time.Minute
	// releaseTime is how long the end of the pods may take, and their addresses to come back.
	releaseTime = 45 * time.Second
	// abortTime is how long the deletion of the pods may take when the run failed or was interrupted.
	abortTime = 15 * time.Second
)

// run makes the pods, has them ask each other, and deletes them whatever happens.
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

// create makes the pods, several at once. A pod that the API server refuses is a finding of its node.
func (r *run) create(ctx context.Context) error {
	r.Say.Start("%s in namespace %s, of image %s", humanize.Plural(len(r.running()), "pod"), r.in.Name, r.image)
	return r.each(r.running(), func(t *target) error {
		t.created = r.Now()
		made, err := r.core.Pods(r.in.Name).Create(ctx, r.pod(t), metav1.CreateOptions{})
		switch {
		case err == nil:
			t.Pod, t.uid = made.Name, made.UID
		case wasInterrupted(ctx, err) || apierrors.ReasonForError(err) == metav1.StatusReasonUnknown:
			return err // no answer: whether the pod is there shows at the end
		default:
			t.fail(nodecheck.CheckPod, "mend it, and check the node again: bcsnetctl check nodes "+t.Name,
				"the API server makes no pod: %v", err)
		}
		return nil
	})
}

// each does something for nodes, several at once, and returns the first error.
func (r *run) each(targets []*target, do func(*target) error) error {
	var group errgroup.Group
	group.SetLimit(resource.AtOnce)
	for _, t := range targets {
		group.Go(func() error { return do(t) })
	}
	return group.Wait()
}
