package cli

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/bcsnet/bcsnet/pkg/replica"
)

// controllerVersion is what the cluster says of the controller.
type controllerVersion struct {
	// Deployed: the cluster has the Deployment of the manifests.
	Deployed bool   `json:"deployed"`
	Image    string `json:"image,omitempty"`
	Replicas int64  `json:"replicas"`
	Ready    int64  `json:"ready"`
	// Leader is the replica that runs the reconcilers.
	Leader string `json:"leader,omitempty"`
}

// crdResource is where the API server keeps definitions.
func crdResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
}

// controller looks at the Deployment and the Lease.
func (v *versionVerb) controller(ctx context.Context, c dynamic.Interface) (*controllerVersion, error) {
	d, err := c.Resource(appsv1.SchemeGroupVersion.WithResource("deployments")).Namespace(systemNamespace).Get(ctx, controllerName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return &controllerVersion{}, nil
	case err != nil:
		return nil, err
	}
	found := &controllerVersion{Deployed: true, Image: image(*d)}
	found.Replicas, _, _ = unstructured.NestedInt64(d.Object, "spec", "replicas")
	found.Ready, _, _ = unstructured.NestedInt64(d.Object, "status", "readyReplicas")
	lease, err := c.Resource(coordinationv1.SchemeGroupVersion.WithResource("leases")).Namespace(systemNamespace).Get(ctx, controllerName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return found, nil // none has led yet
	}
	if err == nil {
		holder, _, _ := unstructured.NestedString(lease.Object, "spec", "holderIdentity")
		found.Leader = replica.Parse(holder).Name
	}
	return found, err
}

// outdated names the definitions in the cluster that are not those of this program.
func (v *versionVerb) outdated(ctx context.Context, c dynamic.Interface) ([]string, error) {
	ours, err := render("crd")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, want := range ours {
		have, err := c.Resource(crdResource()).Get(ctx, want.GetName(), metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			names = append(names, want.GetName())
		case err != nil:
			return nil, err
		case !sameSchema(want, *have):
			names = append(names, want.GetName())
		}
	}
	return names, nil
}

// sameSchema compares what two definitions say of their objects.
func sameSchema(a, b unstructured.Unstructured) bool {
	versions := func(o unstructured.Unstructured) any {
		v, _, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "versions")
		return v
	}
	return equality.Semantic.DeepEqual(versions(a), versions(b))
}

func (c *controllerVersion) String() string {
	if !c.Deployed {
		return "no Deployment " + systemNamespace + "/" + controllerName
	}
	text := fmt.Sprintf("%s, %d of %s ready", c.Image, c.Ready, plural(c.Replicas, "replica"))
	if c.Leader != "" {
		text += ", leader " + c.Leader
	}
	return text
}
