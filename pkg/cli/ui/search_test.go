package ui

import (
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// waiting is a pod of the namespace default that asks for an address.
func waiting(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "c", Image: "i"}},
	}}
}

// says reports texts that a page should have and does not, or has after a minus and should not.
func says(t *testing.T, path, text string, want ...string) {
	t.Helper()
	for _, one := range want {
		if part, not := strings.CutPrefix(one, "-"); strings.Contains(text, part) == not {
			t.Errorf("%s: want %q in\n%s", path, one, text)
		}
	}
}

// TestSearchPod: a pod without an address is found by its name, with and without its namespace, also if the name of
// another one with an address begins like it. A namespace is offered only if it exists.
func TestSearchPod(t *testing.T) {
	s := entered(t)
	s.make(t, pool("blue", "10.1.0.0", 24, 253, 1, 0), waiting("late-2"),
		held("10.1.0.20", "blue", "10.0.0.11", "default/late-22"))
	const nothing = "Nothing has to do with that"
	for path, want := range map[string][]string{
		"/search?q=default/late-2":     {"Why has a pod", `value="default/late-2"`, "it is on no node yet"},
		"/search?q=late-2":             {"Why has a pod", `value="default/late-2"`},
		"/search?q=pod/late-2":         {"Why has a pod", `value="default/late-2"`},
		"/search?q=late-22":            {"10.1.0.20", "-Why has a pod"},
		"/search?q=late":               {"10.1.0.20", "-Why has a pod"},
		"/search?q=default/none":       {nothing, "-/namespace/"},
		"/search?q=10.0.0.333":         {nothing, "-/namespace/"},
		"/search?q=kube-system":        {`href="/namespace/kube-system"`, "-" + nothing},
		"/search?q=no-namespace":       {nothing, "-/namespace/"},
		"/search?q=%3Cb%3Ex%3C/b%3E/y": {nothing, "-/namespace/"},
		"/why?pod=late-2":              {`value="default/late-2"`, "it is on no node yet"},
	} {
		status, text := s.get(t, s.viewer, path)
		if status != http.StatusOK {
			t.Errorf("%s: %d", path, status)
		}
		says(t, path, text, want...)
	}
	for path, want := range map[string][]string{
		"/why?pod=default/lat-2&node=node-8": {"there is no pod lat-2", `value="default/lat-2"`, `value="node-8"`},
		"/why?pod=late-2&node=node-8":        {"no node node-8", `value="late-2"`, `value="node-8"`},
		"/why?pod=a/b/c":                     {"is not NAME or NAMESPACE/NAME", `value="a/b/c"`},
	} {
		status, text := s.get(t, s.viewer, path)
		if status != http.StatusNotFound {
			t.Errorf("%s: %d", path, status)
		}
		says(t, path, text, append(want, `<form class="ask">`)...)
	}
}

// TestWhyFull: the explanation of a full pool counts what is held for pods that are gone in that pool, and not in
// others of the host.
func TestWhyFull(t *testing.T) {
	s := entered(t)
	tiny, green := pool("tiny", "10.3.0.0", 30, 1, 1, 0), pool("green", "10.4.0.0", 24, 253, 1, 0)
	green.Spec.Namespaces = []string{"elsewhere"}
	vm := held("10.3.0.2", "tiny", "10.0.0.11", "/")
	vm.Status.Owner, vm.Status.PodName, vm.Status.PodNamespace, vm.Status.PodUID = "vm-1", "", "", ""
	s.make(t, node("node-1", "10.0.0.11"), tiny, green, vm, held("10.4.0.20", "green", "10.0.0.12", "elsewhere/job-1"),
		waiting("late-2"))
	const path = "/why?pod=default/late-2&node=node-1"
	_, text := s.get(t, s.viewer, path)
	says(t, path, text, "pool tiny", "-pods that are gone", "-release-host")
	add := strings.Index(text, "bcsnetctl pool add-ip tiny RANGE<")
	list := strings.Index(text, "bcsnetctl ip list --pool tiny<")
	if add < 0 || list < add {
		t.Errorf("it advises add-ip at %d, ip list at %d:\n%s", add, list, text)
	}
	s.drop(t, vm)
	s.make(t, held("10.3.0.2", "tiny", "10.0.0.12", "default/gone-1"))
	_, text = s.get(t, s.viewer, path)
	says(t, path, text, "1 active (1 for pods that are gone)", "bcsnetctl doctor --only leaks<")
}

// TestHealthy: the commands for an address of a pod that exists serve to free it; for one of a pod that is gone they
// are what to do next.
func TestHealthy(t *testing.T) {
	s := entered(t)
	pod := waiting("web-0")
	s.make(t, pool("blue", "10.1.0.0", 24, 253, 2, 0), pod, held("10.1.0.21", "blue", "10.0.0.11", "default/gone-0"))
	lives := held("10.1.0.20", "blue", "10.0.0.11", "default/web-0")
	lives.Status.PodUID = string(pod.UID)
	s.make(t, lives)
	for path, want := range map[string][]string{
		"/ip/10.1.0.20": {"<h2>To free it</h2>", "-<h2>Next</h2>", "kubectl -n default delete pod web-0"},
		"/ip/10.1.0.21": {"-<h2>To free it</h2>", "<h2>Next</h2>", "bcsnetctl ip release 10.1.0.21"},
	} {
		_, text := s.get(t, s.viewer, path)
		says(t, path, text, want...)
	}
}

// TestOverviewColumns: state and free addresses are the first columns after the name, which narrow screens show.
func TestOverviewColumns(t *testing.T) {
	s := entered(t)
	s.make(t, pool("blue", "10.1.0.0", 24, 253, 1, 0))
	_, text := s.get(t, s.viewer, "/")
	_, head, _ := strings.Cut(text, "<thead>")
	at := -1
	for _, column := range []string{">Pool<", ">State ▾", ">Free<", ">Subnet<", ">Used<"} {
		next := strings.Index(head, column)
		if next < at || next < 0 {
			t.Errorf("column %s is at %d, the one before at %d:\n%s", column, next, at, head)
		}
		at = next
	}
}

// TestPrint: only screens have the dark colours, and printed tables are not cut off.
func TestPrint(t *testing.T) {
	s := entered(t)
	_, text := s.get(t, s.viewer, "/static/ui.css")
	_, printed, _ := strings.Cut(text, "@media print")
	says(t, "ui.css", text, "@media screen and (prefers-color-scheme: dark)", "-@media (prefers-color-scheme: dark)")
	says(t, "print", printed, ".wide { overflow: visible; }", "color-scheme: light;")
}
