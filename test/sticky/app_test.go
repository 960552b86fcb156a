package sticky_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// kind of a workload, by the prefix of its claims' names.
type kind string

const (
	deployment  kind = "deploy"
	statefulSet kind = "sts"
	daemonSet   kind = "ds"
	barePod     kind = "pod"
	fleet       kind = "fleet"
)

// revision is the label that a rolling update changes.
const revision = "sticky.test/revision"

// app is a workload with pods.
type app struct {
	*site
	kind kind
	terms
	name string
	// onObject: the annotations stand on the workload itself, not on its template.
	onObject bool
	replicas int32
	rev      int
	surge    intstr.IntOrString
	// claim is one that somebody made, which the pods name; empty for none.
	claim string
	// system: the claim of the shared pool is the operator's, in the controller's namespace.
	system bool
	// beside is the number of pods of other apps that have addresses of the same pool.
	beside int
	// hasty: what is kept shows when the app comes again, and is not watched until then.
	hasty bool
	// podAnnotations are more of them.
	podAnnotations map[string]string
	// update is how a StatefulSet follows its template; the zero value is the usual way.
	update appsv1.StatefulSetUpdateStrategy
}

func (s *site) newApp(k kind, p terms, replicas int32) *app {
	return &app{site: s, kind: k, terms: p, name: "app", replicas: replicas, surge: intstr.FromInt32(0)}
}

func (a *app) labels() map[string]string { return map[string]string{"app": a.name} }

func (a *app) template() corev1.PodTemplateSpec {
	t := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: a.labels(), Annotations: maps.Clone(a.podAnnotations)},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{nodesLabel: a.nodes}, AutomountServiceAccountToken: new(false),
			Containers: []corev1.Container{{Name: "c", Image: "c"}},
		},
	}
	t.Labels[revision] = fmt.Sprint(a.rev)
	if !a.onObject {
		t.Annotations = a.annotated(t.Annotations)
	}
	return t
}

func (a *app) annotated(more map[string]string) map[string]string {
	all := maps.Clone(a.annotations)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, more)
	return all
}

// object is the workload as it should be; none for bare pods.
func (a *app) object(t *testing.T) client.Object {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: a.namespace, Name: a.name}
	if a.onObject {
		meta.Annotations = a.annotated(nil)
	}
	selector := &metav1.LabelSelector{MatchLabels: a.labels()}
	one := intstr.FromInt32(1)
	switch a.kind {
	case deployment:
		unavailable := intstr.FromInt32(0)
		if a.surge.IntValue() == 0 && a.surge.Type == intstr.Int {
			unavailable = one
		}
		return &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
			Replicas: &a.replicas, Selector: selector, Template: a.template(),
			Strategy: appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{
				MaxSurge: &a.surge, MaxUnavailable: &unavailable,
			}},
		}}
	case statefulSet:
		return &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{
			Replicas: &a.replicas, Selector: selector, Template: a.template(),
			PodManagementPolicy: appsv1.ParallelPodManagement, UpdateStrategy: a.update,
		}}
	case daemonSet:
		update := &appsv1.RollingUpdateDaemonSet{MaxUnavailable: &one}
		if a.surge != intstr.FromInt32(0) {
			update = &appsv1.RollingUpdateDaemonSet{MaxUnavailable: new(intstr.FromInt32(0)), MaxSurge: &a.surge}
		}
		return &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{
			Selector: selector, Template: a.template(),
			UpdateStrategy: appsv1.DaemonSetUpdateStrategy{RollingUpdate: update},
		}}
	case fleet:
		template := a.template()
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&template)
		if err != nil {
			t.Fatal(err)
		}
		o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"replicas": int64(a.replicas), "template": content,
		}}}
		o.SetGroupVersionKind(fleetKind)
		o.SetNamespace(a.namespace)
		o.SetName(a.name)
		o.SetAnnotations(meta.Annotations)
		return o
	case barePod:
	}
	return nil
}

// apply creates the workload, or changes it to what it should be.
func (a *app) apply(t *testing.T) {
	t.Helper()
	if a.kind == barePod {
		a.makePods(t)
		return
	}
	want := a.object(t)
	eventually(t, "the workload to be accepted", func() error {
		err := a.admin.Create(t.Context(), want.DeepCopyObject().(client.Object))
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		old := want.DeepCopyObject().(client.Object)
		if err := a.admin.Get(t.Context(), client.ObjectKeyFromObject(want), old); err != nil {
			return err
		}
		next := want.DeepCopyObject().(client.Object)
		next.SetResourceVersion(old.GetResourceVersion())
		return a.admin.Update(t.Context(), next)
	})
}

// makePods makes the bare pods that are missing.
func (a *app) makePods(t *testing.T) {
	t.Helper()
	for n := range a.replicas {
		template := a.template()
		p := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
		p.Namespace, p.Name = a.namespace, fmt.Sprintf("%s-%d", a.name, n)
		eventually(t, "the pod's earlier one to go", func() error {
			var old corev1.Pod
			if err := a.admin.Get(t.Context(), client.ObjectKeyFromObject(p), &old); err == nil &&
				old.DeletionTimestamp == nil {
				return nil
			}
			return a.admin.Create(t.Context(), p.DeepCopy())
		})
	}
}

// pods are those of the app that there are, in the order of their names.
func (a *app) pods(ctx context.Context) ([]corev1.Pod, error) {
	var all corev1.PodList
	err := a.seen.List(ctx, &all, client.InNamespace(a.namespace), client.MatchingLabels(a.labels()))
	slices.SortFunc(all.Items, func(x, y corev1.Pod) int {
		if x.Name < y.Name {
			return -1
		}
		return 1
	})
	return all.Items, err
}

// delete deletes the workload.
func (a *app) delete(t *testing.T, how metav1.DeletionPropagation) {
	t.Helper()
	if err := a.admin.Delete(t.Context(), a.object(t), client.PropagationPolicy(how)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the workload to go", func() error {
		if err := a.admin.Get(t.Context(), types.NamespacedName{Namespace: a.namespace, Name: a.name},
			a.object(t)); !apierrors.IsNotFound(err) {
			return errors.Join(errors.New("it is there"), err)
		}
		return nil
	})
}
