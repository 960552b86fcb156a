package install

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/bcsnet/bcsnet/pkg/cli/resource"
)

// trouble is why a pod is not ready.
type trouble struct {
	pod, what string
	// detail is the API server's explanation.
	detail string
	// container is the container that ended, and restarts its number of restarts; empty if none ended.
	container string
	restarts  int32
	// running means that the ended container runs again.
	running bool
	// early means that waiting may solve the problem.
	early bool
	made  time.Time
}

// troubles returns why pods are not ready: first problems that waiting does not solve, then newer pods first.
func troubles(pods map[string]*corev1.Pod) (all []trouble) {
	for _, pod := range pods {
		if t, ok := troubleOf(pod); ok {
			t.pod, t.made = pod.Name, pod.CreationTimestamp.Time
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b trouble) int {
		early := func(t trouble) int {
			if t.early {
				return 1
			}
			return 0
		}
		return cmp.Or(early(a)-early(b), b.made.Compare(a.made), strings.Compare(a.pod, b.pod))
	})
	return all
}

// troubleOf returns why a pod is not ready. It returns false if the pod is ready or being deleted.
func troubleOf(pod *corev1.Pod) (trouble, bool) {
	if pod.DeletionTimestamp != nil || conditionOf(pod, corev1.PodReady).Status == corev1.ConditionTrue {
		return trouble{}, false
	}
	if pod.Status.Phase == corev1.PodFailed {
		// Another pod replaces a failed one, which stays for people to see.
		return trouble{what: "has failed: " + pod.Status.Reason, detail: pod.Status.Message, early: true}, true
	}
	if c := conditionOf(pod, corev1.PodScheduled); c.Status == corev1.ConditionFalse {
		return trouble{what: "is not scheduled", detail: c.Message}, true
	}
	if pod.Spec.NodeName == "" {
		return trouble{what: "is not scheduled yet", early: true}, true
	}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if t, ok := troubleIn(status); ok {
			return t, true
		}
	}
	if c := conditionOf(pod, corev1.PodReady); pod.Status.Phase == corev1.PodRunning {
		return trouble{what: "runs and is not ready", detail: c.Message, early: true}, true
	}
	return trouble{what: "has not been started by node " + pod.Spec.NodeName + " yet", early: true}, true
}

// troubleIn returns why a container does not run.
func troubleIn(status corev1.ContainerStatus) (trouble, bool) {
	ended := status.State.Terminated
	if ended == nil {
		ended = status.LastTerminationState.Terminated
	}
	waits := status.State.Waiting
	switch {
	case status.Ready:
		return trouble{}, false
	case waits != nil && slices.Contains(imageReasons(), waits.Reason):
		return trouble{what: "cannot pull its image " + status.Image, detail: cmp.Or(waits.Message, waits.Reason)}, true
	case ended != nil && (ended.ExitCode != 0 || status.RestartCount > 0):
		what := fmt.Sprintf("crashes with exit code %d", ended.ExitCode)
		if ended.Reason != "" && ended.Reason != "Error" && ended.Reason != "Completed" {
			what += " (" + ended.Reason + ")"
		}
		return trouble{
			what: what, detail: lastOf(ended.Message), container: status.Name, restarts: status.RestartCount,
			running: status.State.Running != nil || waits != nil && status.State.Terminated == nil,
		}, true
	case waits != nil && !slices.Contains([]string{"", "ContainerCreating", "PodInitializing"}, waits.Reason):
		return trouble{what: "cannot start: " + waits.Reason, detail: waits.Message}, true
	}
	return trouble{}, false
}

// imageReasons returns the kubelet's reasons for a missing image.
func imageReasons() []string {
	return []string{
		"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError",
		"RegistryUnavailable", "SignatureValidationFailed",
	}
}

func conditionOf(pod *corev1.Pod, kind corev1.PodConditionType) corev1.PodCondition {
	for _, c := range pod.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return corev1.PodCondition{}
}

// text returns a trouble as a sentence, with the last log line of an ended container.
func (r *rollout) text(ctx context.Context, t trouble) string {
	text, detail := "pod "+t.pod+" "+t.what, t.detail
	if t.container != "" {
		if line := r.lastLine(ctx, t); line != "" {
			detail = line
		}
		if detail != "" {
			return text + ", after the line: " + detail
		}
	}
	if detail != "" {
		text += ": " + detail
	}
	return text
}

// command returns the kubectl arguments that show more about a trouble.
func (t trouble) command() string {
	switch {
	case t.container != "" && t.running:
		return "logs " + t.pod + " --previous"
	case t.container != "":
		return "logs " + t.pod
	}
	return "describe pod " + t.pod
}

// logTime bounds the reading of a log, because the kubelet may not answer.
const logTime = 5 * time.Second

// lastLine returns the last line that a container wrote before it ended; empty if it cannot be read.
func (r *rollout) lastLine(ctx context.Context, t trouble) string {
	key := fmt.Sprint(t.pod, " ", t.container, " ", t.restarts)
	if line, known := r.lastLines[key]; known {
		return line
	}
	cfg, err := r.Connect()
	if err != nil {
		return ""
	}
	core, err := corev1client.NewForConfig(cfg)
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, logTime)
	defer cancel()
	raw, err := core.Pods(resource.SystemNamespace).GetLogs(t.pod, &corev1.PodLogOptions{
		Container: t.container, Previous: t.running, TailLines: new(int64(1)),
	}).DoRaw(ctx)
	if err != nil {
		raw = nil
	}
	r.lastLines[key] = lastOf(string(raw))
	return r.lastLines[key]
}

// lastOf returns the last line of a text that is not blank, cut to 300 characters.
func lastOf(text string) string {
	const most = 300
	lines := strings.Split(strings.TrimSpace(text), "\n")
	line := strings.TrimSpace(lines[len(lines)-1])
	if runes := []rune(line); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return line
}
