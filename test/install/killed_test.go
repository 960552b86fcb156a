package install

import (
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

// longEnv has the tests take as long as they were made for: make test-upgrade.
const longEnv = "UPGRADE_LONG"

// TestUpgradeKilled kills an upgrade, of the node side, too, and from Helm, after one change and another, and finds
// that the next one does the rest. In the long form it is after every single change.
func TestUpgradeKilled(t *testing.T) {
	c := newCluster(t)
	c.bcsnetctl("install", "--yes", "--image", image, "--node", "--node-image", nodeImage)
	c.publishCA()
	want, b := c.objects(), newBrake(c)
	upgrade := []string{"upgrade", "--yes"}
	c.damage()
	all, _ := b.run(c, math.MaxInt, upgrade...)
	c.repaired(want, "an upgrade that nobody kills")
	t.Logf("%d changes: %s", len(all), strings.Join(all, ", "))
	controller := slices.IndexFunc(all, func(change string) bool { return strings.HasSuffix(change, "/deployments/bcsnet-controller") })
	nodes := slices.IndexFunc(all, func(change string) bool { return strings.HasSuffix(change, "/daemonsets/bcsnet-node") })
	if controller < 0 || nodes < controller {
		t.Errorf("the controller is change %d, and the nodes %d", controller, nodes)
	}
	for after := range all {
		// In the short form: before anything, amid roles, with and without the controller, and before the end.
		if os.Getenv(longEnv) == "" && !slices.Contains([]int{0, len(all) / 4, controller + 1, len(all) - 1}, after) {
			continue
		}
		c.damage()
		did, killed := b.run(c, after, upgrade...)
		if !killed || len(did) != after {
			t.Errorf("killed: %t, after %d of %d changes", killed, len(did), after)
		}
		b.run(c, math.MaxInt, upgrade...)
		if c.repaired(want, "an upgrade that was killed before "+all[after]+", and another one"); t.Failed() {
			return
		}
	}
}

// repaired checks that an installation is as it was, and that Helm has forgotten it.
func (c *clusterOf) repaired(want map[string]any, after string) {
	c.t.Helper()
	if diff := cmp.Diff(want, c.objects()); diff != "" {
		c.t.Errorf("after %s (-want +got):\n%s", after, diff)
	}
	if n := c.releases(); n > 0 {
		c.t.Errorf("after %s Helm has %d records", after, n)
	}
	if marks := c.marks(); len(marks) > 0 {
		c.t.Errorf("after %s Helm's marks are on %v", after, marks)
	}
}

// damage leaves an installation as an earlier release may have, by Helm: definitions, roles, bindings, the controller
// and the node side differ. Both roll out at once, as nothing runs them here.
func (c *clusterOf) damage() {
	c.t.Helper()
	client, err := dynamic.NewForConfig(c.Config)
	if err != nil {
		c.t.Fatal(err)
	}
	const group, system = ".networkextension.bkbcs.tencent.com", controlplane.SystemNamespace
	at := map[string]schema.GroupVersionResource{}
	for _, kind := range kinds() {
		at[kind.Resource] = kind
	}
	at["secrets"] = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	const column = `[{"op":"remove","path":"/spec/versions/0/additionalPrinterColumns/0"}]`
	const marks = `{"metadata":{"labels":{"app.kubernetes.io/managed-by":"Helm"},` +
		`"annotations":{"meta.helm.sh/release-name":"bcsnet","meta.helm.sh/release-namespace":"bcsnet-system"}}}`
	for _, d := range []struct{ kind, namespace, name, patch string }{
		{"customresourcedefinitions", "", "bcsnetips" + group, column},
		{"customresourcedefinitions", "", "bcsnetpools" + group, column},
		{"clusterroles", "", "bcsnet-controller", `{"rules":[]}`},
		{"clusterroles", "", "bcsnet-node", ""},
		{"clusterrolebindings", "", "bcsnet-controller", ""},
		{"rolebindings", system, "bcsnet-controller-leader", ""},
		{"poddisruptionbudgets", system, "bcsnet-controller", ""},
		{"deployments", system, "bcsnet-controller", `[{"op":"add","path":"/spec/template/spec/containers/0/args/-","value":"--old"}]`},
		{"deployments", system, "bcsnet-controller", marks},
		{"clusterroles", "", "bcsnet-viewer", marks},
		{"clusterroles", "", "bcsnet-node-installer", `{"rules":[]}`},
		{"rolebindings", system, "bcsnet-node", ""},
		{"daemonsets", system, "bcsnet-node", `[{"op":"add","path":"/spec/template/spec/containers/0/args/-","value":"--old"}]`},
		{"daemonsets", system, "bcsnet-node", marks},
		{"secrets", system, "sh.helm.release.v1.bcsnet.v1", `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"sh.helm.release.v1.bcsnet.v1","labels":{"owner":"helm","name":"bcsnet"}}}`},
		{"deployments", system, "bcsnet-controller", `{"status":{"observedGeneration":1000000,"replicas":2,"updatedReplicas":2,"readyReplicas":2,"availableReplicas":2}}`},
		{"daemonsets", system, "bcsnet-node", `{"status":{"observedGeneration":1000000,"desiredNumberScheduled":1,"currentNumberScheduled":1,"numberMisscheduled":0,"numberReady":1,"updatedNumberScheduled":1,"numberAvailable":1}}`},
	} {
		api := client.Resource(at[d.kind]).Namespace(d.namespace)
		switch {
		case d.patch == "":
			err = api.Delete(c.t.Context(), d.name, metav1.DeleteOptions{})
		case strings.HasPrefix(d.patch, "["):
			_, err = api.Patch(c.t.Context(), d.name, types.JSONPatchType, []byte(d.patch), metav1.PatchOptions{})
		case d.kind == "secrets":
			_, err = api.Patch(c.t.Context(), d.name, types.ApplyPatchType, []byte(d.patch), metav1.PatchOptions{FieldManager: "helm"})
		case strings.HasPrefix(d.patch, `{"status"`):
			_, err = api.Patch(c.t.Context(), d.name, types.MergePatchType, []byte(d.patch), metav1.PatchOptions{}, "status")
		default:
			_, err = api.Patch(c.t.Context(), d.name, types.MergePatchType, []byte(d.patch), metav1.PatchOptions{})
		}
		if err != nil {
			c.t.Fatalf("damage %s %s: %v", d.kind, d.name, err)
		}
	}
}

// marks returns what has a mark of Helm.
func (c *clusterOf) marks() (names []string) {
	c.t.Helper()
	client, err := dynamic.NewForConfig(c.Config)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, kind := range kinds() {
		list, err := client.Resource(kind).List(c.t.Context(), metav1.ListOptions{})
		if err != nil {
			c.t.Fatal(err)
		}
		for _, o := range list.Items {
			if o.GetAnnotations()["meta.helm.sh/release-name"] != "" || o.GetLabels()["app.kubernetes.io/managed-by"] == "Helm" {
				names = append(names, kind.Resource+" "+o.GetName())
			}
		}
	}
	return names
}
