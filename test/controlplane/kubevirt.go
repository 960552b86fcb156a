package controlplane

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// kubevirtCRDs define KubeVirt's two kinds that describe a live migration, with the fields that we read; other fields
// are preserved. KubeVirt publishes no manifests of them as a module.
const kubevirtCRDs = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: virtualmachineinstances.kubevirt.io}
spec:
  group: kubevirt.io
  scope: Namespaced
  names: {kind: VirtualMachineInstance, plural: virtualmachineinstances, singular: virtualmachineinstance}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, x-kubernetes-preserve-unknown-fields: true}
          status:
            type: object
            x-kubernetes-preserve-unknown-fields: true
            properties:
              phase: {type: string}
              nodeName: {type: string}
              activePods: {type: object, additionalProperties: {type: string}}
              migrationState:
                type: object
                x-kubernetes-preserve-unknown-fields: true
                properties:
                  startTimestamp: {type: string, format: date-time, nullable: true}
                  endTimestamp: {type: string, format: date-time, nullable: true}
                  sourceNode: {type: string}
                  sourcePod: {type: string}
                  targetNode: {type: string}
                  targetPod: {type: string}
                  abortRequested: {type: boolean}
                  completed: {type: boolean}
                  failed: {type: boolean}
                  migrationUid: {type: string}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: virtualmachineinstancemigrations.kubevirt.io}
spec:
  group: kubevirt.io
  scope: Namespaced
  names:
    kind: VirtualMachineInstanceMigration
    plural: virtualmachineinstancemigrations
    singular: virtualmachineinstancemigration
    shortNames: [vmim, vmims]
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            x-kubernetes-preserve-unknown-fields: true
            properties: {vmiName: {type: string}}
          status:
            type: object
            x-kubernetes-preserve-unknown-fields: true
            properties: {phase: {type: string}}
`

// InstallKubeVirt installs these CRDs, and waits until they are served.
func (cp *ControlPlane) InstallKubeVirt(t testing.TB) {
	t.Helper()
	admin := cp.AdminFor(t)
	for text := range strings.SplitSeq(kubevirtCRDs, "\n---\n") {
		crd := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &crd.Object); err != nil {
			t.Fatal(err)
		}
		if err := admin.Create(t.Context(), crd); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	for _, kind := range []string{"VirtualMachineInstance", "VirtualMachineInstanceMigration"} {
		Until(t, kind+" is served", func() bool {
			list := &unstructured.UnstructuredList{}
			list.SetAPIVersion("kubevirt.io/v1")
			list.SetKind(kind + "List")
			return admin.List(t.Context(), list) == nil
		})
	}
}

// RemoveKubeVirt removes these CRDs with all their objects.
func (cp *ControlPlane) RemoveKubeVirt(t testing.TB) {
	t.Helper()
	for _, name := range []string{"virtualmachineinstances", "virtualmachineinstancemigrations"} {
		crd := &unstructured.Unstructured{}
		crd.SetAPIVersion("apiextensions.k8s.io/v1")
		crd.SetKind("CustomResourceDefinition")
		crd.SetName(name + ".kubevirt.io")
		if err := cp.AdminFor(t).Delete(context.WithoutCancel(t.Context()), crd); err != nil {
			t.Fatal(err)
		}
		Until(t, name+" are gone", func() bool {
			return apierrors.IsNotFound(cp.AdminFor(t).Get(t.Context(), types.NamespacedName{Name: name +
				".kubevirt.io"}, crd))
		})
	}
}

// KubeVirtObject returns an object of KubeVirt.
func KubeVirtObject(kind, namespace, name string, fields map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: fields}
	u.SetAPIVersion("kubevirt.io/v1")
	u.SetKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// ControlledBy returns KubeVirt's owner reference on its pods.
func ControlledBy(vmi *unstructured.Unstructured) metav1.OwnerReference {
	return *metav1.NewControllerRef(vmi, vmi.GroupVersionKind())
}
