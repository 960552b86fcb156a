package check

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
)

// Metadata of the pods: the ID of their run, and the plan once it is made.
const (
	labelRun       = "node-check"
	annotationPlan = "node-check-plan"
	annotationPool = "pool"
)

func ours(name string) string { return v1.GroupVersion.Group + "/" + name }

// Containers of a pod: one answers requests, the other one sends them.
const containerServe, containerAsk = "serve", "ask"

const (
	// program is the path of the program in the image.
	program = "/bcsnet-podcheck"
	// planDir is the directory of the plan in a pod.
	planDir, planFile = "/plan", "plan"
	// afterwards is the time for which a pod outlives --timeout if nobody deletes it.
	afterwards = askTime + releaseTime + time.Minute
	nobody     = 65534
)

// rights are the rights of the container that asks.
type rights int

const (
	rightRaw   rights = iota // NET_RAW alone
	rightUsual               // the runtime's defaults, which include NET_RAW with containerd
	rightNone
)

func allRights() []rights { return []rights{rightRaw, rightUsual, rightNone} }

// String returns the rights for messages.
func (r rights) String() string {
	return [...]string{"NET_RAW", "the capabilities that the runtime gives to all", "no capability"}[r]
}

func (r rights) security() *corev1.SecurityContext {
	s := &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
	switch r {
	case rightRaw:
		s.RunAsUser, s.Capabilities.Add = new(int64(0)), []corev1.Capability{"NET_RAW"}
	case rightUsual:
		s.RunAsUser, s.Capabilities = new(int64(0)), nil
	case rightNone:
		s.RunAsUser, s.RunAsNonRoot = new(int64(nobody)), new(true)
	}
	return s
}

// pod returns the pod for a node. It sets the node's name, because the scheduler would avoid nodes that are cordoned,
// tainted or without a free address, which must be checked, too.
func (r *run) pod(t *target) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: r.in.Name, Name: podName(t.Name, r.id),
			Labels:      map[string]string{ours(labelRun): r.id, "app.kubernetes.io/managed-by": "bcsnetctl"},
			Annotations: map[string]string{},
		},
		Spec: corev1.PodSpec{
			NodeName: t.Name, RestartPolicy: corev1.RestartPolicyNever,
			Tolerations:                   []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			ActiveDeadlineSeconds:         new(int64((r.timeout + afterwards).Seconds())),
			TerminationGracePeriodSeconds: new(int64(1)),
			AutomountServiceAccountToken:  new(false), EnableServiceLinks: new(false),
			Volumes: []corev1.Volume{planVolume()},
			Containers: []corev1.Container{
				r.container(containerServe, rightNone, "serve", podName(t.Name, r.id)),
				r.container(containerAsk, r.rights, "ask", planDir+"/"+planFile, corev1.TerminationMessagePathDefault),
			},
		},
	}
	p.Spec.Containers[1].VolumeMounts = []corev1.VolumeMount{{Name: planFile, MountPath: planDir, ReadOnly: true}}
	if r.pool != "" {
		p.Annotations[ours(annotationPool)] = r.pool
	}
	return p
}

func planVolume() corev1.Volume {
	file := corev1.DownwardAPIVolumeFile{Path: planFile, FieldRef: &corev1.ObjectFieldSelector{
		FieldPath: "metadata.annotations['" + ours(annotationPlan) + "']",
	}}
	return corev1.Volume{Name: planFile, VolumeSource: corev1.VolumeSource{
		DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{file}},
	}}
}

func (r *run) container(name string, may rights, args ...string) corev1.Container {
	amount := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory),
		}
	}
	return corev1.Container{
		Name: name, Image: r.image, ImagePullPolicy: corev1.PullIfNotPresent, Command: []string{program}, Args: args,
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		SecurityContext:          may.security(),
		// Some, for namespaces with a quota.
		Resources: corev1.ResourceRequirements{Requests: amount("10m", "16Mi"), Limits: amount("500m", "64Mi")},
	}
}

// maxPodName is the maximum length at which a pod's name is its host name, too.
const maxPodName = 63

// podName returns the name of the pod on a node. A long name of a node is cut, and a hash of it is appended.
func podName(node, id string) string {
	const before = "bcsnet-check-"
	if room := maxPodName - len(before) - 1 - len(id); len(node) > room {
		sum := fmt.Sprintf("%x", sha256.Sum256([]byte(node)))[:8]
		node = strings.TrimRight(node[:room-1-len(sum)], ".-") + "-" + sum
	}
	return before + node + "-" + id
}
