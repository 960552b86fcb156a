package cli

import (
	"bytes"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

const whereaboutsObjects = `
apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata: {name: old, namespace: default}
spec:
  config: '{"cniVersion":"1.0.0","name":"old","type":"macvlan","master":"eth1","ipam":{"type":"whereabouts","range":"10.1.0.20-10.1.0.23/24","gateway":"10.1.0.1"}}'
---
apiVersion: whereabouts.cni.cncf.io/v1alpha1
kind: IPPool
metadata: {name: 10.1.0.0-24, namespace: default}
spec: {range: 10.1.0.0/24, allocations: {"20": {id: c-web, podref: default/web, ifname: eth0}, "22": {id: c-plain, podref: default/plain, ifname: eth0}}}
`

// TestOneSwitchThereAndBack: pods keep their addresses when the cluster switches to bcsnet and back. A new pod gets
// none of them, and the other system finds its objects as it left them.
func TestOneSwitchThereAndBack(t *testing.T) {
	controlplane.TakesLong(t)
	for system, have := range map[string]struct {
		make  func(t *testing.T, f *fixture)
		kinds string
	}{
		"netservice": {func(t *testing.T, f *fixture) {
			t.Helper()
			f.haveReleased(t, released)
		},
			"bcsnetpools.netservice.bkbcs.tencent.com,bcsnetips.netservice.bkbcs.tencent.com," +
				"bcsnetipclaims.netservice.bkbcs.tencent.com"},
		"whereabouts": {func(t *testing.T, f *fixture) {
			t.Helper()
			f.haveObjects(t, crd("whereabouts.cni.cncf.io", "v1alpha1", "IPPool", "ippools", "Namespaced")+
				crd("k8s.cni.cncf.io", "v1", "NetworkAttachmentDefinition", "network-attachment-definitions", "Namespaced"),
				whereaboutsObjects)
		}, "ippools.whereabouts.cni.cncf.io,network-attachment-definitions.k8s.cni.cncf.io"},
	} {
		t.Run(system, func(t *testing.T) {
			f := newFixture(t)
			if err := f.wipe(t.Context()); err != nil {
				t.Fatal(err)
			}
			have.make(t, f)
			f.haveReadyNode(t, "node-1", "10.0.0.11")
			n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}
			label := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"kubernetes.io/os":"linux"}}}`))
			if err := f.client.Patch(t.Context(), n, label); err != nil {
				t.Fatal(err)
			}
			f.havePodOf(t, "web", "", "10.1.0.20")
			f.havePodOf(t, "plain", "", "10.1.0.22")
			f.havePodOf(t, "new", "", "")
			theirs := func() string {
				var out bytes.Buffer
				cmd := cluster.Kubectl(t.Context(), "get", have.kinds, "-A", "-o", "yaml")
				cmd.Stdout = &out
				if err := cmd.Run(); err != nil {
					t.Fatal(err)
				}
				return out.String()
			}
			before := theirs()
			c, err := cluster.StartController(t.Context(), controlplane.ControllerOptions{Name: "switch-" + system})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := c.Stop(); err != nil {
					t.Error(err)
				}
			}()
			_, stderr := f.call(t, "import", system, "--yes")
			contains(t, stderr, "read back:")
			f.call(t, "pool", "uncordon", "old")
			var got, reason string
			controlplane.Until(t, "the replica hands out", func() bool {
				got, reason = plugin(t, http.MethodPost, c.URL, "new", "c-new")
				return got != ""
			})
			if got == "10.1.0.20" || got == "10.1.0.22" {
				t.Errorf("a new pod is given %s, which a pod has (%s)", got, reason)
			}
			for pod, want := range map[string]string{"web": "10.1.0.20", "plain": "10.1.0.22"} {
				if got, reason := plugin(t, http.MethodPost, c.URL, pod, "c-"+pod); got != want {
					t.Errorf("pod %s is given %q (%s), want %s", pod, got, reason, want)
				}
			}
			plugin(t, http.MethodDelete, c.URL, "new", "c-new")

			_, stderr = f.call(t, "import", "revert", system, "--yes")
			contains(t, stderr, "deletion of pool old requested")
			controlplane.Until(t, "the pool is gone", func() bool {
				return apierrors.IsNotFound(f.client.Get(t.Context(), client.ObjectKey{Name: "old"}, &v1.BCSNetPool{}))
			})
			if got, _ := plugin(t, http.MethodPost, c.URL, "new", "c-again"); got != "" {
				t.Errorf("a pod is given %s after all went back", got)
			}
			if diff := cmp.Diff(before, theirs()); diff != "" {
				t.Errorf("the other system's objects changed (-before +after):\n%s", diff)
			}
		})
	}
}
