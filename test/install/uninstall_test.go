package install

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

// mutating is a version that Kubernetes 1.36 and newer serve, and that the chart goes by.
const mutating = "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"

// everything are values that have the chart bring all that it has, but for what the Prometheus operator defines.
func everything() []string {
	return []string{
		"--set", "floatingipConfig=kube-system/floatingip-config", "--set", "hostnicIPAMConfig=default/hostnic-ipam-config",
		"--set", "ipamClaims=true,clusterAPI=true,services.enabled=true", "--set", "node.enabled=true", "--set", "flowSchema.enabled=true", "--set", "dashboard.enabled=true",
		"--set", "ui.enabled=true", "--set", "ui.tlsSecretName=pages",
	}
}

// TestUninstallRemovesAll installs all that the chart can bring, and finds nothing of it outside of the namespace after
// bcsnetctl uninstall --crds.
func TestUninstallRemovesAll(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.helm(append([]string{
		"install", "bcsnet", c.chart(), "--namespace", controlplane.SystemNamespace, "--create-namespace",
	}, everything()...)...)
	out, err := template(t, append(everything(), "--api-versions", mutating)...)
	if err != nil {
		t.Fatal(out)
	}
	brought := parse(t, out)
	client, err := dynamic.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	get := func(o unstructured.Unstructured) error {
		kind, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
		_, err := client.Resource(kind).Namespace(o.GetNamespace()).Get(t.Context(), o.GetName(), metav1.GetOptions{})
		return err
	}
	for _, o := range brought {
		if err := get(o); err != nil {
			t.Errorf("%s %s was not installed: %v", o.GetKind(), o.GetName(), err)
		}
	}
	c.bcsnetctl("uninstall", "--crds", "--yes")
	for _, o := range brought {
		if o.GetNamespace() == controlplane.SystemNamespace {
			continue // which goes as a whole
		}
		if err := get(o); !apierrors.IsNotFound(err) {
			t.Errorf("%s %s is still there: %v", o.GetKind(), o.GetName(), err)
		}
	}
	if code, _, said := c.command("uninstall", "--crds", "--dry-run=client"); code != 0 || !strings.Contains(said, "1 object in") {
		t.Errorf("there is more than the namespace left: exit code %d: %s", code, said)
	}
}

// TestEverythingIsEverything: what those values leave out is the Prometheus operator's.
func TestEverythingIsEverything(t *testing.T) {
	t.Parallel()
	out, err := template(t, append(everything(), "--api-versions", mutating)...)
	if err != nil {
		t.Fatal(out)
	}
	root, err := controlplane.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	templates := filepath.Join(root, "charts", "bcsnet", "templates")
	err = filepath.WalkDir(templates, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil || strings.Contains(string(text), "monitoring.coreos.com/") {
			return err
		}
		name, err := filepath.Rel(templates, path)
		if err == nil && !strings.Contains(out, "# Source: bcsnet/templates/"+filepath.ToSlash(name)+"\n") {
			t.Errorf("%s is not rendered: a value for it belongs into everything, and its objects are to be uninstalled", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// parse returns the objects of manifests, without those of helm test.
func parse(t *testing.T, manifests string) (all []unstructured.Unstructured) {
	t.Helper()
	for document := range strings.SplitSeq(manifests, "\n---\n") {
		var o unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
			t.Fatalf("%v in %s", err, document)
		}
		if _, hook := o.GetAnnotations()["helm.sh/hook"]; o.GetKind() != "" && !hook { // which Helm makes at another time
			all = append(all, o)
		}
	}
	return all
}
