package install

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTroubles(t *testing.T) {
	began := metav1.NewTime(time.Unix(1000, 0))
	condition := func(kind corev1.PodConditionType, status corev1.ConditionStatus, message string) corev1.PodCondition {
		return corev1.PodCondition{Type: kind, Status: status, Message: message}
	}
	waiting := func(reason, message string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	}
	ended := func(code int32, reason, message string) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: message}}
	}
	type states = []corev1.ContainerStatus
	for name, test := range map[string]struct {
		node   string
		status corev1.PodStatus
		want   []trouble
	}{
		"ready": {"n1", corev1.PodStatus{
			Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{condition(corev1.PodReady, corev1.ConditionTrue, "")},
		}, nil},
		"no scheduler": {"", corev1.PodStatus{Phase: corev1.PodPending}, []trouble{{what: "is not scheduled yet", early: true}}},
		"no place": {
			"", corev1.PodStatus{Conditions: []corev1.PodCondition{
				condition(corev1.PodScheduled, corev1.ConditionFalse, "0/3 nodes are available"),
			}},
			[]trouble{{what: "is not scheduled", detail: "0/3 nodes are available"}},
		},
		"no kubelet": {
			"n1", corev1.PodStatus{Phase: corev1.PodPending},
			[]trouble{{what: "has not been started by node n1 yet", early: true}},
		},
		"being made": {
			"n1", corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: states{{State: waiting("ContainerCreating", "")}}},
			[]trouble{{what: "has not been started by node n1 yet", early: true}},
		},
		"no image": {
			"n1",
			corev1.PodStatus{ContainerStatuses: states{{Image: "r/c:v2", State: waiting("ImagePullBackOff", "not found")}}},
			[]trouble{{what: "cannot pull its image r/c:v2", detail: "not found"}},
		},
		"no image, no words": {
			"n1", corev1.PodStatus{ContainerStatuses: states{{Image: "r/c:v2", State: waiting("ErrImageNeverPull", "")}}},
			[]trouble{{what: "cannot pull its image r/c:v2", detail: "ErrImageNeverPull"}},
		},
		"no Secret": {
			"n1",
			corev1.PodStatus{ContainerStatuses: states{{State: waiting("CreateContainerConfigError", `secret "x" not found`)}}},
			[]trouble{{what: "cannot start: CreateContainerConfigError", detail: `secret "x" not found`}},
		},
		"waits after a crash": {
			"n1",
			corev1.PodStatus{ContainerStatuses: states{{
				Name: "c", State: waiting("CrashLoopBackOff", "back-off"), LastTerminationState: ended(2, "Error", "a\nlast\n"),
				RestartCount: 3,
			}}},
			[]trouble{{what: "crashes with exit code 2", detail: "last", container: "c", restarts: 3, running: true}},
		},
		"crashed just now": {
			"n1",
			corev1.PodStatus{ContainerStatuses: states{{Name: "c", State: ended(137, "OOMKilled", "")}}},
			[]trouble{{what: "crashes with exit code 137 (OOMKilled)", container: "c"}},
		},
		"runs again": {
			"n1", corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: states{{
				Name: "c", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
				LastTerminationState: ended(1, "Error", ""), RestartCount: 1,
			}}},
			[]trouble{{what: "crashes with exit code 1", container: "c", restarts: 1, running: true}},
		},
		"not ready": {
			"n1",
			corev1.PodStatus{
				Phase:             corev1.PodRunning,
				Conditions:        []corev1.PodCondition{condition(corev1.PodReady, corev1.ConditionFalse, "unready: [c]")},
				ContainerStatuses: states{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}},
			},
			[]trouble{{what: "runs and is not ready", detail: "unready: [c]", early: true}},
		},
		"evicted": {
			"n1", corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "low on memory"},
			[]trouble{{what: "has failed: Evicted", detail: "low on memory", early: true}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: "p", CreationTimestamp: began}, Spec: corev1.PodSpec{NodeName: test.node},
				Status: test.status,
			}
			for i := range test.want {
				test.want[i].pod, test.want[i].made = "p", began.Time
			}
			got := troubles(map[string]*corev1.Pod{"p": pod})
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(trouble{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			pod.DeletionTimestamp = &began
			if got := troubles(map[string]*corev1.Pod{"p": pod}); len(got) > 0 {
				t.Errorf("of one that ends: %+v", got)
			}
		})
	}
}

func TestTroublesInOrder(t *testing.T) {
	pods := map[string]*corev1.Pod{}
	for i, name := range []string{"old", "waits", "new"} {
		pods[name] = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: name, CreationTimestamp: metav1.NewTime(time.Unix(int64(i), 0)),
		}}
		if name != "waits" {
			pods[name].Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse}}
		}
	}
	var got []string
	for _, one := range troubles(pods) {
		got = append(got, one.pod)
	}
	if diff := cmp.Diff([]string{"new", "old", "waits"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
