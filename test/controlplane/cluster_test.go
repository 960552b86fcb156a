package controlplane_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

const web = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: web}]
      topologySpreadConstraints:
      - {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: once}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: once, image: once}]
`

// With everything on it is a cluster: workloads make pods, pods land on nodes and run, and go.
func TestWholeCluster(t *testing.T) {
	cp := controlplane.ForTest(t,
		controlplane.WithControllerManager(), controlplane.WithScheduler(), controlplane.WithKwok())
	clients := clientsFor(t, cp.Config)
	for i, name := range []string{"node-a", "node-b"} {
		createNode(t, clients, name, fmt.Sprintf("10.0.0.%d", 11+i))
	}
	kubectl(t, cp, web, "apply", "-f", "-")
	kubectl(t, cp, "", "rollout", "status", "deployment/web", "--timeout=60s")
	kubectl(t, cp, "", "wait", "--for=condition=Complete", "job/once", "--timeout=60s")

	pods, err := clients.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{LabelSelector: "app=web"})
	if err != nil {
		t.Fatal(err)
	}
	hosts := map[string]int{}
	for _, pod := range pods.Items {
		hosts[pod.Status.HostIP]++
		if pod.Status.Phase != corev1.PodRunning || pod.Status.PodIP != "" || pod.Spec.ServiceAccountName != "default" {
			t.Errorf("%s: phase %q, IP %q, ServiceAccount %q; want Running without an address as default",
				pod.Name, pod.Status.Phase, pod.Status.PodIP, pod.Spec.ServiceAccountName)
		}
	}
	if len(pods.Items) != 3 || hosts["10.0.0.11"] == 0 || hosts["10.0.0.12"] == 0 {
		t.Errorf("pods by host: %v, want 3 on both", hosts)
	}

	// An extended resource reaches the scheduler the way a kubelet passes it on.
	kubectl(t, cp, "", "patch", "node/node-a", "--subresource=status", "-p",
		`{"status":{"capacity":{"example.org/lamps":"2"}}}`)
	kubectl(t, cp, "", "wait", "--for=jsonpath={.status.allocatable.example\\.org/lamps}=2", "node/node-a",
		"--timeout=60s")

	kubectl(t, cp, "", "delete", "deployment/web", "--cascade=foreground", "--timeout=60s")
	left, err := clients.CoreV1().Pods("default").List(context.Background(), metav1.ListOptions{LabelSelector: "app=web"})
	if err != nil || len(left.Items) != 0 {
		t.Errorf("%d pods are left, %v", len(left.Items), err)
	}
}

func createNode(t *testing.T, clients kubernetes.Interface, name, ip string) {
	t.Helper()
	_, err := clients.CoreV1().Nodes().Create(t.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
			Labels:      map[string]string{corev1.LabelHostname: name},
		},
		Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: ip}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func kubectl(t *testing.T, cp *controlplane.ControlPlane, stdin string, args ...string) {
	t.Helper()
	cmd := cp.Kubectl(t.Context(), args...)
	cmd.Stdin = strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("kubectl %s: %v: %s", strings.Join(args, " "), err, out)
	}
}
