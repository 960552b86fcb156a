package install

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

// upgraded is what upgrade -o json prints.
type upgraded struct {
	Kind     string      `json:"kind"`
	DryRun   string      `json:"dryRun"`
	Done     bool        `json:"done"`
	Checks   []lookedAt  `json:"checks"`
	Steps    []stepDone  `json:"steps"`
	Rollouts []rolledOut `json:"rollouts"`
	Error    struct {
		Message string `json:"message"`
		Hint    string `json:"hint"`
	} `json:"error"`
}

type lookedAt struct {
	Check   string `json:"check"`
	Outcome string `json:"outcome"`
}

type stepDone struct {
	Kind    string   `json:"kind"`
	Name    string   `json:"name"`
	Plan    string   `json:"plan"`
	Outcome string   `json:"outcome"`
	Changes []string `json:"changes"`
}

type rolledOut struct {
	Object string `json:"object"`
	Ready  int    `json:"ready"`
	Done   bool   `json:"done"`
}

// upgrade runs an upgrade with -o json, and returns its exit code, what it prints, and what it says.
func (c *clusterOf) upgrade(args ...string) (int, upgraded, string) {
	c.t.Helper()
	code, out, said := c.command(append([]string{"upgrade", "--yes", "-o", "json"}, args...)...)
	var u upgraded
	if err := json.Unmarshal([]byte(out), &u); err != nil {
		c.t.Fatalf("%v: %s: %s", err, out, said)
	}
	return code, u, said
}

// place returns the number of a step, and what became of it.
func (u upgraded) place(kind, name string) (n int, plan, outcome string) {
	for i, s := range u.Steps {
		if s.Kind == kind && s.Name == name {
			return i, s.Plan, s.Outcome
		}
	}
	return -1, "", ""
}

// node makes a node of this machine, on which nothing runs.
func (c *clusterOf) node(api kubernetes.Interface, name string, annotations map[string]string, kubelet int32) {
	c.t.Helper()
	n, err := api.CoreV1().Nodes().Create(c.t.Context(),
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations, Labels: map[string]string{corev1.LabelOSStable: "linux"}}},
		metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	if annotations != nil {
		return // kwok is its kubelet
	}
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}}
	n.Status.DaemonEndpoints.KubeletEndpoint.Port = kubelet
	n.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now(),
		LastTransitionTime: metav1.Now(),
	}}
	if err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		now, err := api.CoreV1().Nodes().Get(c.t.Context(), name, metav1.GetOptions{})
		if err == nil {
			now.Status = n.Status
			_, err = api.CoreV1().Nodes().UpdateStatus(c.t.Context(), now, metav1.UpdateOptions{})
		}
		return err
	}); err != nil {
		c.t.Fatal(err)
	}
}

func (c *clusterOf) clients() kubernetes.Interface {
	c.t.Helper()
	api, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		c.t.Fatal(err)
	}
	return api
}

// TestUpgradeRollsOut upgrades the controller and then the nodes, where both come up.
func TestUpgradeRollsOut(t *testing.T) {
	controlplane.TakesLong(t)
	t.Parallel()
	c := newCluster(t, controlplane.WithControllerManager(), controlplane.WithScheduler(), controlplane.WithKwok())
	for _, name := range []string{"n1", "n2"} {
		c.node(c.clients(), name, map[string]string{"kwok.x-k8s.io/node": "fake"}, 0)
	}
	c.bcsnetctl("install", "--yes", "--image", image, "--node", "--node-image", nodeImage, "--wait")
	c.publishCA()

	// A plan changes nothing.
	to := []string{"--image", image + ".1", "--node-image", nodeImage + ".1"}
	code, u, said := c.upgrade(append(to, "--dry-run=server")...)
	deployment, plan, outcome := u.place("Deployment", "bcsnet-controller")
	if code != 0 || u.Kind != "Upgrade" || u.DryRun != "server" || u.Done || plan != "change" || outcome != "pending" ||
		len(u.Steps[max(deployment, 0)].Changes) != 1 || !strings.Contains(u.Steps[max(deployment, 0)].Changes[0], image+" -> "+image+".1") {
		t.Errorf("the plan: exit code %d: %+v: %s", code, u, said)
	}
	if set, plan, _ := u.place("DaemonSet", "bcsnet-node"); set < deployment || plan != "change" {
		t.Errorf("nodes are step %d, the controller is %d: %s", set, deployment, plan)
	}
	checks := map[string]string{}
	for _, check := range u.Checks {
		checks[check.Check] = check.Outcome
	}
	for _, name := range []string{"rights", "definitions", "doctor", "trial"} {
		if checks[name] != "passed" {
			t.Errorf("the check %s is %q of %v", name, checks[name], u.Checks)
		}
	}

	code, u, said = c.upgrade(to...)
	if code != 0 || !u.Done || len(u.Rollouts) != 2 || !u.Rollouts[0].Done || !u.Rollouts[1].Done || u.Rollouts[1].Ready != 2 {
		t.Errorf("exit code %d: %+v: %s", code, u, said)
	}
	ready, nodes := strings.Index(said, "Deployment bcsnet-controller is ready"), strings.Index(said, "DaemonSet bcsnet-node configured")
	if ready < 0 || nodes < ready || !strings.Contains(said, "DaemonSet bcsnet-node is ready") {
		t.Errorf("nodes do not come after the controller: %s", said)
	}
	if _, _, outcome := u.place("DaemonSet", "bcsnet-node"); outcome != "configured" {
		t.Errorf("the node side is %q", outcome)
	}

	// Nodes are left alone when that is asked for, or when somebody has made them in another way.
	code, u, said = c.upgrade("--node=false", "--image", image)
	if set, _, _ := u.place("DaemonSet", "bcsnet-node"); code != 0 || set >= 0 {
		t.Errorf("without nodes: exit code %d: %+v: %s", code, u, said)
	}
	for patch, want := range map[string]string{
		`[{"op":"replace","path":"/spec/template/spec/containers/0/args/0","value":"uninstall"}]`:      "removes the plugins",
		`[{"op":"replace","path":"/spec/template/spec/volumes/0/hostPath/path","value":"/elsewhere"}]`: "has the directory bin elsewhere",
	} {
		c.kubectl("-n", controlplane.SystemNamespace, "patch", "daemonset", "bcsnet-node", "--type=json", "-p", patch)
		code, u, said = c.upgrade()
		if set, _, _ := u.place("DaemonSet", "bcsnet-node"); code != 0 || set >= 0 || !strings.Contains(said, want) {
			t.Errorf("other nodes: exit code %d, no %q: %+v: %s", code, want, u, said)
		}
		if code, _, said := c.command("upgrade", "--yes", "--node-image", nodeImage); code != 2 || !strings.Contains(said, want) {
			t.Errorf("other nodes and their image: exit code %d: %s", code, said)
		}
		c.kubectl("-n", controlplane.SystemNamespace, "delete", "daemonset", "bcsnet-node")
		if code, _, said := c.command("upgrade", "--yes", "--node-image", nodeImage); code != 2 || !strings.Contains(said, "there is no DaemonSet") {
			t.Errorf("no nodes: exit code %d: %s", code, said)
		}
		if code, _, said := c.command("upgrade", "--yes"); code != 0 {
			t.Errorf("no nodes: exit code %d: %s", code, said)
		}
		c.bcsnetctl("install", "--yes", "--node", "--node-image", nodeImage)
	}

	// An uninstallation takes them, too.
	c.bcsnetctl("uninstall", "--yes", "--crds")
	c.kubectl("wait", "--for=delete", "namespace/"+controlplane.SystemNamespace, "--timeout=2m")
	if left := c.objects(); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}

// TestUpgradeStuck finds that an upgrade which does not come up names the pod and the reason.
func TestUpgradeStuck(t *testing.T) {
	controlplane.TakesLong(t)
	t.Parallel()
	c := newCluster(t, controlplane.WithControllerManager())
	api := c.clients()
	// A kubelet that has the logs of pods, and nothing else.
	kubelet := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/containerLogs/bcsnet-system/") && r.URL.Query().Get("previous") == "true" {
			_, _ = io.WriteString(w, "the port 8090 is taken\n") // who asks may be gone
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(kubelet.Close)
	_, text, err := net.SplitHostPort(kubelet.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	c.node(api, "n1", nil, int32(port))
	c.bcsnetctl("install", "--yes", "--image", image, "--node", "--node-image", nodeImage)
	c.publishCA()
	// What is true of a pod, its Deployment shows later.
	stuck := func(what, want string) {
		t.Helper()
		controlplane.EventuallyWithin(t, 3*time.Minute, func() error {
			code, u, said := c.upgrade("--timeout", "2s")
			if code != 124 || u.Done || !strings.Contains(u.Error.Message, want) || !strings.Contains(said, "✗ "+u.Error.Message) {
				return fmt.Errorf("%s: exit code %d, not %q: %+v: %s", what, code, want, u.Error, said)
			}
			return nil
		})
	}
	pods := c.pods(api, 2)
	stuck("nobody schedules", "Deployment bcsnet-controller: 0 of 2 replicas ready after 2s: pod bcsnet-controller-")
	stuck("nobody schedules", "is not scheduled yet")

	c.report(api, pods, corev1.PodStatus{Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/1 nodes are available"},
	}})
	stuck("no place", "is not scheduled: 0/1 nodes are available; and 1 more pod")

	for _, pod := range pods {
		binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: pod.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: "n1"}}
		if err := api.CoreV1().Pods(pod.Namespace).Bind(t.Context(), binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	waits := func(reason, message string) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: "controller", Image: image, State: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message},
		}}
	}
	c.report(api, pods, corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{
		waits("ImagePullBackOff", "no such host"),
	}})
	stuck("no image", "cannot pull its image "+image+": no such host")

	crashed := waits("CrashLoopBackOff", "back-off")
	crashed.RestartCount = 2
	crashed.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error"}
	c.report(api, pods, corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{crashed}})
	stuck("crashes", "crashes with exit code 1, after the line: the port 8090 is taken")

	// Nodes come after the controller.
	c.report(api, pods, corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
		{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()},
	}})
	c.kubectl("-n", controlplane.SystemNamespace, "wait", "--for=condition=Available", "deployment/bcsnet-controller", "--timeout=1m")
	stuck("nodes", "DaemonSet bcsnet-node: 0 of 1 node ready after 2s: pod bcsnet-node-")

	// Where no pod is made at all the Deployment says why.
	c.kubectl("-n", controlplane.SystemNamespace, "create", "quota", "none", "--hard=pods=0")
	c.kubectl("-n", controlplane.SystemNamespace, "wait", "--for=jsonpath={.status.hard.pods}=0", "resourcequota/none", "--timeout=1m")
	for _, pod := range pods {
		c.kubectl("-n", pod.Namespace, "delete", "pod", pod.Name, "--grace-period=0", "--force")
	}
	c.kubectl("-n", controlplane.SystemNamespace, "wait", "--for=condition=ReplicaFailure", "deployment/bcsnet-controller", "--timeout=1m")
	stuck("no pods", "its pods cannot be made: pods \"bcsnet-controller-")
}

// pods returns the pods of the controller once there are so many that have not ended.
func (c *clusterOf) pods(api kubernetes.Interface, n int) (pods []corev1.Pod) {
	c.t.Helper()
	controlplane.Eventually(c.t, func() error {
		list, err := api.CoreV1().Pods(controlplane.SystemNamespace).List(context.WithoutCancel(c.t.Context()),
			metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=bcsnet-controller"})
		if err != nil {
			return err
		}
		if pods = list.Items; len(pods) != n {
			return fmt.Errorf("there are %d pods, not %d", len(pods), n)
		}
		return nil
	})
	return pods
}

// report writes the status of pods, as a kubelet does.
func (c *clusterOf) report(api kubernetes.Interface, pods []corev1.Pod, status corev1.PodStatus) {
	c.t.Helper()
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, pod := range pods {
		_, err := api.CoreV1().Pods(pod.Namespace).Patch(c.t.Context(), pod.Name, "application/merge-patch+json", patch,
			metav1.PatchOptions{}, "status")
		if err != nil {
			c.t.Fatal(err)
		}
	}
}

// publishCA makes the ConfigMap by which an upgrade knows a controller with HTTPS. No controller runs in the pods here.
func (c *clusterOf) publishCA() {
	c.t.Helper()
	c.kubectl("-n", controlplane.SystemNamespace, "create", "configmap", controlplane.ControllerName+"-ca")
}
