package resource

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/bcsnet/bcsnet/api/v1"
)

// KeyOf returns a key that is unique among the objects of one kind: the name, with the namespace where they are in
// one.
func KeyOf(o *unstructured.Unstructured) string {
	if o.GetNamespace() == "" {
		return o.GetName()
	}
	return o.GetNamespace() + "/" + o.GetName()
}

// Of returns the name of one of our resources in the form that the API server knows.
func Of(name string) schema.GroupVersionResource { return v1.GroupVersion.WithResource(name) }

// NodeResource returns where the API server keeps nodes.
func NodeResource() schema.GroupVersionResource {
	return corev1.SchemeGroupVersion.WithResource("nodes")
}

// PodResource returns where the API server keeps pods.
func PodResource() schema.GroupVersionResource {
	return corev1.SchemeGroupVersion.WithResource("pods")
}

// EventResource returns where the API server keeps events.
func EventResource() schema.GroupVersionResource {
	return eventsv1.SchemeGroupVersion.WithResource("events")
}

// DeploymentResource returns where the API server keeps Deployments.
func DeploymentResource() schema.GroupVersionResource {
	return appsv1.SchemeGroupVersion.WithResource("deployments")
}

// CRDResource returns where the API server keeps CustomResourceDefinitions.
func CRDResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
		Resource: "customresourcedefinitions"}
}
