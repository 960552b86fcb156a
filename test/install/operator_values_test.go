package install

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// workload is what a Deployment, a DaemonSet and a ServiceAccount have in common with regard to these tests.
type workload struct {
	Metadata metav1.ObjectMeta
	Spec     struct {
		Strategy, UpdateStrategy map[string]any
		Template                 struct {
			Metadata metav1.ObjectMeta
			Spec     struct {
				Affinity   map[string]any
				Containers []struct {
					Image string
					Args  []string
				}
			}
		}
	}
}

// TestOperatorsValues sets what platform teams give every chart: labels, annotations, a registry, affinity, update
// strategies and log levels. The labels that we select by stay.
func TestOperatorsValues(t *testing.T) {
	t.Parallel()
	of := func(prefix, n string) []string {
		return []string{
			"--set", prefix + "podLabels.own=" + n, "--set", prefix + "podAnnotations.note=" + n,
			"--set", prefix + "serviceAccount.annotations.role=" + n, "--set-json", prefix + `affinity={"nodeAffinity":{"n":"` + n + `"}}`,
		}
	}
	args := slices.Concat([]string{
		"--set", "node.enabled=true,ui.enabled=true,ui.tlsSecretName=web,image.tag=v1,imageRegistry=mirror:5000/x",
		"--set", `commonLabels.team=net,podLabels.app\.kubernetes\.io/name=other`,
		"--set", "logLevel=debug,node.logLevel=warn,node.updateStrategy=OnDelete,updateStrategy.maxUnavailable=2",
	}, of("", "c"), of("node.", "n"), of("ui.", "u"))
	out, err := template(t, args...)
	if err != nil {
		t.Fatal(out)
	}
	found := map[string]workload{}
	for document := range strings.SplitSeq(out, "\n---\n") {
		var o struct{ Kind string }
		var w workload
		if yaml.Unmarshal([]byte(document), &o) == nil && slices.Contains([]string{"Deployment", "DaemonSet", "ServiceAccount"}, o.Kind) {
			if err := yaml.Unmarshal([]byte(document), &w); err != nil {
				t.Fatal(err)
			}
			found[o.Kind+" "+w.Metadata.Name] = w
		}
	}
	for kind, n := range map[string]string{"Deployment bcsnet-controller": "c", "DaemonSet bcsnet-node": "n", "Deployment bcsnet-ui": "u"} {
		w := found[kind]
		_, name, _ := strings.Cut(kind, " ")
		pod := w.Spec.Template
		if diff := cmp.Diff(map[string]string{"app.kubernetes.io/name": name, "team": "net", "own": n}, pod.Metadata.Labels); diff != "" {
			t.Errorf("labels of the pods of %s: %s", kind, diff)
		}
		account := found["ServiceAccount "+name].Metadata
		if pod.Metadata.Annotations["note"] != n || w.Metadata.Labels["team"] != "net" || account.Annotations["role"] != n ||
			account.Labels["team"] != "net" {
			t.Errorf("%s: %+v, %+v", kind, w.Metadata, account)
		}
		if got := pod.Spec.Affinity["nodeAffinity"]; !cmp.Equal(got, map[string]any{"n": n}) ||
			n != "n" && pod.Spec.Affinity["podAntiAffinity"] == nil {
			t.Errorf("%s has the affinity %v", kind, pod.Spec.Affinity)
		}
		if got := pod.Spec.Containers[0].Image; !strings.HasPrefix(got, "mirror:5000/x/bcsnet/") {
			t.Errorf("%s has the image %s", kind, got)
		}
	}
	controller, node := found["Deployment bcsnet-controller"].Spec, found["DaemonSet bcsnet-node"].Spec
	if !slices.Contains(controller.Template.Spec.Containers[0].Args, "--log-level=debug") ||
		!slices.Contains(node.Template.Spec.Containers[0].Args, "--log-level=warn") {
		t.Error("the log levels are not there")
	}
	if diff := cmp.Diff(map[string]any{"type": "OnDelete"}, node.UpdateStrategy); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]any{"rollingUpdate": map[string]any{"maxSurge": 0., "maxUnavailable": 2.}}, controller.Strategy); diff != "" {
		t.Error(diff)
	}
}

// TestMonitoringValues changes alerts by their names, and what a scrape does with labels; the rest is as without.
func TestMonitoringValues(t *testing.T) {
	t.Parallel()
	out, err := template(t, "--set", "prometheusRule.enabled=true,serviceMonitor.enabled=true,node.enabled=true",
		"--set", "prometheusRule.alerts.BcsnetConflicts.enabled=false,prometheusRule.alerts.BcsnetDown.for=9m",
		"--set", "prometheusRule.alerts.BcsnetDown.severity=page", "--set-string", "prometheusRule.alerts.BcsnetWatchSilent.expr=up > 7",
		"--set", "serviceMonitor.scrapeTimeout=9s,serviceMonitor.relabelings[0].action=labeldrop,serviceMonitor.metricRelabelings[0].action=keep")
	if err != nil {
		t.Fatal(out)
	}
	plain, err := template(t, "--set", "prometheusRule.enabled=true")
	if err != nil {
		t.Fatal(plain)
	}
	if got, want := strings.Count(out, "- alert:")+strings.Count(out, "alert: Bcsnet"), strings.Count(plain, "alert: Bcsnet"); got < want-1 {
		t.Errorf("%d alerts, want one less than %d", got, want)
	}
	for text, want := range map[string]int{
		"alert: BcsnetConflicts": 0, "for: 9m": 1, "severity: page": 1, "expr: up > 7": 1, "action: labeldrop": 2, "action: keep": 2,
		"scrapeTimeout: \"9s\"": 2, "targetLabel: instance": 1, "relabelings:\n": 2,
	} {
		if got := strings.Count(out, text); got != want {
			t.Errorf("%q is there %d times, want %d", text, got, want)
		}
	}
}

// TestHelmTest runs what helm test runs in its pod, with the rights that it has there: it succeeds if its address is in
// use, and fails otherwise. There is no such pod without a network of ours.
func TestHelmTest(t *testing.T) {
	t.Parallel()
	const only = "--show-only=templates/tests/address.yaml"
	if out, err := template(t, only); err == nil {
		t.Errorf("there is a test without the node side: %s", out)
	}
	out, err := template(t, only, "--set", "node.enabled=true")
	if err != nil {
		t.Fatal(out)
	}
	c := newCluster(t)
	c.helm("install", "bcsnet", c.chart(), "--namespace", controlplane.SystemNamespace, "--create-namespace", "--set", "policies.enabled=false")
	var args []string
	clients, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(out, "\n---\n") {
		var p corev1.Pod
		if err := yaml.UnmarshalStrict([]byte(document), &p); err == nil && p.Kind == "Pod" {
			args = p.Spec.Containers[0].Args
			continue
		}
		apply := c.Kubectl(t.Context(), "apply", "--filename=-")
		apply.Stdin = strings.NewReader(document)
		if said, err := apply.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, said)
		}
	}
	admin, err := c.Admin()
	if err != nil {
		t.Fatal(err)
	}
	lease := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1.GroupVersion.String(), "kind": "BCSNetIP", "metadata": map[string]any{"name": "10.0.0.20"},
		"spec": map[string]any{"pool": "lan", "mask": 24, "gateway": "10.0.0.1"},
		"status": map[string]any{
			"status": "Active", "containerID": "c1", "podName": "bcsnet-test", "podNamespace": "bcsnet-system",
			"updateTime": time.Now().Format(time.RFC3339Nano),
		},
	}}
	run := func(addr string) (int, string, string) {
		all := []string{"--as=system:serviceaccount:bcsnet-system:bcsnet-test"}
		for _, arg := range args {
			all = append(all, strings.ReplaceAll(arg, "$(POD_IP)", addr))
		}
		return c.command(all...)
	}
	if code, out, said := run("10.0.0.20"); code == 0 {
		t.Errorf("nobody has the address, and it succeeds: %s%s", out, said)
	}
	if err := admin.Create(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	if code, out, said := run("10.0.0.20"); code != 0 || !strings.Contains(out, "bcsnet-test") {
		t.Errorf("exit code %d: %s%s", code, out, said)
	}
	if _, err := clients.CoreV1().ServiceAccounts("bcsnet-system").Get(t.Context(), "bcsnet-test", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}
