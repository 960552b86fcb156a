package floatingip_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	galaxyrest "github.com/bcsnet/bcsnet/pkg/compat/galaxy/rest"
	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/plugin"
)

// base is the server in galaxy's document.
const base = "http://192.168.99.100:32761"

// example is a request of the document: its line, and what the line sends.
type example struct{ line, method, path, body string }

// documents are the examples, in their order.
var documents = []example{
	{
		`curl "http://192.168.99.100:32761/v1/ip?namespace=default&appName=nginx-deployment&appType=tapp"`,
		http.MethodGet, "/v1/ip?namespace=default&appName=nginx-deployment&appType=tapp", "",
	},
	{
		`curl -v -H 'Content-type: application/json' -d '{"ips":[{"ip":"10.0.70.169", "namespace":"default", "appName":"nginx-deployment", "appType":"tapp", "podName": "nginx-deployment-1"}]}' "http://192.168.99.100:32761/v1/ip"`,
		http.MethodPost,
		"/v1/ip", `{"ips":[{"ip":"10.0.70.169", "namespace":"default", "appName":"nginx-deployment", "appType":"tapp", "podName": "nginx-deployment-1"}]}`,
	},
}

// send sends an example with its own line where there is a shell and curl, else what the line would send.
func (e example) send(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("curl"); err != nil {
		_, text := rest(t, e.method, e.path, e.body)
		return text
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(e.line, base, controller.URL))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v: %s", e.line, err, &stderr)
	}
	return string(out)
}

// rest sends a request of the REST API.
func rest(t *testing.T, method, path, body string) (int, string) {
	t.Helper()
	status, text, err := restAt(t.Context(), controller.URL, method, path, body)
	if err != nil {
		t.Fatal(err)
	}
	return status, text
}

// restAt is rest for any replica, and for other goroutines than the test's.
func restAt(ctx context.Context, url, method, path, body string) (int, string, error) {
	r, err := http.NewRequestWithContext(ctx, method, url+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := caller.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

// answers sends a request whose answer is known but for its blanks.
func answers(t *testing.T, method, path, body string, status int, want string) {
	t.Helper()
	got, text := rest(t, method, path, body)
	var one bytes.Buffer
	if err := json.Compact(&one, []byte(text)); err != nil || got != status || one.String() != want {
		t.Errorf("%s %s %s\n got %d %s (%v)\nwant %d %s", method, path, body, got, &one, err, status, want)
	}
}

// held lists addresses: each with its pod, app, policy and status, and a star where it can be released.
func held(t *testing.T, query string) (lines []string) {
	t.Helper()
	status, text := rest(t, http.MethodGet, "/v1/ip?"+query, "")
	var list galaxyrest.ListIPResponse
	if err := json.Unmarshal([]byte(text), &list); err != nil || status != http.StatusOK {
		t.Fatalf("%d %s: %v", status, text, err)
	}
	for _, f := range list.Content {
		line := fmt.Sprintf("%s pool=%s %s %s/%s %s policy=%d %s", f.IP, f.PoolName, f.AppType, f.Namespace, f.AppName,
			f.PodName, f.Policy, f.Status)
		if f.Releasable {
			line += " *"
		}
		lines = append(lines, line)
	}
	return lines
}

func shows(t *testing.T, query string, want ...string) {
	t.Helper()
	controlplane.Eventually(t, func() error {
		if diff := cmp.Diff(want, held(t, query)); diff != "" {
			return fmt.Errorf("GET /v1/ip?%s (-want +got):\n%s", query, diff)
		}
		return nil
	})
}

// restPool makes a pool for the hosts of the document.
func restPool(t *testing.T, name, subnet string, addresses ...string) {
	t.Helper()
	o := &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.BCSNetPoolSpec{
		Net: subnet + ".0", Mask: 24, Gateway: subnet + ".1", HostSubnets: []string{"10.0.0.0/16"}, AvailableIPs: addresses,
	}}
	if err := admin.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		kubectlCleanup(t, "delete", "bnp/"+name, "--timeout=60s")
	})
	controlplane.Eventually(t, func() error {
		if _, text := rest(t, http.MethodGet, wire.Prefix+"/pool/"+name, ""); !strings.Contains(text, subnet) {
			return fmt.Errorf("the controller does not know pool %s yet: %s", name, text)
		}
		return nil
	})
}

func kubectlCleanup(t *testing.T, args ...string) {
	t.Helper()
	if out, err := cluster.Kubectl(context.Background(), args...).CombinedOutput(); err != nil {
		t.Errorf("kubectl %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// restPod makes a pod, on no node, and gives it an address.
func restPod(t *testing.T, name, address string, annotations map[string]string, owner *metav1.OwnerReference) {
	t.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Annotations: annotations},
		Spec:       corev1.PodSpec{SchedulerName: "nobody", Containers: []corev1.Container{{Name: "c", Image: "c"}}},
	}
	if owner != nil {
		p.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	controlplane.Eventually(t, func() error { return admin.Create(t.Context(), p) }) // its ServiceAccount comes by itself
	controlplane.Eventually(t, func() error {
		a, err := plugin.Ask(t.Context(), caller, http.MethodPost, controller.URL, wire.AllocateRequest{
			Host: "10.0.0.11", ContainerID: "sandbox-" + name, PodName: name, PodNamespace: "default", IPAddr: address,
		})
		if err == nil && a.Code != 0 {
			err = fmt.Errorf("pod %s: %+v", name, a)
		}
		return err
	})
}

// endPod deletes a pod as a kubelet does: its sandbox goes first.
func endPod(t *testing.T, name string) {
	t.Helper()
	if a := ask(t, http.MethodDelete, "10.0.0.11", name); a.Code != 0 {
		t.Fatalf("%+v", a)
	}
	kubectl(t, "delete", "pod/"+name, "--grace-period=0", "--force")
}

var tappKind = schema.GroupVersionKind{Group: "apps.tkestack.io", Version: "v1", Kind: "TApp"}

// TestExamples sends the request examples of galaxy's document, with curl's own lines, for the app that they are about:
// a TApp that was deleted and whose addresses are never released. They are answered as the document shows.
func TestExamples(t *testing.T) {
	prepare(t)
	kubectl(t, "apply", "-f", filepath.Join("testdata", "tapp-crd.yaml"))
	kubectl(t, "wait", "--for=condition=Established", "crd/tapps.apps.tkestack.io", "--timeout=60s")
	t.Cleanup(func() { kubectlCleanup(t, "delete", "crd/tapps.apps.tkestack.io", "--timeout=60s") })
	app := &unstructured.Unstructured{}
	app.SetGroupVersionKind(tappKind)
	app.SetNamespace("default")
	app.SetName("nginx-deployment")
	app.Object["spec"] = map[string]any{"replicas": int64(3)}
	if err := admin.Create(t.Context(), app); err != nil {
		t.Fatal(err)
	}
	restPool(t, "rest", "10.0.70", "10.0.70.33", "10.0.70.142", "10.0.70.169")
	never := map[string]string{"k8s.v1.cni.galaxy.io/release-policy": "never"}
	addresses := []string{"10.0.70.33", "10.0.70.169", "10.0.70.142"}
	for i, address := range addresses {
		restPod(t, fmt.Sprintf("nginx-deployment-%d", i), address, never, metav1.NewControllerRef(app, tappKind))
	}
	shows(t, "appType=tapp&sort=podname",
		"10.0.70.33 pool= tapp default/nginx-deployment nginx-deployment-0 policy=2 Pending",
		"10.0.70.169 pool= tapp default/nginx-deployment nginx-deployment-1 policy=2 Pending",
		"10.0.70.142 pool= tapp default/nginx-deployment nginx-deployment-2 policy=2 Pending")
	if got := documents[1].send(t); !strings.Contains(got, `"code": 400`) ||
		!strings.Contains(got, `"message": "10.0.70.169 is not releasable"`) {
		t.Errorf("while its pod is there: %s", got)
	}
	for i := range addresses {
		endPod(t, fmt.Sprintf("nginx-deployment-%d", i))
	}
	kubectl(t, "delete", "tapp/nginx-deployment", "--timeout=60s")
	kubectl(t, "wait", "--for=create", "bnc/tapp-nginx-deployment", "--timeout=60s")
	kubectl(t, "wait", "--for=jsonpath={.status.usage}=0/3", "bnc/tapp-nginx-deployment", "--timeout=60s")
	shows(
		t, "keyword=nginx-deployment-1",
		"10.0.70.169 pool= tapp default/nginx-deployment nginx-deployment-1 policy=2 Deleted *")

	want, err := os.ReadFile(filepath.Join("testdata", "list.json"))
	if err != nil {
		t.Fatal(err)
	}
	stamp := regexp.MustCompile(`"updateTime": "[-0-9T:]+\.[0-9]+Z"`)
	mask := func(s string) string { return strings.TrimSpace(stamp.ReplaceAllString(s, `"updateTime": ""`)) }
	if diff := cmp.Diff(mask(string(want)), mask(documents[0].send(t))); diff != "" {
		t.Errorf("%s (-document +answer):\n%s", documents[0].line, diff)
	}
	if got := documents[1].send(t); got != "{\n \"code\": 200,\n \"message\": \"\"\n}\n" {
		t.Errorf("%s\n%s", documents[1].line, got)
	}
	answers(t, http.MethodPost, "/v1/ip", documents[1].body, http.StatusAccepted,
		`{"code":202,"message":"Unreleased ips have been released or allocated to other pods, or are not within valid range","unreleased":["10.0.70.169"]}`)
	shows(t, "appName=nginx-deployment&sort=ip-numeric",
		"10.0.70.33 pool= tapp default/nginx-deployment nginx-deployment-0 policy=2 Deleted *",
		"10.0.70.142 pool= tapp default/nginx-deployment nginx-deployment-2 policy=2 Deleted *")

	// What a list shows can be sent as it is; what else is in the request is told apart.
	_, text := rest(t, http.MethodGet, "/v1/ip?appName=nginx-deployment", "")
	var page struct {
		Content []map[string]any `json:"content"`
	}
	if err := json.Unmarshal([]byte(text), &page); err != nil {
		t.Fatal(err)
	}
	page.Content = append(page.Content, map[string]any{"ip": "10.0.70.169"},
		map[string]any{"ip": "192.0.2.1", "podName": "x"})
	body, err := json.Marshal(map[string]any{"ips": page.Content})
	if err != nil {
		t.Fatal(err)
	}
	answers(t, http.MethodPost, "/v1/ip", string(body), http.StatusAccepted,
		`{"code":202,"message":"Unreleased ips have been released or allocated to other pods, or are not within valid range","unreleased":["10.0.70.169","192.0.2.1"]}`)
	answers(t, http.MethodGet, "/v1/ip?appName=nginx-deployment&appType=tapp", "", http.StatusOK,
		`{"last":true,"totalElements":0,"totalPages":0,"first":true,"numberOfElements":0,"size":10,"number":0,"content":[]}`)
}

// TestSharedPools: a pool is made, takes its addresses beforehand, gives them to the pods that name it, and keeps them
// over its own end.
func TestSharedPools(t *testing.T) {
	prepare(t)
	restPool(t, "rest", "10.0.71", "10.0.71.2-10.0.71.5")
	const name, path = "蓝 / green", "/v1/pool/%E8%93%9D%20%2F%20green"
	all := "poolName=%E8%93%9D%20%2F%20green&sort=ip"
	set := func(size int, ahead bool) string {
		return fmt.Sprintf(`{"name":%q,"size":%d,"preAllocateIP":%t}`, name, size, ahead)
	}
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		answers(t, method, path, "", http.StatusNotFound, `{"code":404,"message":"pool not found"}`)
		for _, empty := range []string{"/v1/pool/", "/v1/pool/%20"} {
			answers(t, method, empty, "", http.StatusBadRequest, `{"code":400,"message":"pool name is empty"}`)
		}
	}
	answers(t, http.MethodPost, "/v1/pool", `{"size":1,"preAllocateIP":true}`, http.StatusBadRequest,
		`{"code":400,"message":"pool name is empty"}`)
	answers(t, http.MethodPost, "/v1/pool", set(-1, false), http.StatusBadRequest,
		`{"code":400,"message":"size -1 of pool 蓝 / green is not from 0 to 65536"}`)

	answers(t, http.MethodPost, "/v1/pool", set(2, false), http.StatusOK, `{"code":200,"message":"","realPoolSize":0}`)
	answers(t, http.MethodPost, "/v1/pool", set(2, true), http.StatusOK, `{"code":200,"message":"","realPoolSize":2}`)
	answers(t, http.MethodGet, path, "", http.StatusOK,
		`{"code":200,"message":"","pool":{"name":"蓝 / green","size":2,"preAllocateIP":true}}`)
	answers(t, http.MethodPost, "/v1/pool", set(9, true), http.StatusAccepted,
		`{"code":202,"message":"No enough IPs","realPoolSize":4}`)
	// Nothing is taken from it by making it smaller.
	answers(t, http.MethodPost, "/v1/pool", set(1, false), http.StatusOK, `{"code":200,"message":"","realPoolSize":4}`)
	var kept []string
	for i := 2; i <= 5; i++ {
		kept = append(kept, fmt.Sprintf("10.0.71.%d pool=蓝 / green  / policy=2  *", i))
	}
	trimmed := func(lines []string) []string {
		for i, l := range lines {
			lines[i] = strings.Join(strings.Fields(l), " ")
		}
		return lines
	}
	if diff := cmp.Diff(trimmed(kept), trimmed(held(t, all))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	restPod(t, "blue", "10.0.71.3", map[string]string{"tke.cloud.tencent.com/eni-ip-pool": name}, nil)
	shows(t, all+"&podName=blue", "10.0.71.3 pool=蓝 / green pod default/blue blue policy=2 Pending")
	release := func(addresses ...string) string {
		for i, a := range addresses {
			addresses[i] = fmt.Sprintf(`{"ip":%q,"poolName":%q}`, a, name)
		}
		return `{"ips":[` + strings.Join(addresses, ",") + `]}`
	}
	answers(t, http.MethodPost, "/v1/ip", release("10.0.71.2")[:len(release("10.0.71.2"))-2]+
		`,{"ip":"10.0.71.3","namespace":"default","appName":"blue","appType":"pod","podName":"blue","poolName":"蓝 / green"}]}`,
		http.StatusBadRequest, `{"code":400,"message":"10.0.71.3 is not releasable"}`)

	answers(t, http.MethodDelete, path, "", http.StatusOK, `{"code":200,"message":""}`)
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		answers(t, method, path, "", http.StatusNotFound, `{"code":404,"message":"pool not found"}`)
	}
	endPod(t, "blue")
	shows(t, all+"&podName=blue", "10.0.71.3 pool=蓝 / green  default/ blue policy=2 Deleted *")
	if n := len(held(t, all)); n != 4 {
		t.Errorf("the pool keeps %d addresses, want 4", n)
	}
	answers(t, http.MethodPost, "/v1/pool", set(4, true), http.StatusOK, `{"code":200,"message":"","realPoolSize":4}`)
	answers(t, http.MethodDelete, path, "", http.StatusOK, `{"code":200,"message":""}`)
	answers(t, http.MethodPost, "/v1/ip", release("10.0.71.2", "10.0.71.3", "10.0.71.4", "10.0.71.5", "10.0.71.5"),
		http.StatusOK, `{"code":200,"message":""}`)
	if lines := held(t, all); len(lines) != 0 {
		t.Errorf("the pool has %q", lines)
	}
	controlplane.Eventually(t, func() error { // the claim goes with its last address
		var claims v1.BCSNetIPClaimList
		if err := admin.List(t.Context(), &claims, client.InNamespace("bcsnet-system")); err != nil || len(claims.Items) > 0 {
			return fmt.Errorf("%d claims, %v", len(claims.Items), err) //nolint:errorlint // may be nil
		}
		return nil
	})

	// A pool that pods alone have named is there, too, and is as large as what it has.
	restPod(t, "green", "10.0.71.4", map[string]string{"tke.cloud.tencent.com/eni-ip-pool": "payments"}, nil)
	controlplane.Eventually(t, func() error {
		if status, text := rest(t, http.MethodGet, "/v1/pool/payments", ""); status != http.StatusOK ||
			!strings.Contains(text, `"size": 1,`) {
			return fmt.Errorf("%d %s", status, text)
		}
		return nil
	})
	endPod(t, "green")
	shows(t, "poolName=payments", "10.0.71.4 pool=payments  default/ green policy=2 Deleted *")
	answers(
		t, http.MethodPost,
		"/v1/ip", `{"ips":[{"ip":"10.0.71.4","poolName":"payments","namespace":"default","podName":"green"}]}`, http.StatusOK, `{"code":200,"message":""}`)
}

// TestReplicas: a follower does the same, and of many that release the same addresses each address has one.
func TestReplicas(t *testing.T) {
	prepare(t)
	other, err := cluster.StartController(t.Context(), controlplane.ControllerOptions{Name: "follower"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := other.Stop(); err != nil {
			t.Error(err)
		}
	})
	restPool(t, "rest", "10.0.72", "10.0.72.2-10.0.72.9")
	at := func(url, method, path, body string) (status int, out galaxyrest.ReleaseIPResponse) {
		status, text, err := restAt(t.Context(), url, method, path, body)
		if err == nil {
			err = json.Unmarshal([]byte(text), &out)
		}
		if err != nil {
			t.Errorf("%s %s: %d %s: %v", method, path, status, text, err)
		}
		return status, out
	}
	if status, text, err := restAt(t.Context(), other.URL, http.MethodPost, "/v1/pool",
		`{"name":"gold","size":8,"preAllocateIP":true}`); status != http.StatusOK || !strings.Contains(text, `"realPoolSize": 8`) {
		t.Fatalf("%d %s, %v", status, text, err)
	}
	var asks []string
	for i := 2; i <= 9; i++ {
		asks = append(asks, fmt.Sprintf(`{"ip":"10.0.72.%d","poolName":"gold"}`, i))
	}
	answers(t, http.MethodDelete, "/v1/pool/gold", "", http.StatusOK, `{"code":200,"message":""}`)
	if status, _ := at(other.URL, http.MethodGet, "/v1/pool/gold", ""); status != http.StatusNotFound {
		t.Errorf("a pool that was deleted: %d", status)
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	released := 0
	for i := range 6 {
		all.Go(func() {
			url := []string{controller.URL, other.URL}[i%2]
			status, out := at(url, http.MethodPost, "/v1/ip", `{"ips":[`+strings.Join(asks, ",")+`]}`)
			mu.Lock()
			defer mu.Unlock()
			if released += len(asks) - len(out.Unreleased); (status == http.StatusOK) != (len(out.Unreleased) == 0) {
				t.Errorf("%d %+v", status, out)
			}
		})
	}
	all.Wait()
	if released != len(asks) {
		t.Errorf("%d addresses were released %d times", len(asks), released)
	}
	shows(t, "poolName=gold")
}
