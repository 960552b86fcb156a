//go:build linux

package image

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bcsnet/bcsnet/pkg/cli"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/node/bed"
)

const (
	registry = "registry.example.com/bcsnet"
	version  = "v0.0.1-test"
)

// shared is the bed of the tests here.
var shared bed.Shared

// TestMain gives the node a network that no pod here is in: the controller's are in the node's own.
func TestMain(m *testing.M) {
	os.Exit(shared.Main(m, bed.Setup{Nodes: 1, Prepare: func(n *bed.Node) error {
		return n.WriteConflist("", []byte(`{"cniVersion": "1.1.0", "name": "none", "plugins": [{"type": "loopback"}]}`))
	}}, func(context.Context, *bed.Bed) (func() error, error) { return func() error { return nil }, nil }))
}

// TestImage builds the controller's image, imports it on a node, installs the chart there by Helm and has bcsnetctl
// take over: the controller becomes ready each time, as nobody and with nothing but the ServiceAccount's rights.
func TestImage(t *testing.T) {
	b := shared.For(t)
	root, err := controlplane.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	node := b.Nodes()[0]
	imported(t, root, node)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := b.Cluster.WriteKubeconfig(kubeconfig); err != nil {
		t.Fatal(err)
	}
	server, err := url.Parse(b.Cluster.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	// The bed has no proxy for Services.
	helm := exec.Command(filepath.Join(root, "bin", "tools", "helm"), "install", "bcsnet", filepath.Join(root, "charts", "bcsnet"),
		"--namespace", controlplane.SystemNamespace, "--create-namespace", "--wait", "--timeout", "3m",
		"--set", "image.repository="+registry+"/bcsnet-controller", "--set", "image.tag="+version,
		"--set", "image.pullPolicy=Never", "--set", "replicas=1",
		"--set", "apiServer.host="+server.Hostname(), "--set-string", "apiServer.port="+server.Port())
	helm.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "HOME="+t.TempDir())
	if out, err := helm.CombinedOutput(); err != nil {
		t.Fatalf("helm install: %v: %s\n%s", err, out, describe(t, b))
	}
	serves(t, node.Address4.Addr())
	asNobody(t, node)

	var out, said strings.Builder
	code := cli.Main([]string{"bcsnetctl", "--kubeconfig", kubeconfig, "install", "--yes", "--wait", "--timeout", "3m"}, version,
		genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &said})
	if code != 0 || !strings.Contains(said.String(), "Helm release bcsnet is forgotten") ||
		!strings.Contains(said.String(), "Deployment bcsnet-controller is ready") {
		t.Errorf("bcsnetctl install: exit code %d: %s", code, &said)
	}
	serves(t, node.Address4.Addr())
	deployment := &appsv1.Deployment{}
	admin, err := b.Cluster.Admin()
	if err == nil {
		err = admin.Get(t.Context(), types.NamespacedName{Namespace: controlplane.SystemNamespace, Name: "bcsnet-controller"}, deployment)
	}
	if err != nil || deployment.Status.ReadyReplicas != 1 {
		t.Errorf("the Deployment has %d ready replicas: %v", deployment.Status.ReadyReplicas, err)
	}
}

// imported builds the image from these sources and gives it to the node's containerd.
func imported(t *testing.T, root string, node *bed.Node) {
	t.Helper()
	dir := t.TempDir()
	build := exec.Command("go", "run", "./hack/image", "-version", version, "-registry", registry, "-o", dir, "bcsnet-controller")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the image: %v: %s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(dir, "bcsnet-controller.tar"))
	if err != nil {
		t.Fatal(err)
	}
	// The node sees its own directory alone.
	archive := filepath.Join(node.Dir, "bcsnet-controller.tar")
	if err := os.WriteFile(archive, text, 0o644); err != nil {
		t.Fatal(err)
	}
	r, err := node.Run(t.Context(), bed.Call{Args: []string{
		filepath.Join(node.Bin, "ctr"), "-n", "k8s.io", "images", "import", archive,
	}})
	if err != nil || r.Code != 0 {
		t.Fatalf("import the image: %v: exit code %d: %s", err, r.Code, r.Errors)
	}
}

// serves checks that the controller answers at the node's address, and that it has read the objects.
func serves(t *testing.T, at netip.Addr) {
	t.Helper()
	for port, want := range map[uint16]string{8092: "ok", 8091: "bcsnet_index_addresses 0"} {
		path := map[uint16]string{8092: "/readyz", 8091: "/metrics"}[port]
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
			fmt.Sprintf("http://%s%s", netip.AddrPortFrom(at, port), path), http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK || !strings.Contains(string(text), want) {
			t.Errorf("%s: %s: %v, want %q", path, response.Status, err, want)
		}
	}
}

// asNobody finds the controller among the processes of the node, and checks whose it is.
func asNobody(t *testing.T, node *bed.Node) {
	t.Helper()
	r, err := node.Run(t.Context(), bed.Call{Args: []string{"/bin/sh", "-c",
		`for p in /proc/[0-9]*; do [ "$(tr '\0' ' ' <$p/cmdline 2>/dev/null | cut -d' ' -f1)" = /bcsnet-controller ] && grep -E '^(Uid|CapEff|Seccomp):' $p/status; done; true`,
	}})
	if err != nil || r.Code != 0 {
		t.Fatalf("look for the process: %v: exit code %d: %s", err, r.Code, r.Errors)
	}
	got := strings.Join(strings.Fields(string(r.Output)), " ")
	if want := "Uid: 65532 65532 65532 65532 CapEff: 0000000000000000 Seccomp: 2"; got != want {
		t.Errorf("the process has %q, want %q", got, want)
	}
}

// describe returns what the kubelet says of the pods.
func describe(t *testing.T, b *bed.Bed) string {
	t.Helper()
	admin, err := b.Cluster.Admin()
	if err != nil {
		return err.Error()
	}
	pods := &corev1.PodList{}
	if err := admin.List(context.WithoutCancel(t.Context()), pods, client.InNamespace(controlplane.SystemNamespace)); err != nil {
		return err.Error()
	}
	out, _ := b.Cluster.Kubectl(context.WithoutCancel(t.Context()), "-n", controlplane.SystemNamespace, "describe", "pods").Output()
	return fmt.Sprintf("%d pods\n%s", len(pods.Items), out)
}
