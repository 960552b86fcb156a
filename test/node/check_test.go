//go:build linux

package node

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/node/bed"
)

// checkLabel is on the pods of bcsnetctl check nodes.
const checkLabel = "networkextension.bkbcs.tencent.com/node-check"

// TestCheckNodes runs bcsnetctl check nodes: where all is well, with a node whose plugin is configured wrongly, with an
// address that somebody else has, and ended half way. Each time nothing is left behind.
func TestCheckNodes(t *testing.T) {
	controlplane.TakesLong(t)
	x := newTenant(t)
	c := newChecker(t, x)
	t.Run("all well", func(t *testing.T) {
		c.shareImage(t)
		seen := c.wantExit(t, 0, c.command(t, "n1", "n2", "n3", "--image="))
		for _, n := range seen.Items {
			if len(n.Addresses) != 2 || n.Peers.Asked != 2 || n.Peers.Reached != 2 || n.Released == nil || !*n.Released {
				t.Errorf("%+v, want two addresses that reach two others and are released", n)
			}
			for _, a := range n.Addresses {
				if !a.GatewayAnswers || a.GatewayMAC == "" || a.Duplicates == nil || len(a.Duplicates) > 0 {
					t.Errorf("%s: %+v, want that the gateway answers, and nobody else for the address", n.Node, a)
				}
			}
		}
		c.wantNothingBehind(t)
	})
	t.Run("a node with a wrong configuration", func(t *testing.T) {
		c.misconfigure(t, x.Node("n2"))
		seen := c.wantExit(t, 3, c.command(t, "n1", "n2"))
		c.wantFinding(t, seen, "n2", "address", "acts only for its own node, whose addresses are 192.168.77.12")
		c.wantFinding(t, seen, "n1", "", "")
		c.wantNothingBehind(t)
	})
	t.Run("an address that somebody else has", func(t *testing.T) {
		c.takeAddress(t, "192.168.77.226")
		seen := c.wantExit(t, 3, c.command(t, "n1", "n2", "--pool", "checked"))
		for _, n := range seen.Items {
			check, cause := "", ""
			if n.Addresses[0].Address == "192.168.77.226" {
				check, cause = "duplicate", "somebody else answers for 192.168.77.226 of pool checked: 02:"
			}
			c.wantFinding(t, seen, n.Node, check, cause)
		}
		c.wantNothingBehind(t)
	})
	t.Run("interrupted", func(t *testing.T) {
		cmd := c.command(t, "n1", "n2")
		c.atWork(t, cmd, syscall.SIGINT)
		if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 130 {
			t.Errorf("%v, want exit code 130", err)
		}
		c.wantNothingBehind(t)
	})
	t.Run("killed", func(t *testing.T) {
		cmd := c.command(t, "n1", "n2")
		c.atWork(t, cmd, syscall.SIGKILL)
		_ = cmd.Wait() // it was killed
		c.endPods(t)
		c.wantExit(t, 0, c.command(t, "n1"))
		c.wantNothingBehind(t)
	})
}

// checker runs the command in the namespace of a tenant.
type checker struct {
	*tenant
	program, kubeconfig string
}

// checkList is what the command prints with -o json.
type checkList struct {
	Items []struct {
		Node      string `json:"node"`
		Addresses []struct {
			Address        string   `json:"address"`
			GatewayMAC     string   `json:"gatewayMAC"`
			GatewayAnswers bool     `json:"gatewayAnswers"`
			Duplicates     []string `json:"duplicates"`
		} `json:"addresses"`
		Peers struct {
			Asked   int `json:"asked"`
			Reached int `json:"reached"`
		} `json:"peers"`
		Released *bool `json:"released"`
		Findings []struct {
			Check string `json:"check"`
			Cause string `json:"cause"`
			Fix   string `json:"fix"`
		} `json:"findings"`
	} `json:"items"`
}

func newChecker(t *testing.T, x *tenant) *checker {
	t.Helper()
	root, err := controlplane.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	c := &checker{tenant: x, program: filepath.Join(root, "bin", "bcsnetctl"), kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	if err := x.Cluster.WriteKubeconfig(c.kubeconfig); err != nil {
		t.Fatal(err)
	}
	pool := &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: "checked"}, Spec: v1.BCSNetPoolSpec{
		Net: "192.168.77.0", Mask: 24, Gateway: "192.168.77.1", Default: new(false), HostSubnets: []string{"192.168.77.0/27"},
		AvailableIPs: []string{"192.168.77.226-192.168.77.227"},
	}}
	if err := x.Create(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if err := x.Delete(ctx, pool); err != nil {
			t.Error(err)
		}
		err := controlplane.WaitFor(ctx, time.Minute, func() error {
			err := x.Get(ctx, client.ObjectKeyFromObject(pool), pool)
			if err == nil {
				return fmt.Errorf("pool %s is still there: %+v", pool.Name, pool.Status)
			}
			return client.IgnoreNotFound(err)
		})
		if err != nil {
			t.Error(err)
		}
	})
	controlplane.Eventually(t, func() error {
		err := x.Get(t.Context(), client.ObjectKeyFromObject(pool), pool)
		if err == nil && pool.Status.Available != 2 {
			err = fmt.Errorf("pool checked: %+v, want two addresses", pool.Status)
		}
		return err
	})
	return c
}

// command returns a call of the command, which prints objects.
func (c *checker) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), c.program, append([]string{
		"check", "nodes", "--kubeconfig", c.kubeconfig, "-n", c.namespace, "--image", bed.Image, "-o", "json",
	}, args...)...)
	cmd.Stderr = t.Output()
	return cmd
}

// shareImage makes the DaemonSet whose image is the default, until the end of the test. It is for no node.
func (c *checker) shareImage(t *testing.T) {
	t.Helper()
	labels := map[string]string{"app": "bcsnet-node"}
	set := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: controlplane.SystemNamespace, Name: "bcsnet-node"},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: bed.PodSpec("")},
		},
	}
	set.Spec.Template.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "none"}
	if err := c.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Delete(context.WithoutCancel(t.Context()), set); err != nil {
			t.Error(err)
		}
	})
}

// wantExit runs a call, wants an exit code, and returns what was printed.
func (c *checker) wantExit(t *testing.T, code int, cmd *exec.Cmd) (seen checkList) {
	t.Helper()
	var out bytes.Buffer
	cmd.Stdout = &out
	err := cmd.Run()
	if got := cmd.ProcessState.ExitCode(); got != code {
		t.Fatalf("exit code %d, %v, want %d\n%s", got, err, code, out.String())
	}
	if err := json.Unmarshal(out.Bytes(), &seen); err != nil {
		t.Fatalf("%v in %q", err, out.String())
	}
	return seen
}

// wantFinding wants exactly one finding about a node, or none where check is empty.
func (c *checker) wantFinding(t *testing.T, seen checkList, node, check, cause string) {
	t.Helper()
	for _, n := range seen.Items {
		switch {
		case n.Node != node:
		case check == "" && len(n.Findings) > 0, check != "" && (len(n.Findings) != 1 || n.Findings[0].Check != check ||
			!strings.Contains(n.Findings[0].Cause, cause) || n.Findings[0].Fix == ""):
			t.Errorf("%s: %+v, want %s: %s", node, n.Findings, check, cause)
			fallthrough
		default:
			return
		}
	}
	t.Errorf("there is nothing about %s", node)
}

// wantNothingBehind wants no pods of the check, and no address that is in use for one: at once, as the command waits.
func (c *checker) wantNothingBehind(t *testing.T) {
	t.Helper()
	pods, leases := &corev1.PodList{}, &v1.BCSNetIPList{}
	err := errors.Join(c.List(t.Context(), pods, client.HasLabels{checkLabel}), c.List(t.Context(), leases))
	if err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		t.Errorf("the pod %s is left", pods.Items[i].Name)
	}
	for i := range leases.Items {
		if s := leases.Items[i].Status; s.Status == v1.IPActive && s.PodNamespace == c.namespace {
			t.Errorf("%s is left in use for %s", leases.Items[i].Name, s.PodName)
		}
	}
}

// misconfigure has a node's plugin send the address of another host, until the end of the test.
func (c *checker) misconfigure(t *testing.T, n *bed.Node) {
	t.Helper()
	file := filepath.Join(n.EtcCNI(), "net.d", "bcsnet.d", "config.json")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var config map[string]any
	if err := json.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	config["host"] = "10.9.9.9"
	wrong, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, wrong, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Error(err)
		}
	})
}

// takeAddress gives the fabric, which is no node, an address until the end of the test.
func (c *checker) takeAddress(t *testing.T, addr string) {
	t.Helper()
	for verb, when := range map[string]func(func()){"add": func(do func()) { do() }, "del": t.Cleanup} {
		when(func() {
			if out, err := exec.Command("ip", "addr", verb, addr+"/24", "dev", "fab0").CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// atWork starts a call, and sends it a signal once its pods run.
func (c *checker) atWork(t *testing.T, cmd *exec.Cmd, signal os.Signal) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	controlplane.Eventually(t, func() error {
		pods := &corev1.PodList{}
		if err := c.List(t.Context(), pods, client.InNamespace(c.namespace), client.HasLabels{checkLabel}); err != nil {
			return err
		}
		for i := range pods.Items {
			if pods.Items[i].Status.Phase == corev1.PodRunning {
				return nil
			}
		}
		return fmt.Errorf("none of %d pods runs", len(pods.Items))
	})
	if err := cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
}

// endPods brings the deadline of the pods, after which they end by themselves, nearer, and waits for it.
func (c *checker) endPods(t *testing.T) {
	t.Helper()
	pods := &corev1.PodList{}
	if err := c.List(t.Context(), pods, client.InNamespace(c.namespace), client.HasLabels{checkLabel}); err != nil {
		t.Fatal(err)
	}
	if len(pods.Items) != 2 {
		t.Fatalf("%d pods are left by a run that was killed, want two", len(pods.Items))
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		old := client.MergeFrom(pod.DeepCopy())
		pod.Spec.ActiveDeadlineSeconds = new(int64(1))
		if err := c.Patch(t.Context(), pod, old); err != nil {
			t.Fatal(err)
		}
		controlplane.EventuallyWithin(t, time.Minute, func() error {
			err := c.Get(t.Context(), client.ObjectKeyFromObject(pod), pod)
			if err == nil && pod.Status.Phase != corev1.PodFailed {
				err = fmt.Errorf("the pod %s is %s after its deadline", pod.Name, pod.Status.Phase)
			}
			return err
		})
	}
}
