package install

import (
	"bufio"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

// TestUpgradeKilled kills an upgrade after one step or another, and finds that the next one does the rest.
func TestUpgradeKilled(t *testing.T) {
	c := newCluster(t)
	c.bcsnetctl("install", "--yes", "--image", image)
	want := c.objects()
	const stride = 3
	killed := 0
	for after := 1; after <= len(want); after += stride {
		c.damage()
		if diff := cmp.Diff(want, c.objects()); diff == "" {
			t.Fatal("nothing is damaged")
		}
		if c.kill(after) {
			killed++
		}
		c.bcsnetctl("upgrade", "--yes", "--wait=false", "--image", image)
		if diff := cmp.Diff(want, c.objects()); diff != "" {
			t.Errorf("after an upgrade that was killed after %d steps another one leaves (-want +got):\n%s", after, diff)
		}
	}
	if killed == 0 {
		t.Error("no upgrade was killed before its end")
	}
}

// damage leaves an installation as an earlier release may have: definitions, roles, bindings and the controller differ.
func (c *clusterOf) damage() {
	c.t.Helper()
	const group = ".networkextension.bkbcs.tencent.com"
	for _, args := range [][]string{
		{"patch", "crd", "bcsnetips" + group, "--type=json", "-p",
			`[{"op":"remove","path":"/spec/versions/0/additionalPrinterColumns/0"}]`},
		{"patch", "crd", "bcsnetpools" + group, "--type=json", "-p",
			`[{"op":"remove","path":"/spec/versions/0/additionalPrinterColumns/0"}]`},
		{"patch", "clusterrole", "bcsnet-controller", "--type=json", "-p", `[{"op":"replace","path":"/rules","value":[]}]`},
		{"delete", "clusterrolebinding", "bcsnet-controller"},
		{"delete", "clusterrole", "bcsnet-node"},
		{"-n", controlplane.SystemNamespace, "delete", "rolebinding,pdb", "--all"},
		{"-n", controlplane.SystemNamespace, "patch", "deployment", "bcsnet-controller", "--type=json", "-p",
			`[{"op":"replace","path":"/spec/template/spec/containers/0/args","value":["--forward-plain-http"]}]`},
	} {
		if out, err := c.Kubectl(c.t.Context(), args...).CombinedOutput(); err != nil {
			c.t.Fatalf("kubectl %v: %v: %s", args, err, out)
		}
	}
}

// kill runs an upgrade, kills it when it has said that so many steps are done, and reports whether it was before the
// end.
func (c *clusterOf) kill(after int) bool {
	c.t.Helper()
	cmd := exec.CommandContext(c.t.Context(), filepath.Join(c.root, "bin", "bcsnetctl"), "--kubeconfig", c.kubeconfig,
		"upgrade", "--yes", "--wait=false", "--image", image)
	said, err := cmd.StderrPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		c.t.Fatalf("%v: run `make build` first", err)
	}
	done := 0
	for lines := bufio.NewScanner(said); done < after && lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "✔") || strings.HasPrefix(lines.Text(), "+") {
			done++
		}
	}
	_ = cmd.Process.Kill() // it may have ended
	return cmd.Wait() != nil
}
