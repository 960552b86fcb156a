//go:build linux

package node

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/node/bed"
)

// killer runs a plugin with failpoints, which dies in its first call for a pod at the step that the pod is named for.
const killer = `#!/bin/sh
pod=$(echo "$CNI_ARGS" | tr ';' '\n' | sed -n 's/^K8S_POD_NAME=//p')
case "$CNI_COMMAND $pod" in "ADD PLUGIN-add-"* | "DEL PLUGIN-del-"*)
	mkdir "/run/killed-$pod" 2>/dev/null && export FAULTS_BREAK="$pod" ;;
esac
exec /opt/cni/bin/PLUGIN-with-failpoints
`

// TestThePluginDiesAtEachStep kills the plugins at each of their steps of an ADD and a DEL, once for each pod.
func TestThePluginDiesAtEachStep(t *testing.T) {
	t.Parallel()
	x := newTenant(t)
	n := x.Node("n2")
	x.installKiller(t, n, "ipam")
	x.installKiller(t, n, "announce")
	for _, step := range []string{
		"ipam-add-begun", "ipam-add-taken", "ipam-add-probed", "ipam-add-attached", "ipam-add-answered",
		"ipam-del-begun", "ipam-del-asked",
		"announce-add-set-up", "announce-add-sent",
	} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			pod := x.create(t, step, n.Name, killed)
			x.answersFabric(t, step, x.ready(t, pod))
			x.wantLeases(t, pod)
			if strings.HasPrefix(step, "ipam-del") {
				if err := x.Delete(t.Context(), pod); err != nil {
					t.Fatal(err)
				}
			}
			controlplane.Eventually(t, func() error {
				_, err := x.inNode(t, n, bed.Call{Args: []string{"test", "-d", "/run/killed-" + step}})
				return err
			})
			if !strings.HasPrefix(step, "ipam-del") {
				x.wantEvent(t, pod, "failed (add)")
			}
		})
	}
}

// installKiller builds a plugin with failpoints, ipam or announce, and gives it to a node for the network killed.
func (x *tenant) installKiller(t *testing.T, n *bed.Node, plugin string) {
	t.Helper()
	root, err := controlplane.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), plugin+"-with-failpoints")
	build := exec.Command("go", "build", "-tags", "faults", "-o", program, "./plugins/cni/bcsnet-"+plugin)
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the plugin with failpoints: %v: %s", err, out)
	}
	script := filepath.Join(t.TempDir(), "killed-"+plugin)
	if err := os.WriteFile(script, []byte(strings.ReplaceAll(killer, "PLUGIN", plugin)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{program, script} {
		if err := n.InstallPlugin(filepath.Base(file), file); err != nil {
			t.Fatal(err)
		}
	}
}

// wantEvent waits for an event of a pod whose message has a text in it.
func (x *tenant) wantEvent(t *testing.T, pod *corev1.Pod, text string) {
	t.Helper()
	controlplane.Eventually(t, func() error { return x.hasEvent(t, pod, text) })
}
