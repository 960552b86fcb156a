package cli

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
)

// command prepares a call of the program, as the operator unless the arguments say otherwise.
func (f *fixture) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bcsnetctl", args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+f.kubeconfigs["OPERATOR"], "LANG=C.UTF-8", "GORACE=atexit_sleep_ms=0")
	return cmd
}

// call runs the program and returns both streams.
func (f *fixture) call(t *testing.T, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, errOut bytes.Buffer
	cmd := f.command(t, args...)
	cmd.Stdout, cmd.Stderr = &out, &errOut
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errOut.String()
}

// proxy stands between the program and the API server. handle sees every request first; it passes it on
// with next, or answers itself.
func proxy(t *testing.T, handle func(w http.ResponseWriter, r *http.Request, next http.Handler)) string {
	t.Helper()
	target, err := url.Parse(cluster.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	next := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target); r.Out.Header.Del("Authorization") },
		Transport:     httpClient(t, cluster.Config).Transport,
		FlushInterval: -1,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handle(w, r, next) }))
	t.Cleanup(server.Close)
	return server.URL
}

// havePool makes the pool that these tests are about the only one.
func (f *fixture) havePool(t *testing.T) *v1.BCSNetPool {
	t.Helper()
	if err := f.wipe(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := &v1.BCSNetPool{Spec: v1.BCSNetPoolSpec{
		Net: "10.1.0.0", Mask: 24, Gateway: "10.1.0.1", Hosts: []string{"10.0.0.11"},
		AvailableIPs: []string{"10.1.0.20-10.1.0.99"},
	}}
	p.Name = "blue"
	if err := f.client.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	return p
}

// haveLease makes an address of that pool Active.
func (f *fixture) haveLease(t *testing.T, address, host, owner string) {
	t.Helper()
	err := f.lease(t.Context(), nil, []string{address, "blue", host, owner})
	if err != nil {
		t.Fatal(err)
	}
}

// haveReadyNode makes a node that is Ready.
func (f *fixture) haveReadyNode(t *testing.T, name, host string) {
	t.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := f.client.Create(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: host}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	if err := f.client.Status().Update(t.Context(), n); err != nil {
		t.Fatal(err)
	}
}

func contains(t *testing.T, text string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}
