package http_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// envelope is the answer of bcs-netservice-controller's document, and no field more.
func envelope(t *testing.T, a answer) object {
	t.Helper()
	var e object
	if err := json.Unmarshal(a.Raw, &e); err != nil {
		t.Fatal(err)
	}
	return e
}

// The document's samples, with digits for xx, on a fresh cluster: the controller in this process.
func TestDocumentedCalls(t *testing.T) {
	t.Parallel()
	cp := controlplane.ForTest(t)
	if err := cp.InstallManifests(t.Context()); err != nil {
		t.Fatal(err)
	}
	documentedCalls(t, cp, startFor(t, account(t, cp), nil).URL)
}

// documentedCalls does with a fresh cluster and a controller what the document shows.
func documentedCalls(t *testing.T, cp *controlplane.ControlPlane, url string) {
	t.Helper()
	for _, args := range [][]string{
		{"apply", "-f", samplePool(t)},
		{"wait", "--for=jsonpath={.status.status}=Normal", "bnp/10.0.0.0", "--timeout=60s"},
		{"create", "namespace", "shop"},
	} {
		if out, err := cp.Kubectl(t.Context(), args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	admin := adminFor(t, cp)
	for _, name := range []string{"web-0", "web-1"} {
		if err := admin.Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "main"}}},
		}); err != nil {
			t.Fatal(err)
		}
	}
	call := caller{url}
	request := `{"host":"10.0.0.11","containerID":"xxx","ipAddr":"10.0.0.21","podName":"web-0","podNamespace":"shop"}`
	address := object{
		"ipAddr": "10.0.0.21", "gateway": "10.0.0.1", "mask": 24.0, "pool": "10.0.0.0", "vlan": 0.0, "macAddr": "02:02:0a:00:00:15",
	}
	given := object{"code": 0.0, "message": "", "result": true, "request_id": "id-1", "data": with(address,
		"host", "10.0.0.11", "containerID", "xxx", "podName", "web-0", "podNamespace", "shop", "ifName", "eth0", "ips", []any{address})}
	for range 2 { // the second time nothing changes
		if diff := cmp.Diff(given, envelope(t, call.do(t, "POST", prefix, request, "X-Request-Id", "id-1"))); diff != "" {
			t.Fatalf("POST (-want +got):\n%s", diff)
		}
	}

	var ip v1.BCSNetIP
	if err := admin.Get(t.Context(), client.ObjectKey{Name: "10.0.0.21"}, &ip); err != nil {
		t.Fatal(err)
	}
	want := v1.BCSNetIPStatus{
		Status: "Active", Host: "10.0.0.11", ContainerID: "xxx", PodPrimaryKey: ip.Status.PodPrimaryKey, PodName: "web-0",
		PodNamespace: "shop", AddressNamedBy: "xxx", Given: &v1.GivenSettings{Gateway: "10.0.0.1"}, GivenTo: "xxx",
		IfName: "eth0", PodUID: ip.Status.PodUID, StartedAt: ip.Status.StartedAt, UpdateTime: ip.Status.UpdateTime,
	}
	if diff := cmp.Diff(want, ip.Status); diff != "" || ip.Status.PodUID == "" || ip.Status.UpdateTime == "" {
		t.Errorf("status of the object (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(v1.BCSNetIPSpec{Pool: "10.0.0.0", Mask: 24, Gateway: "10.0.0.1"}, ip.Spec); diff != "" {
		t.Errorf("spec of the object (-want +got):\n%s", diff)
	}

	holder := object{"host": "10.0.0.11", "containerID": "xxx", "podName": "web-0", "podNamespace": "shop"}
	a := call.do(t, "DELETE", prefix, holder, "X-Request-Id", "id-2")
	if diff := cmp.Diff(object{
		"code": 0.0, "message": "", "result": true, "request_id": "id-2", "data": with(holder, "ips", []any{"10.0.0.21"}),
	}, envelope(t, a)); diff != "" {
		t.Errorf("DELETE (-want +got):\n%s", diff)
	}
	a = call.do(t, "DELETE", prefix, holder, "X-Request-Id", "id-3")
	if diff := cmp.Diff(object{"code": 0.0, "message": "didn't find related BCSNetIP instance for container xxx",
		"result":     true,
		"request_id": "id-3", "data": with(holder, "ips", []any{})}, envelope(t, a)); diff != "" {
		t.Errorf("DELETE again (-want +got):\n%s", diff)
	}

	for i, name := range []string{"web-0", "web-1"} {
		call.do(t, "POST", prefix, object{"host": "10.0.0.11", "containerID": "c-" + name, "podName": name,
			"podNamespace": "shop",
			"ipAddr":       []string{"10.0.0.20", "10.0.0.22"}[i]}).done(t)
	}
	a = call.do(t, "DELETE", prefix+"/host/10.0.0.11", nil, "X-Request-Id", "id-4")
	if diff := cmp.Diff(object{
		"code": 0.0, "message": "", "result": true, "request_id": "id-4", "data": []any{"10.0.0.20", "10.0.0.22"},
	}, envelope(t, a)); diff != "" {
		t.Errorf("DELETE of the host (-want +got):\n%s", diff)
	}
	a = call.do(t, "DELETE", prefix+"/host/10.0.0.11", nil, "X-Request-Id", "id-5")
	if diff := cmp.Diff(object{
		"code": 0.0, "message": "host 10.0.0.11 holds no address", "result": true, "request_id": "id-5", "data": []any{},
	}, envelope(t, a)); diff != "" {
		t.Errorf("DELETE of the host again (-want +got):\n%s", diff)
	}

	// An error, and an identity that the caller did not give.
	a = call.do(t, "POST", prefix, strings.Replace(request, "10.0.0.11", "10.0.0.99", 1))
	if diff := cmp.Diff(object{"code": 2.0, "message": "host 10.0.0.99 does not exist in pools", "result": false,
		"data": nil, "request_id": a.RequestID,
		"reason": "HostNotInPool", "hint": "add it with: bcsnetctl pool add-host POOL 10.0.0.99"}, envelope(t, a)); diff != "" {
		t.Errorf("POST for an unknown host (-want +got):\n%s", diff)
	}
	if len(a.RequestID) < 16 {
		t.Errorf("request_id is %q", a.RequestID)
	}
}

// The program as users build and run it.
func TestProgram(t *testing.T) {
	t.Parallel()
	cp := controlplane.ForTest(t)
	if err := cp.InstallManifests(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, err := cp.StartController(t.Context(), controlplane.ControllerOptions{Binary: program(t)})
	if err != nil {
		t.Fatal(err)
	}
	documentedCalls(t, cp, c.URL)
	for _, url := range []string{
		c.URL + "/healthz", c.URL + "/readyz", c.URL + "/metrics", c.HealthURL + "/healthz", c.HealthURL + "/readyz",
		c.MetricsURL + "/metrics",
	} {
		status, text, err := getText(t.Context(), url)
		if err != nil || status != 200 {
			t.Errorf("GET %s: %d, %v", url, status, err)
		}
		if strings.HasSuffix(url, "/metrics") {
			for _, metric := range []string{
				`bcsnet_requests_total{operation="allocate",reason=""} 4`, `bcsnet_requests_total{operation="allocate",reason="HostNotInPool"} 1`,
				`bcsnet_pool_addresses{pool="10.0.0.0",state="free"} 3`, "go_goroutines", "workqueue_depth",
			} {
				if !strings.Contains(text, metric) {
					t.Errorf("GET %s has no %s", url, metric)
				}
			}
		}
	}
	if err := c.Stop(); err != nil {
		t.Error(err)
	}
	log, err := os.ReadFile(c.LogFile)
	if err != nil || !strings.Contains(string(log), "those under way are finished") {
		t.Errorf("the log does not tell of the end: %v\n%s", err, log)
	}
}
