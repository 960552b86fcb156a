package workload_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bcsnet/bcsnet/pkg/workload"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/intercept"
)

// install makes CRDs of namespaced kinds in a version, "Kind/plural" each; those that end in + have a scale.
func install(t *testing.T, group, version string, kinds ...string) {
	t.Helper()
	var all strings.Builder
	for _, text := range kinds {
		text, scale := strings.CutSuffix(text, "+")
		kind, plural, _ := strings.Cut(text, "/")
		subresources := "{}"
		if scale {
			subresources = "{scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}}"
		}
		all.WriteString(`---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ` + plural + "." + group + `}
spec:
  group: ` + group + `
  scope: Namespaced
  names: {kind: ` + kind + `, plural: ` + plural + `}
  versions:
  - name: ` + version + `
    served: true
    storage: true
    subresources: ` + subresources + `
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`)
	}
	file := filepath.Join(t.TempDir(), "crds.yaml")
	if err := os.WriteFile(file, []byte(all.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := cluster.InstallCRDs(t.Context(), file); err != nil {
		t.Fatal(err)
	}
}

// custom makes an object of such a kind.
func (f *fixture) custom(
	t *testing.T, apiVersion, kind, name string, annotations map[string]any, owners ...metav1.OwnerReference,
) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion, "kind": kind, "spec": map[string]any{"replicas": int64(4)},
		"metadata": map[string]any{"namespace": f.ns, "name": name, "annotations": annotations},
	}}
	o.SetOwnerReferences(owners)
	f.create(t, o)
	return o
}

// A virtual machine keeps its address by its own name, whichever pod it runs in.
func TestOwnersVirtualMachine(t *testing.T) {
	install(t, "kubevirt.io", "v3", "VirtualMachine/virtualmachines", "VirtualMachineInstance/virtualmachineinstances")
	f := newFixture(t, true)
	vm := f.custom(t, "kubevirt.io/v3", "VirtualMachine", "win", map[string]any{never: "immutable"})
	vmi := f.custom(t, "kubevirt.io/v3", "VirtualMachineInstance", "win", nil,
		owns(vm, "kubevirt.io/v3", "VirtualMachine"))
	lone := f.custom(t, "kubevirt.io/v3", "VirtualMachineInstance", "lone", map[string]any{never: "never"})

	p := f.resolve(t, f.pod("virt-launcher-win-x2x4z", owns(vmi, "kubevirt.io/v3", "VirtualMachineInstance")))
	if p.Workload.Kind != "VirtualMachine" || p.Identity != "win" || p.Claim != f.ns+"/vm-win" ||
		p.Release != workload.ReleaseImmutable {
		t.Errorf("%+v", p)
	}
	if r, err := f.Owners.Replicas(t.Context(), p.Workload); err != nil || r.Count != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	if p := f.resolve(t, f.pod("virt-launcher-lone-x2x4z",
		owns(lone, "kubevirt.io/v3", "VirtualMachineInstance"))); p.Identity != "lone" || p.Claim != f.ns+"/vmi-lone" {
		t.Errorf("without a VM: %+v", p)
	}
	// The instance is gone before its pod: the label still names the machine.
	gone := f.pod("virt-launcher-win-y", metav1.OwnerReference{
		APIVersion: "kubevirt.io/v3", Kind: "VirtualMachineInstance", Name: "win", UID: "old", Controller: new(true),
	})
	gone.VM, gone.Annotations = "win", map[string]string{never: "never"}
	if p, err := f.Resolve(t.Context(), gone); err != nil || p.Claim != f.ns+"/vm-win" || p.Identity != "win" {
		t.Errorf("by the label: %+v, %v", p, err)
	}
}

// A kind that the controller may not read: its pods are served by what stands on themselves, and it is said once.
func TestOwnersDenied(t *testing.T) {
	install(t, "denied.example.org", "v1", "Band/bands+", "Solo/solos")
	f := newFixture(t, true)
	band := f.custom(t, "denied.example.org/v1", "Band", "b", map[string]any{never: "never"})
	solo := f.custom(t, "denied.example.org/v1", "Solo", "s", map[string]any{never: "never"})
	pod := f.pod("b-0", owns(band, "denied.example.org/v1", "Band"))
	// At first it may be an API server that does not know its roles yet: that is no policy.
	if p, err := f.Resolve(t.Context(), pod); err == nil || refusal(err) != "" {
		t.Errorf("at first: %+v, %v", p, err)
	}
	f.later.Store(int64(30 * time.Second))
	controlplane.Until(t, "it is said", func() bool {
		return strings.Contains(f.log.String(),
			"the owners of pods cannot be read")
	})
	if p, err := f.Resolve(t.Context(), pod); err != nil || p.Release != workload.ReleaseWithPod {
		t.Errorf("%+v, %v", p, err)
	}
	pod.Annotations = map[string]string{never: "immutable"}
	if p := f.resolve(t, pod); p.Release != workload.ReleaseImmutable || p.Claim != f.ns+"/band-b" ||
		p.Identity != "b-0" {
		t.Errorf("%+v", p)
	}
	if r, err := f.Owners.Replicas(t.Context(),
		workload.Workload{
			Group: "denied.example.org", Kind: "Band", Namespace: f.ns, Name: "b", UID: string(band.GetUID()),
		}); err != nil || r.Count != 4 {
		t.Errorf("its scale may be read: %+v, %v", r, err)
	}
	// A kind without a scale is not read at all.
	if p := f.resolve(t, f.pod("s-0", owns(solo, "denied.example.org/v1",
		"Solo"))); p.Release != workload.ReleaseWithPod || p.Workload.Kind != "Solo" {
		t.Errorf("%+v", p)
	}
	if n := strings.Count(f.log.String(), "the owners of pods cannot be read"); n != 1 {
		t.Errorf("said %d times:\n%s", n, f.log)
	}
}

// What the watches have not told costs one read each; an API server that does not answer is no policy.
func TestOwnersReads(t *testing.T) {
	f := newFixture(t, false)
	selector, tmpl := template()
	deploy := &appsv1.Deployment{
		ObjectMeta: f.meta("web"), Spec: appsv1.DeploymentSpec{Selector: selector, Template: tmpl},
	}
	f.create(t, deploy)
	rs := &appsv1.ReplicaSet{
		ObjectMeta: f.meta("web-1", owns(deploy, "apps/v1", "Deployment")),
		Spec:       appsv1.ReplicaSetSpec{Selector: selector, Template: tmpl},
	}
	f.create(t, rs)
	pod := f.pod("web-1-x", owns(rs, "apps/v1", "ReplicaSet"))
	f.tap.Forget()
	if p, err := f.Resolve(t.Context(), pod); err != nil || p.Workload.Kind != "Deployment" || f.reads() != 3 {
		t.Errorf("%+v, %v with %d reads; want a Deployment with 3", p, err, f.reads())
	}
	for _, what := range []string{"replicasets", "deployments", "namespaces"} {
		broken := func(r *http.Request) bool {
			return intercept.Of(what)(r) && (what != "namespaces" || strings.HasSuffix(r.URL.Path, "/namespaces/"+f.ns))
		}
		remove := f.tap.On(broken, intercept.Answer(http.StatusServiceUnavailable,
			metav1.StatusReasonServiceUnavailable, 0))
		if p, err := f.Resolve(t.Context(), pod); err == nil || refusal(err) != "" {
			t.Errorf("without %s: %+v, %v", what, p, err)
		}
		remove()
	}
	// A scale that does not answer says nothing about the workload.
	remove := f.tap.On(intercept.Of("deployments"),
		intercept.Answer(http.StatusInternalServerError, metav1.StatusReasonInternalError, 0))
	defer remove()
	of := workload.Workload{Group: "apps", Kind: "Deployment", Namespace: f.ns, Name: "web", UID: string(deploy.UID)}
	if gone, err := f.Owners.Gone(t.Context(), of); gone || err == nil {
		t.Errorf("%v, %v", gone, err)
	}
	if r, err := f.Owners.Replicas(t.Context(), of); err == nil {
		t.Errorf("%+v", r)
	}
}
