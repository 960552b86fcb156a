package install

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

// The images, which nothing here pulls.
const (
	image     = "registry.example.com/bcsnet-controller:v1.2.3"
	nodeImage = "registry.example.com/bcsnet-node:v1.2.3"
)

// TestWays installs in three ways on a control plane each, beside definitions of bcs-netservice-controller and of
// galaxy, compares them, and has each way take over from each other.
func TestWays(t *testing.T) {
	var first map[string]any
	for _, way := range ways() {
		c := newCluster(t)
		others := []string{"--filename", filepath.Join("testdata", "others.yaml")}
		if out, err := c.Kubectl(t.Context(), append([]string{"create"}, others...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		way.install(c)
		got := c.objects()
		if first == nil {
			first = got
			if len(first) < 25 {
				t.Fatalf("there are only %v", slices.Sorted(maps.Keys(first)))
			}
		} else if diff := cmp.Diff(first, got); diff != "" {
			t.Errorf("%s installs something else (-helm +%s):\n%s", way.name, way.name, diff)
		}
		for _, next := range ways() {
			if next.name == way.name {
				continue
			}
			next.install(c)
			if diff := cmp.Diff(first, c.objects()); diff != "" {
				t.Errorf("%s after %s leaves something else (-fresh +got):\n%s", next.name, way.name, diff)
			}
			if records := c.releases(); (records > 0) != (next.name == "helm") && next.name != "kubectl" {
				t.Errorf("%s after %s: Helm has %d records", next.name, way.name, records)
			}
			way.install(c)
			if diff := cmp.Diff(first, c.objects()); diff != "" {
				t.Errorf("%s after %s after %s leaves something else (-fresh +got):\n%s", way.name, next.name, way.name, diff)
			}
		}
		if out, err := c.Kubectl(t.Context(), append([]string{"get"}, others...)...).CombinedOutput(); err != nil {
			t.Errorf("definitions of others are not as they were: %v: %s", err, out)
		}
	}
}

// way is one of the ways to install.
type way struct {
	name    string
	install func(c *clusterOf)
}

func ways() []way {
	return []way{
		{"helm", func(c *clusterOf) {
			c.helm("upgrade", "bcsnet", c.chart(), "--install", "--namespace", controlplane.SystemNamespace, "--create-namespace",
				"--set", "image.repository=registry.example.com/bcsnet-controller", "--set", "image.tag=v1.2.3",
				"--set", "node.enabled=true", "--set", "node.image.repository=registry.example.com/bcsnet-node",
				"--take-ownership", "--server-side=true", "--force-conflicts")
		}},
		{"kubectl", func(c *clusterOf) {
			manifests := filepath.Join(c.t.TempDir(), "install.yaml")
			if err := os.WriteFile(manifests, []byte(c.bcsnetctl("install", "--print", "--image", image, "--node", "--node-image", nodeImage)), 0o600); err != nil {
				c.t.Fatal(err)
			}
			out, err := c.Kubectl(c.t.Context(), "apply", "--server-side", "--force-conflicts", "-f", manifests).CombinedOutput()
			if err != nil {
				c.t.Fatalf("kubectl apply: %v: %s", err, out)
			}
		}},
		{"bcsnetctl", func(c *clusterOf) {
			c.bcsnetctl("install", "--yes", "--image", image, "--node", "--node-image", nodeImage)
		}},
	}
}

// kinds are those of the objects that are installed.
func kinds() []schema.GroupVersionResource {
	kind := func(group, version, resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
	}
	return []schema.GroupVersionResource{
		kind("apiextensions.k8s.io", "v1", "customresourcedefinitions"),
		kind("rbac.authorization.k8s.io", "v1", "clusterroles"), kind("rbac.authorization.k8s.io", "v1", "clusterrolebindings"),
		kind("rbac.authorization.k8s.io", "v1", "roles"), kind("rbac.authorization.k8s.io", "v1", "rolebindings"),
		kind("", "v1", "namespaces"), kind("", "v1", "serviceaccounts"), kind("", "v1", "services"), kind("", "v1", "configmaps"),
		kind("apps", "v1", "deployments"), kind("apps", "v1", "daemonsets"), kind("policy", "v1", "poddisruptionbudgets"),
		kind("admissionregistration.k8s.io", "v1", "validatingadmissionpolicies"),
		kind("admissionregistration.k8s.io", "v1", "validatingadmissionpolicybindings"),
	}
}

// objects returns what is installed, without what every write or installation has of its own, and Helm's marks.
func (c *clusterOf) objects() map[string]any {
	c.t.Helper()
	client, err := dynamic.NewForConfig(c.Config)
	if err != nil {
		c.t.Fatal(err)
	}
	all := map[string]any{}
	for _, kind := range kinds() {
		list, err := client.Resource(kind).List(c.t.Context(), metav1.ListOptions{})
		if err != nil {
			c.t.Fatal(err)
		}
		for _, o := range list.Items {
			if !strings.Contains(o.GetName(), "bcsnet") {
				continue
			}
			all[kind.Resource+" "+o.GetNamespace()+"/"+o.GetName()] = bare(o)
		}
	}
	return all
}

// bare returns an object without the values of this one installation.
func bare(o unstructured.Unstructured) map[string]any {
	for _, field := range [][]string{
		{"metadata", "managedFields"}, {"metadata", "uid"}, {"metadata", "resourceVersion"}, {"metadata", "generation"},
		{"metadata", "creationTimestamp"}, {"status"}, {"spec", "clusterIP"}, {"spec", "clusterIPs"},
		{"metadata", "labels", "app.kubernetes.io/managed-by"}, {"metadata", "annotations", "meta.helm.sh/release-name"},
		{"metadata", "annotations", "meta.helm.sh/release-namespace"},
		{"metadata", "annotations", "deployment.kubernetes.io/revision"},
		{"metadata", "annotations", "deprecated.daemonset.template.generation"},
	} {
		unstructured.RemoveNestedField(o.Object, field...)
	}
	if o.GetKind() == "Namespace" {
		unstructured.RemoveNestedField(o.Object, "metadata", "labels", "name") // by helm --create-namespace
	}
	for _, field := range []string{"labels", "annotations"} {
		if left, _, _ := unstructured.NestedMap(o.Object, "metadata", field); len(left) == 0 {
			unstructured.RemoveNestedField(o.Object, "metadata", field)
		}
	}
	return o.Object
}

// releases returns how many records of releases Helm has.
func (c *clusterOf) releases() int {
	c.t.Helper()
	client, err := dynamic.NewForConfig(c.Config)
	if err != nil {
		c.t.Fatal(err)
	}
	list, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).
		Namespace(controlplane.SystemNamespace).List(context.WithoutCancel(c.t.Context()), metav1.ListOptions{LabelSelector: "owner=helm"})
	if err != nil {
		c.t.Fatal(err)
	}
	return len(list.Items)
}
