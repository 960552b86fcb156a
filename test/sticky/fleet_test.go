package sticky_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A Fleet is a workload of somebody else's, as TApps and GameStatefulSets are: a scale, and numbered pods. The
// controller gets the rights to see it as its documents say. The other kinds are those of the examples, whose rights it
// has.
const fleetManifests = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: fleets.sticky.test, annotations: {api-approved.kubernetes.io: "unapproved, a test"}}
spec:
  group: sticky.test
  scope: Namespaced
  names: {kind: Fleet, plural: fleets, singular: fleet}
  versions:
  - name: v1beta2
    served: true
    storage: true
    subresources:
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}
      status: {}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, x-kubernetes-preserve-unknown-fields: true}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: tapps.apps.tkestack.io}
spec:
  group: apps.tkestack.io
  scope: Namespaced
  names: {kind: TApp, plural: tapps, singular: tapp}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: virtualmachines.kubevirt.io}
spec:
  group: kubevirt.io
  scope: Namespaced
  names: {kind: VirtualMachine, plural: virtualmachines, singular: virtualmachine}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
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
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: bcsnet-fleets}
rules:
- {apiGroups: [sticky.test], resources: [fleets, fleets/scale], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: bcsnet-fleets}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: bcsnet-fleets}
subjects:
- {kind: ServiceAccount, namespace: bcsnet-system, name: bcsnet-controller}
`

var fleetKind = schema.GroupVersionKind{Group: "sticky.test", Version: "v1beta2", Kind: "Fleet"}

func installFleets(t *testing.T) {
	t.Helper()
	cmd := cluster.Kubectl(t.Context(), "apply", "-f", "-")
	cmd.Stdin = strings.NewReader(fleetManifests)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, err := cluster.Kubectl(t.Context(), "wait", "--for=condition=Established", "--all", "crd", "--timeout=60s").
		CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// fleetOperator reconciles Fleets: it makes pods <fleet>-<n>, and updates them one after the other, the last one first.
type fleetOperator struct {
	*fixture
	t *testing.T
}

func (f *fleetOperator) run(ctx context.Context) {
	tick := time.NewTicker(300 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		var all unstructured.UnstructuredList
		all.SetGroupVersionKind(fleetKind)
		limited, cancel := context.WithTimeout(ctx, 20*time.Second)
		err := f.admin.List(limited, &all)
		cancel()
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			f.t.Logf("fleets: %v", err)
			continue
		}
		there := map[types.UID]bool{}
		for i := range all.Items {
			there[all.Items[i].GetUID()] = true
			limited, cancel := context.WithTimeout(ctx, 20*time.Second)
			if err := f.reconcile(limited, &all.Items[i]); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) {
				f.t.Logf("fleet %s: %v", all.Items[i].GetNamespace(), err) // it is tried again
			}
			cancel()
		}
		f.collect(ctx, there)
	}
}

// collect deletes the pods of fleets that are gone: the cluster's own collector looks for new kinds twice a minute.
func (f *fleetOperator) collect(ctx context.Context, there map[types.UID]bool) {
	var all corev1.PodList
	if f.seen.List(ctx, &all) != nil {
		return
	}
	for i := range all.Items {
		p := &all.Items[i]
		if c := metav1.GetControllerOf(p); c != nil && c.Kind == fleetKind.Kind && !there[c.UID] &&
			p.DeletionTimestamp == nil {
			_ = f.admin.Delete(ctx, p.DeepCopy(), client.Preconditions{UID: &p.UID}) // it is tried again
		}
	}
}

// reconcile makes or deletes pods as a fleet wants it, one step at a time.
func (f *fleetOperator) reconcile(ctx context.Context, fleet *unstructured.Unstructured) error {
	// Much may have happened since the list: a pod that is made after the end of its fleet looks as if that came again.
	if err := f.admin.Get(ctx, client.ObjectKeyFromObject(fleet), fleet); err != nil ||
		fleet.GetDeletionTimestamp() != nil {
		return client.IgnoreNotFound(err)
	}
	spec, _, err := unstructured.NestedMap(fleet.Object, "spec", "template")
	if err != nil {
		return err
	}
	var template corev1.PodTemplateSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(spec, &template); err != nil {
		return err
	}
	replicas, _, _ := unstructured.NestedInt64(fleet.Object, "spec", "replicas")
	var all corev1.PodList
	if err := f.admin.List(ctx, &all, client.InNamespace(fleet.GetNamespace())); err != nil {
		return err
	}
	have := map[string]*corev1.Pod{}
	for i := range all.Items {
		if metav1.IsControlledBy(&all.Items[i], fleet) {
			have[all.Items[i].Name] = &all.Items[i]
		}
	}
	steady := true
	for n := range replicas {
		name := fmt.Sprintf("%s-%d", fleet.GetName(), n)
		p := have[name]
		delete(have, name)
		switch {
		case p == nil:
			steady = false
			p = &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: template.Spec}
			p.Namespace, p.Name = fleet.GetNamespace(), name
			p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(fleet, fleetKind)}
			if err := f.admin.Create(ctx, p); err != nil && !apierrors.IsAlreadyExists(err) {
				return err
			}
		case p.DeletionTimestamp != nil, !isReady(p):
			steady = false
		}
		if p != nil && p.UID != "" && p.DeletionTimestamp == nil && p.Labels[revision] != template.Labels[revision] {
			have[name] = p // of an old revision
		}
	}
	last := ""
	for name, p := range have {
		if p.Labels[revision] == template.Labels[revision] ||
			strings.Compare(name, fmt.Sprintf("%s-%d", fleet.GetName(), replicas)) >= 0 {
			if err := f.admin.Delete(ctx, p); client.IgnoreNotFound(err) != nil { // there are too many
				return err
			}
			continue
		}
		last = max(last, name)
	}
	if steady && last != "" {
		return client.IgnoreNotFound(f.admin.Delete(ctx, have[last]))
	}
	return nil
}

func isReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
