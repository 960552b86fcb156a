package install

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

// TestHelmBack runs Helm's commands of docs/upgrading.md: to the next release, back to the one before, and to the next
// one again. The definitions stay as the newest release has them, and values as the user has set them.
func TestHelmBack(t *testing.T) {
	controlplane.TakesLong(t)
	t.Parallel()
	c := newCluster(t, controlplane.WithControllerManager(), controlplane.WithScheduler(), controlplane.WithKwok())
	for _, name := range []string{"n1", "n2"} {
		c.node(c.clients(), name, map[string]string{"kwok.x-k8s.io/node": "fake"}, 0)
	}
	commands := c.commandsFor("helm upgrade bcsnet ")
	if len(commands) != 3 {
		t.Fatalf("docs/upgrading.md has %d commands, to the next release, back, and there again: %q", len(commands), commands)
	}
	dir := t.TempDir()
	c.pack(dir, "1.2.3", true)
	c.pack(dir, "1.2.4", false)
	run := func(command string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-ec", command)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "KUBECONFIG="+c.kubeconfig, "HOME="+dir,
			"PATH="+filepath.Join(c.root, "bin", "tools")+string(os.PathListSeparator)+os.Getenv("PATH"))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", command, err, out)
		}
	}
	const pool = "bcsnetpools.networkextension.bkbcs.tencent.com"
	check := func(after, version string, newest bool) {
		t.Helper()
		got := map[string]any{
			"image": c.kubectl("-n", controlplane.SystemNamespace, "get", "deployment", "bcsnet-controller", "-o",
				"jsonpath={.spec.template.spec.containers[0].image}"),
			"debug": strings.Contains(c.kubectl("-n", controlplane.SystemNamespace, "get", "deployment", "bcsnet-controller", "-o",
				"jsonpath={.spec.template.spec.containers[0].args}"), "--log-level=debug"),
			"newest": c.kubectl("get", "crd", pool, "-o",
				"jsonpath={.spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.maxPerNamespace.type}") != "",
			"bound": c.kubectl("get", "bcsnetpool", "kept", "-o", "jsonpath={.spec.maxPerNamespace}"),
		}
		bound := "7"
		if !newest {
			bound = ""
		}
		want := map[string]any{
			"image": "ghcr.io/bcsnet/bcsnet-controller:v" + version, "debug": true, "newest": newest, "bound": bound,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("after %s (-want +got):\n%s", after, diff)
		}
	}
	const install = "helm install bcsnet bcsnet-1.2.3.tgz --namespace bcsnet-system --create-namespace " +
		"--set 'extraArgs={--log-level=debug}' --wait"
	manifest := filepath.Join(dir, "pool.yaml")
	if err := os.WriteFile(manifest, []byte(`apiVersion: networkextension.bkbcs.tencent.com/v1
kind: BCSNetPool
metadata: {name: kept}
spec: {net: 10.1.0.0, mask: 24, gateway: 10.1.0.1, hosts: [10.0.0.11], availableIPs: [10.1.0.20]}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	bind := []string{"patch", "bcsnetpool", "kept", "--type=merge", "-p", `{"spec":{"maxPerNamespace":7}}`}
	run(install)
	c.kubectl("create", "-f", manifest)
	c.kubectl(bind...)
	check("the installation", "1.2.3", false)
	run(commands[0])
	c.kubectl(bind...)
	check("the upgrade", "1.2.4", true)
	run(commands[1])
	c.kubectl("label", "bcsnetpool", "kept", "written=again")
	check("the way back", "1.2.3", true)

	// Told once to leave the definitions, Helm goes on so. The last command brings them again.
	run("helm uninstall bcsnet --namespace bcsnet-system --wait")
	c.kubectl("delete", "crd", "--all")
	run(install)
	c.kubectl("create", "-f", manifest)
	run(commands[1])
	run(commands[0])
	c.kubectl(bind...)
	check("the way there without definitions", "1.2.4", false)
	run(commands[2])
	c.kubectl(bind...)
	check("the way there with them", "1.2.4", true)
}

// commandsFor returns the commands of docs/upgrading.md that begin in one way, as they stand there.
func (c *clusterOf) commandsFor(prefix string) (commands []string) {
	c.t.Helper()
	text, err := os.ReadFile(filepath.Join(c.root, "docs", "upgrading.md"))
	if err != nil {
		c.t.Fatal(err)
	}
	for _, found := range regexp.MustCompile("`("+regexp.QuoteMeta(prefix)+"[^`]*)`").FindAllStringSubmatch(string(text), -1) {
		commands = append(commands, found[1])
	}
	chinese, err := os.ReadFile(filepath.Join(c.root, "docs", "zh", "upgrading.md"))
	if err != nil {
		c.t.Fatal(err)
	}
	for _, command := range commands {
		if !strings.Contains(string(chinese), "`"+command+"`") {
			c.t.Errorf("docs/zh/upgrading.md lacks %s", command)
		}
	}
	return commands
}

// pack makes the chart of a release, as a file. An earlier one has definitions without a field.
func (c *clusterOf) pack(dir, version string, earlier bool) {
	c.t.Helper()
	chart := filepath.Join(c.t.TempDir(), "bcsnet")
	if err := os.CopyFS(chart, os.DirFS(c.chart())); err != nil {
		c.t.Fatal(err)
	}
	if earlier {
		path := filepath.Join(chart, "files", "crd", "networkextension.bkbcs.tencent.com_bcsnetpools.yaml")
		text, err := os.ReadFile(path)
		if err != nil {
			c.t.Fatal(err)
		}
		field := regexp.MustCompile(`(?m)^ {14}maxPerNamespace:\n(?: {15,}.*\n)+`)
		if len(field.FindAll(text, -1)) != 1 {
			c.t.Fatalf("%s has no field maxPerNamespace of the spec", path)
		}
		if err := os.WriteFile(path, field.ReplaceAll(text, nil), 0o600); err != nil {
			c.t.Fatal(err)
		}
	}
	c.helm("package", chart, "--version", version, "--app-version", "v"+version, "--destination", dir)
}
