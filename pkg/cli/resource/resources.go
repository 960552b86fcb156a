package resource

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/bcsnet/bcsnet/api/v1"
)

// KeyOf returns the name of an object, with its namespace if it has one.
func KeyOf(o *unstructured.Unstructured) string {
	if o.GetNamespace() == "" {
		return o.GetName()
	}
	return o.GetNamespace() + "/" + o.GetName()
}

// Of returns one of our resources by name.
func Of(name string) schema.GroupVersionResource { return v1.GroupVersion.WithResource(name) }

// NodeResource returns the resource of nodes.
func NodeResource() schema.GroupVersionResource {
	return corev1.SchemeGroupVersion.WithResource("nodes")
}

// PodResource returns the resource of pods.
func PodResource() schema.GroupVersionResource {
	return corev1.SchemeGroupVersion.WithResource("pods")
}

// EventResource returns the resource of events.
func EventResource() schema.GroupVersionResource {
	return eventsv1.SchemeGroupVersion.WithResource("events")
}

// DeploymentResource returns the resource of Deployments.
func DeploymentResource() schema.GroupVersionResource {
	return appsv1.SchemeGroupVersion.WithResource("deployments")
}

// CRDResource returns the resource of CustomResourceDefinitions.
func CRDResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
		Resource: "customresourcedefinitions"}
}
