package check

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
)

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
