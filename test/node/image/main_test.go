//go:build linux

package image

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/bcsnet/bcsnet/pkg/cli"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/node/bed"
)

// version is the tag of the images.
const version = "v0.0.1-test"

// shared is the bed of the tests here.
var shared bed.Shared

// TestMain gives the nodes a network until the DaemonSet does, as a node is Ready by one. No pod is in it.
func TestMain(m *testing.M) {
	os.Exit(shared.Main(m, bed.Setup{Nodes: 2, Prepare: func(n *bed.Node) error {
		return n.WriteConflist("", []byte(`{"cniVersion": "1.1.0", "name": "none", "plugins": [{"type": "loopback"}]}`))
	}}, func(context.Context, *bed.Bed) (func() error, error) { return func() error { return nil }, nil }))
}

// site is a cluster as somebody has it who installs bcsnet: with a kubeconfig, Helm, kubectl and bcsnetctl.
type site struct {
	*bed.Bed
	t                *testing.T
	root, kubeconfig string
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{Bed: shared.For(t), t: t, kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	root, err := controlplane.ModuleRoot()
	if err == nil {
		err = s.Cluster.WriteKubeconfig(s.kubeconfig)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.root = root
	return s
}

// helm runs Helm on the chart of this tree, with the tag of the images here, and with where the API server is: the bed
// has no proxy for Services.
func (s *site) helm(args ...string) {
	s.t.Helper()
	server, err := url.Parse(s.Cluster.Config.Host)
	if err != nil {
		s.t.Fatal(err)
	}
	helm := exec.Command(filepath.Join(s.root, "bin", "tools", "helm"), append(args,
		"--set", "image.tag="+version, "--set", "apiServer.host="+server.Hostname(), "--set-string", "apiServer.port="+server.Port())...)
	helm.Env = append(os.Environ(), "KUBECONFIG="+s.kubeconfig, "HOME="+s.t.TempDir())
	if out, err := helm.CombinedOutput(); err != nil {
		s.t.Fatalf("helm %v: %v: %s\n%s", args, err, out, s.describe())
	}
}

// chart is where the chart is.
func (s *site) chart() string { return filepath.Join(s.root, "charts", "bcsnet") }

// bcsnetctl runs the command line in this process, and returns what it says.
func (s *site) bcsnetctl(args ...string) string {
	s.t.Helper()
	var out, said strings.Builder
	code := cli.Main(append([]string{"bcsnetctl", "--kubeconfig", s.kubeconfig}, args...), version,
		genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &said})
	if code != 0 {
		s.t.Fatalf("bcsnetctl %v: exit code %d: %s\n%s", args, code, &said, s.describe())
	}
	return said.String()
}

// kubectl runs kubectl.
func (s *site) kubectl(args ...string) string {
	s.t.Helper()
	out, err := s.Kubectl(s.t.Context(), nil, args...)
	if err != nil {
		s.t.Fatalf("%v\n%s", err, s.describe())
	}
	return string(out)
}

// rolledOut waits until all pods of a workload of ours are those of its newest version, and ready.
func (s *site) rolledOut(what string) {
	s.t.Helper()
	s.kubectl("-n", controlplane.SystemNamespace, "rollout", "status", what, "--timeout", "3m")
}

// imported builds images from these sources and gives them to the nodes' containerd.
func (s *site) imported(names ...string) {
	s.t.Helper()
	dir := s.t.TempDir()
	s.tool("go", append([]string{"run", "./hack/image", "-version", version, "-arch", runtime.GOARCH, "-o", dir}, names...)...)
	for _, name := range names {
		s.importArchive(filepath.Join(dir, name+".tar"))
	}
}

// tool runs a program in the root of these sources.
func (s *site) tool(name string, args ...string) {
	s.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = s.root
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("%s %v: %v: %s", name, args, err, out)
	}
}

// importArchive gives an image to the nodes' containerd.
func (s *site) importArchive(archive string) {
	s.t.Helper()
	text, err := os.ReadFile(archive)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, n := range s.Nodes() {
		own := filepath.Join(n.Dir, filepath.Base(archive)) // a node sees its own directory alone
		if err := os.WriteFile(own, text, 0o600); err != nil {
			s.t.Fatal(err)
		}
		s.ctr(n, "import", own)
		if err := os.Remove(own); err != nil { // it is in memory
			s.t.Fatal(err)
		}
	}
}

// ctr manages the images of a node.
func (s *site) ctr(n *bed.Node, args ...string) {
	s.t.Helper()
	r, err := n.Run(s.t.Context(), bed.Call{Args: append([]string{filepath.Join(n.Bin, "ctr"), "-n", "k8s.io", "images"}, args...)})
	if err != nil || r.Code != 0 {
		s.t.Fatalf("ctr images %v: %v: exit code %d: %s", args, err, r.Code, r.Errors)
	}
}

// describe returns what the kubelet says of the pods, and they of themselves.
func (s *site) describe() string {
	var all strings.Builder
	for _, args := range [][]string{
		{"get", "nodes"}, {"describe", "pods"}, {"-n", controlplane.SystemNamespace, "describe", "pods"},
		{"-n", controlplane.SystemNamespace, "logs", "daemonset/bcsnet-node", "--prefix", "--all-pods"},
	} {
		out, err := s.Kubectl(context.WithoutCancel(s.t.Context()), nil, args...)
		fmt.Fprintf(&all, "%s%v\n", out, err)
	}
	return all.String()
}
