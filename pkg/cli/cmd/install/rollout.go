package install

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/follow"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
)

// progress counts the pods of a Deployment or DaemonSet with the newest version.
type progress struct {
	wanted, ready int
	done          bool
	// why is the error that prevents the creation of its pods; empty if there is none.
	why string
}

// rollout is a Deployment or DaemonSet that the command waits for, and its pods.
type rollout struct {
	*install
	title, unit string
	now         progress
	pods        map[string]*corev1.Pod
	// shown has the lines that were printed.
	shown map[string]bool
	// lastLines caches the last lines of ended containers, by pod, container and number of restarts.
	lastLines map[string]string
}

// Sources of the changes that a rollout follows.
const (
	ofWorkload = iota
	ofPods
)

// rolledOut waits until every pod of a step runs the applied version and is ready. left is the number of steps that
// follow, for messages.
func (v *install) rolledOut(ctx context.Context, of step, left int) error {
	r := &rollout{
		install: v, title: resource.Title(of.want), unit: "replica", pods: map[string]*corev1.Pod{},
		shown:     map[string]bool{},
		lastLines: map[string]string{},
	}
	if of.want.GetKind() == resource.KindDaemonSet {
		r.unit = "node"
	}
	done, err := r.follow(ctx, of)
	v.plan.rollouts = append(v.plan.rollouts, rolled{r.title, r.now.wanted, r.now.ready, done})
	if done || err != nil {
		if done {
			v.Say.Done("%s is ready", r.title)
		}
		return err
	}
	return r.late(ctx, left)
}

// follow watches until the rollout is done or the time is over, and reports whether it is done.
func (r *rollout) follow(ctx context.Context, of step) (done bool, err error) {
	selector, _, err := unstructured.NestedStringMap(of.want.Object, "spec", "selector", "matchLabels")
	if err != nil {
		return false, err
	}
	c, err := r.Dynamic()
	if err != nil {
		return false, err
	}
	following, stop := context.WithCancel(ctx)
	defer stop()
	changes, ended := make(chan follow.Change), make(chan error, 1)
	go func() {
		ended <- follow.NewFollower(r.App, of.api, metav1.ListOptions{FieldSelector: follow.Named(of.want.GetName())},
			ofWorkload, changes).Run(following)
	}()
	go func() {
		// A user who may not read pods sees only the counts.
		_ = follow.NewFollower(r.App, c.Resource(resource.PodResource()).Namespace(of.want.GetNamespace()),
			metav1.ListOptions{LabelSelector: labels.SelectorFromSet(selector).String()}, ofPods,
			changes).Run(following)
	}()
	var over <-chan time.Time
	if r.timeout > 0 {
		over = time.After(r.timeout)
	}
	for {
		select {
		case change := <-changes:
			if err := r.take(change); err != nil || r.now.done {
				return r.now.done, err
			}
			r.show(ctx)
		case err := <-ended:
			return false, err
		case <-over:
			return false, nil
		}
	}
}

func (r *rollout) take(change follow.Change) (err error) {
	switch {
	case change.Object == nil:
		delete(r.pods, change.Name)
	case change.Source == ofWorkload:
		r.now, err = readProgress(change.Object)
	case change.Kind == watch.Deleted:
		delete(r.pods, change.Name)
	default:
		pod := &corev1.Pod{}
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(change.Object.Object, pod)
		r.pods[change.Name] = pod
	}
	return err
}

// show prints news: how many pods are ready, and which ones do not start.
func (r *rollout) show(ctx context.Context) {
	line := fmt.Sprintf("%s: %d of %s ready", r.title, r.now.ready, humanize.Plural(r.now.wanted, r.unit))
	if r.now.wanted > 0 && !r.shown[line] {
		r.Say.Wait("%s", line)
		r.shown[line] = true
	}
	if r.now.why != "" && !r.shown[r.now.why] {
		r.Say.Warn("%s: its pods cannot be made: %s", r.title, r.now.why)
		r.shown[r.now.why] = true
	}
	for _, t := range troubles(r.pods) {
		if key := t.pod + " " + t.what; !t.early && !r.shown[key] {
			r.Say.Warn("%s", r.text(ctx, t))
			r.shown[key] = true
		}
	}
}

// late returns the error of a rollout that took too long: which pod does not start, and why.
func (r *rollout) late(ctx context.Context, left int) error {
	message := fmt.Sprintf("%s: %d of %s ready after %s", r.title, r.now.ready, humanize.Plural(r.now.wanted, r.unit),
		r.timeout)
	hint := "see why: kubectl -n " + resource.SystemNamespace + " describe pods"
	all := troubles(r.pods)
	switch {
	case len(all) > 0:
		message += ": " + r.text(ctx, all[0])
		hint = "see more: kubectl -n " + resource.SystemNamespace + " " + all[0].command()
		if n := len(all) - 1; n > 0 {
			message += "; and " + humanize.Plural(n, "more pod")
		}
	case r.now.why != "":
		message += ": its pods cannot be created: " + r.now.why
	}
	if left > 0 {
		hint += "; once that is fixed run it again: the node side comes after the controller"
	} else {
		hint += "; all is applied: nothing has to be run again"
	}
	return (&app.Failure{Code: app.ExitTimeout, Message: message, Cause: follow.ErrTooLong}).WithHint("%s", hint)
}

func readProgress(o *unstructured.Unstructured) (progress, error) {
	if o.GetKind() == resource.KindDaemonSet {
		return progressOfSet(o)
	}
	var d appsv1.Deployment
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &d); err != nil {
		return progress{}, err
	}
	p := progress{wanted: 1}
	if d.Spec.Replicas != nil {
		p.wanted = int(*d.Spec.Replicas)
	}
	if d.Status.ObservedGeneration < d.Generation {
		return p, nil
	}
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			p.why = c.Message
		}
	}
	p.ready = int(min(d.Status.UpdatedReplicas, d.Status.AvailableReplicas))
	p.done = p.ready >= p.wanted && int(d.Status.Replicas) == p.wanted
	return p, nil
}

func progressOfSet(o *unstructured.Unstructured) (progress, error) {
	var d appsv1.DaemonSet
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &d); err != nil {
		return progress{}, err
	}
	p := progress{wanted: int(d.Status.DesiredNumberScheduled)}
	if d.Status.ObservedGeneration < d.Generation {
		return p, nil
	}
	p.ready = int(min(d.Status.UpdatedNumberScheduled, d.Status.NumberAvailable))
	p.done = p.ready >= p.wanted
	return p, nil
}
