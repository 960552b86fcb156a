package cli

import (
	"context"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// owned KIND/NAME POD [NODE] makes a pod that a workload of the group apps owns, as its controller would.
func (f *fixture) owned(ctx context.Context, _ *testscript.TestScript, args []string) error {
	kind, name, _ := strings.Cut(args[0], "/")
	var owner metav1.PartialObjectMetadata
	owner.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind(kind))
	if err := f.client.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: name}, &owner); err != nil {
		return err
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	pod.Namespace, pod.Name = metav1.NamespaceDefault, args[1]
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(&owner, owner.GroupVersionKind())}
	if len(args) > 2 {
		pod.Spec.NodeName = args[2]
	}
	return f.client.Create(ctx, pod)
}
