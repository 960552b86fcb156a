package install

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/bcsnet/bcsnet/pkg/cli"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// clusterOf is the control plane of a test, with what installs into it.
type clusterOf struct {
	*controlplane.ControlPlane
	t          *testing.T
	root       string
	kubeconfig string
}

func newCluster(t *testing.T, options ...controlplane.Option) *clusterOf {
	t.Helper()
	root, err := controlplane.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	c := &clusterOf{controlplane.ForTest(t, options...), t, root, filepath.Join(t.TempDir(), "kubeconfig")}
	if err := c.WriteKubeconfig(c.kubeconfig); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *clusterOf) chart() string { return filepath.Join(c.root, "charts", "bcsnet") }

// try runs Helm, which is built from its module, and returns what it prints.
func (c *clusterOf) try(args ...string) (string, error) {
	home := c.t.TempDir()
	cmd := exec.Command(filepath.Join(c.root, "bin", "tools", "helm"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.kubeconfig, "HOME="+home, "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home,
		"HELM_DATA_HOME="+home)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (c *clusterOf) helm(args ...string) string {
	c.t.Helper()
	out, err := c.try(args...)
	if err != nil {
		c.t.Fatalf("helm %v: %v: %s; hint: make bin/tools/helm", args, err, out)
	}
	return out
}

// command runs the command line in this process, and returns its exit code, what it prints and what it says.
func (c *clusterOf) command(args ...string) (int, string, string) {
	var out, said bytes.Buffer
	code := cli.Main(append([]string{"bcsnetctl", "--kubeconfig", c.kubeconfig}, args...), "v1.2.3",
		genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &said})
	return code, out.String(), said.String()
}

func (c *clusterOf) bcsnetctl(args ...string) string {
	c.t.Helper()
	code, out, said := c.command(args...)
	if code != 0 {
		c.t.Fatalf("bcsnetctl %v: exit code %d: %s", args, code, said)
	}
	return out
}
