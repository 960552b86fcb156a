package cli

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/bcsnet/bcsnet/api/v1"
)

// resource is one of our resources, as the API server knows it.
func resource(name string) schema.GroupVersionResource { return v1.GroupVersion.WithResource(name) }

// Where the API server keeps what is not ours.

func nodeResource() schema.GroupVersionResource {
	return corev1.SchemeGroupVersion.WithResource("nodes")
}

func podResource() schema.GroupVersionResource {
	return corev1.SchemeGroupVersion.WithResource("pods")
}

func eventResource() schema.GroupVersionResource {
	return eventsv1.SchemeGroupVersion.WithResource("events")
}

func deploymentResource() schema.GroupVersionResource {
	return appsv1.SchemeGroupVersion.WithResource("deployments")
}

func crdResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
}
