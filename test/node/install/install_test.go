//go:build linux

package install

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bcsnet/bcsnet/pkg/cni/runstate"
	"github.com/bcsnet/bcsnet/pkg/hosts"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/node/bed"
)

// machines are the bed, one level below the API server's client, which has verbs of the same names.
type machines struct{ *bed.Bed }

// suite is what a test needs of the cluster.
type suite struct {
	machines
	client.Client
	namespace string
}

func newSuite(t *testing.T) *suite {
	t.Helper()
	b := shared.For(t)
	s := &suite{machines: machines{b}, Client: b.Cluster.AdminFor(t)}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := s.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	s.namespace = namespace.Name
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if err := s.Delete(ctx, namespace); err != nil {
			t.Error(err)
		}
		if err := controlplane.WaitFor(ctx, time.Minute, func() error { return s.noPods(ctx) }); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			s.logPods(t)
		}
	})
	controlplane.Eventually(t, func() error { // pods need it
		return s.Get(t.Context(), types.NamespacedName{Namespace: s.namespace, Name: "default"}, &corev1.ServiceAccount{})
	})
	return s
}

func (s *suite) noPods(ctx context.Context) error {
	pods := &corev1.PodList{}
	err := s.List(ctx, pods, client.InNamespace(s.namespace))
	if len(pods.Items) > 0 {
		err = errors.Join(err, fmt.Errorf("%d pods are still there", len(pods.Items)))
	}
	return err
}

// logPods logs what the pods of the DaemonSet say.
func (s *suite) logPods(t *testing.T) {
	t.Helper()
	out, err := s.Kubectl(context.WithoutCancel(t.Context()), nil, "--namespace", controlplane.SystemNamespace, "logs",
		"--selector", "app.kubernetes.io/name=bcsnet-node", "--prefix", "--tail", "-1")
	t.Logf("%s%v", out, err)
}

// create makes a pod on a node.
func (s *suite) create(t *testing.T, name, on string) *corev1.Pod {
	t.Helper()
	pod := bed.Pod(s.namespace, name, on)
	if err := s.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

// ready waits until a pod is ready, and returns its address.
func (s *suite) ready(t *testing.T, pod *corev1.Pod) netip.Addr {
	t.Helper()
	var addrs []netip.Addr
	controlplane.Eventually(t, func() (err error) {
		if err := s.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil {
			return err
		}
		isReady := func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue }
		if !slices.ContainsFunc(pod.Status.Conditions, isReady) {
			return fmt.Errorf("the pod %s is not ready: %+v", pod.Name, pod.Status)
		}
		addrs, err = bed.Addresses(pod)
		return err
	})
	if len(addrs) != 1 {
		t.Fatalf("the pod %s has the addresses %v", pod.Name, addrs)
	}
	return addrs[0]
}

// condition returns the condition of ours that a Node has; nil where there is none.
func (s *suite) condition(t *testing.T, name string) *corev1.NodeCondition {
	t.Helper()
	object := &corev1.Node{}
	if err := s.Get(t.Context(), types.NamespacedName{Name: name}, object); err != nil {
		t.Fatal(err)
	}
	for _, c := range object.Status.Conditions {
		if c.Type == hosts.ConditionType {
			return &c
		}
	}
	return nil
}

// page returns what the pod of the DaemonSet on a node serves, once it has a status and a text in it.
func page(t *testing.T, n *bed.Node, path string, status int, part string) (text string) {
	t.Helper()
	controlplane.Eventually(t, func() error {
		got, body, err := fetch(t, "http://"+n.Address4.Addr().String()+":8093"+path)
		if err == nil && (got != status || !strings.Contains(body, part)) {
			err = fmt.Errorf("%s of %s: %d, %s", path, n.Name, got, body)
		}
		text = body
		return err
	})
	return text
}

func fetch(t *testing.T, at string) (status int, text string, err error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at, http.NoBody)
	if err != nil {
		return 0, "", err
	}
	request.Close = true
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(body), err
}

// TestNodes has one step after the other, as they are about the same nodes.
func TestNodes(t *testing.T) {
	t.Parallel()
	t.Run("installed", nodesAreInstalled)
	t.Run("rolled", aRollFailsNoADD)
	t.Run("another CA", anotherCAFailsNoADD)
	t.Run("booted", aBootInstalls)
	t.Run("uninstalled", nodesAreUninstalled)
}

// nodesAreInstalled checks the nodes as the DaemonSet made them: they were empty, and are Ready, or there would be no
// bed.
func nodesAreInstalled(t *testing.T) {
	s := newSuite(t)
	one, two := s.create(t, "one", "n1"), s.create(t, "two", "n2")
	a, b := s.ready(t, one), s.ready(t, two)
	if answer, err := s.Reach(t.Context(), a, b); err != nil || !strings.HasPrefix(answer, "two at ") {
		t.Errorf("from %s to %s: %q, %v", a, b, answer, err)
	}
	system := &corev1.Namespace{}
	if err := s.Get(t.Context(), types.NamespacedName{Name: metav1.NamespaceSystem}, system); err != nil {
		t.Fatal(err)
	}
	for _, n := range s.Nodes() {
		text, err := os.ReadFile(filepath.Join(n.EtcCNI(), "net.d", "bcsnet.d", "config.json"))
		if err != nil {
			t.Fatal(err)
		}
		var config map[string]any
		if err := json.Unmarshal(text, &config); err != nil {
			t.Fatal(err)
		}
		if config["cluster"] != string(system.UID) || config["node"] != n.Name || config["host"] != n.Address4.Addr().String() ||
			fmt.Sprint(config["replicas"]) != fmt.Sprintf("[https://%s:%d]", s.Gateway4(), bed.AllocatorPort) {
			t.Errorf("%s has %s", n.Name, text)
		}
		page(t, n, "/readyz", http.StatusOK, "ok")
		metrics := page(t, n, "/metrics", http.StatusOK, "bcsnet_node_installed 1")
		for _, line := range []string{
			`bcsnet_node_calls_total{command="ADD",outcome="ok",reason=""} 1`,
			"bcsnet_node_undelivered_records 0", `bcsnet_node_call_duration_seconds_count{command="ADD"} 1`,
		} {
			if !strings.Contains(metrics, "\n"+line+"\n") {
				t.Errorf("the metrics of %s lack %s", n.Name, line)
			}
		}
		controlplane.Eventually(t, func() error {
			if c := s.condition(t, n.Name); c == nil || c.Status != corev1.ConditionTrue {
				return fmt.Errorf("the condition is %+v", c)
			}
			return nil
		})
	}
}

// aRollFailsNoADD starts 20 pods over both nodes while the DaemonSet is rolled, and no call of theirs fails. The
// plugins have another token then: the earlier one ended with the pod that it was bound to.
func aRollFailsNoADD(t *testing.T) {
	s := newSuite(t)
	before, tokens := s.installers(t), map[string]string{}
	for _, n := range s.Nodes() {
		tokens[n.Name] = s.credential(t, n, "token")
	}
	if _, err := s.Kubectl(t.Context(), nil, "--namespace", controlplane.SystemNamespace, "rollout", "restart",
		"daemonset/bcsnet-node"); err != nil {
		t.Fatal(err)
	}
	s.comeAndGo(t, func() error {
		for name, uid := range s.installers(t) {
			if before[name] == uid || uid == "" {
				return fmt.Errorf("the pod of %s is still the one before", name)
			}
		}
		for _, n := range s.Nodes() {
			if s.credential(t, n, "token") == tokens[n.Name] {
				return fmt.Errorf("the token of %s is still the one before", n.Name)
			}
		}
		return nil
	})
}

// anotherCAFailsNoADD has the controller publish another CA: nodes trust both, and no call fails.
func anotherCAFailsNoADD(t *testing.T) {
	s := newSuite(t)
	if _, err := s.Kubectl(t.Context(), nil, "--namespace", controlplane.SystemNamespace, "annotate", "secret",
		"bcsnet-controller-ca", "networkextension.bkbcs.tencent.com/rotate=now"); err != nil {
		t.Fatal(err)
	}
	s.comeAndGo(t, func() error {
		published := &corev1.ConfigMap{}
		key := types.NamespacedName{Namespace: controlplane.SystemNamespace, Name: "bcsnet-controller-ca"}
		if err := s.Get(t.Context(), key, published); err != nil {
			return err
		}
		want := published.Data["ca.crt"]
		if n := strings.Count(want, "BEGIN CERTIFICATE"); n != 2 {
			return fmt.Errorf("%d certificates are published", n)
		}
		for _, n := range s.Nodes() {
			if s.credential(t, n, "ca.crt") != want {
				return fmt.Errorf("%s does not trust what is published", n.Name)
			}
		}
		return nil
	})
}

// credential returns a file of the plugins on a node, which root alone may read.
func (s *suite) credential(t *testing.T, n *bed.Node, name string) string {
	t.Helper()
	path := filepath.Join(n.EtcCNI(), "net.d", "bcsnet.d", name)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("%s of %s: %v, %v", name, n.Name, info.Mode(), err)
	}
	return string(text)
}

// comeAndGo starts 20 pods over both nodes and ends half of them, has as many again come until the condition holds, and
// checks that no call failed.
func (s *suite) comeAndGo(t *testing.T, holds func() error) {
	t.Helper()
	var pods []*corev1.Pod
	for i := range 20 {
		pods = append(pods, s.create(t, fmt.Sprintf("pod-%02d", i), fmt.Sprintf("n%d", 1+i%2)))
	}
	addrs := map[netip.Addr]bool{}
	for _, pod := range pods {
		addrs[s.ready(t, pod)] = true
	}
	if len(addrs) != len(pods) {
		t.Errorf("%d pods have %d addresses", len(pods), len(addrs))
	}
	for _, pod := range pods[:10] {
		if err := s.Delete(t.Context(), pod); err != nil {
			t.Error(err)
		}
	}
	controlplane.EventuallyWithin(t, 90*time.Second, holds)
	for i := range 4 {
		s.ready(t, s.create(t, fmt.Sprintf("later-%d", i), fmt.Sprintf("n%d", 1+i%2)))
	}
	for _, n := range s.Nodes() {
		for _, c := range s.calls(t, n) {
			if strings.HasPrefix(c.Pod, s.namespace+"/") && c.Outcome != runstate.OK {
				t.Errorf("on %s: %+v", n.Name, c)
			}
		}
	}
	events := &corev1.EventList{}
	if err := s.List(t.Context(), events, client.InNamespace(s.namespace)); err != nil {
		t.Fatal(err)
	}
	for i := range events.Items {
		if e := &events.Items[i]; e.Reason == "FailedCreatePodSandBox" {
			t.Errorf("%s: %s", e.InvolvedObject.Name, e.Message)
		}
	}
}

// installers returns the UIDs of the pods of the DaemonSet that are ready, by their nodes.
func (s *suite) installers(t *testing.T) map[string]types.UID {
	t.Helper()
	pods := &corev1.PodList{}
	err := s.List(t.Context(), pods, client.InNamespace(controlplane.SystemNamespace),
		client.MatchingLabels{"app.kubernetes.io/name": "bcsnet-node"})
	if err != nil {
		t.Fatal(err)
	}
	uids := map[string]types.UID{"n1": "", "n2": ""}
	for i := range pods.Items {
		for _, c := range pods.Items[i].Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && pods.Items[i].DeletionTimestamp == nil {
				uids[pods.Items[i].Spec.NodeName] = pods.Items[i].UID
			}
		}
	}
	return uids
}

// calls returns the calls of the plugin on a node.
func (s *suite) calls(t *testing.T, n *bed.Node) (all []runstate.Call) {
	t.Helper()
	r, err := n.Run(t.Context(), bed.Call{Args: []string{"cat", "/run/bcsnet/calls.log"}})
	if err != nil || r.Code != 0 {
		t.Fatalf("%v, %s", err, r.Errors)
	}
	for line := range strings.Lines(string(r.Output)) {
		var c runstate.Call
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}

// aBootInstalls has a node lose its power, and its configuration with it: after the boot the pod writes it again, and
// the node is Ready by that.
func aBootInstalls(t *testing.T) {
	s := newSuite(t)
	n := s.Node("n2")
	if err := n.Kill(); err != nil {
		t.Fatal(err)
	}
	netD := filepath.Join(n.EtcCNI(), "net.d")
	err := errors.Join(os.Remove(filepath.Join(netD, conflist)), os.RemoveAll(filepath.Join(netD, "bcsnet.d")))
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	pod := s.create(t, "after-the-boot", n.Name)
	s.ready(t, pod)
	if err := errors.Join(s.has(n, conflist, true), s.has(n, "bcsnet.d/config.json", true)); err != nil {
		t.Error(err)
	}
}

// nodesAreUninstalled comes last. Nothing goes from a node while it has a pod, which could not end; then all does.
func nodesAreUninstalled(t *testing.T) {
	s := newSuite(t)
	pod := s.create(t, "stays", "n1")
	s.ready(t, pod)
	if err := s.ApplyNodes(t.Context(), "node-uninstall"); err != nil {
		t.Fatal(err)
	}
	n1, n2 := s.Node("n1"), s.Node("n2")
	controlplane.Eventually(t, func() error {
		return errors.Join(s.has(n2, conflist, false), s.has(n2, "bcsnet.d/config.json", false), s.hasProgram(n2, false))
	})
	page(t, n1, "/readyz", http.StatusServiceUnavailable, "1 interfaces of pods on n1 have addresses")
	err := errors.Join(s.has(n1, conflist, true), s.has(n1, "bcsnet.d/config.json", true), s.hasProgram(n1, true))
	if err != nil {
		t.Errorf("while there is a pod: %v", err)
	}
	if err := s.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	controlplane.Eventually(t, func() error {
		set := &appsv1.DaemonSet{}
		key := types.NamespacedName{Namespace: controlplane.SystemNamespace, Name: "bcsnet-node"}
		if err := s.Get(t.Context(), key, set); err != nil {
			return err
		}
		if set.Status.UpdatedNumberScheduled != 2 || set.Status.NumberReady != 2 {
			return fmt.Errorf("the DaemonSet is not done: %+v", set.Status)
		}
		return errors.Join(s.has(n1, conflist, false), s.has(n1, "bcsnet.d/config.json", false), s.hasProgram(n1, false))
	})
	for _, n := range s.Nodes() {
		if c := s.condition(t, n.Name); c != nil {
			t.Errorf("%s has the condition %+v", n.Name, c)
		}
	}
}

// has returns an error unless a node has a file of net.d, or has not.
func (s *suite) has(n *bed.Node, name string, want bool) error {
	return hasFile(filepath.Join(n.EtcCNI(), "net.d", name), want)
}

func (s *suite) hasProgram(n *bed.Node, want bool) error {
	return hasFile(filepath.Join(filepath.Dir(n.EtcCNI()), "opt", "cni", "bin", "bcsnet-ipam"), want)
}

func hasFile(path string, want bool) error {
	if _, err := os.Lstat(path); (err == nil) != want {
		return fmt.Errorf("%s: %w, and wanted there: %t", path, err, want)
	}
	return nil
}
