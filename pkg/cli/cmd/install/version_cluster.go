package install

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/replica"
)

// controllerVersion describes the controller in the cluster.
type controllerVersion struct {
	// Deployed means that the cluster has the Deployment of the manifests.
	Deployed bool   `json:"deployed"`
	Image    string `json:"image,omitempty"`
	Replicas int64  `json:"replicas"`
	Ready    int64  `json:"ready"`
	// Leader is the replica that runs the reconcilers.
	Leader string `json:"leader,omitempty"`
}

// controllerOf reads the Deployment and the leader's Lease.
func controllerOf(ctx context.Context, c dynamic.Interface) (*controllerVersion, error) {
	d, err := c.Resource(resource.DeploymentResource()).Namespace(resource.SystemNamespace).
		Get(ctx, resource.ControllerName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return &controllerVersion{}, nil
	case err != nil:
		return nil, err
	}
	found := &controllerVersion{Deployed: true, Image: resource.Image(*d)}
	found.Replicas, _, _ = unstructured.NestedInt64(d.Object, "spec", "replicas")
	found.Ready, _, _ = unstructured.NestedInt64(d.Object, "status", "readyReplicas")
	lease, err := resource.LeaderLease(ctx, c)
	if lease.HolderIdentity != nil {
		found.Leader = replica.Parse(*lease.HolderIdentity).Name
	}
	return found, err
}

// outdated names our definitions that are missing in the cluster, or differ from this program's.
func (v *versionVerb) outdated(ctx context.Context, c dynamic.Interface) ([]string, error) {
	all, err := resource.Definitions(ctx, c)
	var names []string
	for _, crd := range all {
		if crd.Missing || crd.Difference != "" {
			names = append(names, crd.Name)
		}
	}
	return names, err
}

func (c *controllerVersion) String() string {
	if !c.Deployed {
		return "no Deployment " + resource.SystemNamespace + "/" + resource.ControllerName
	}
	text := fmt.Sprintf("%s, %d of %s ready", c.Image, c.Ready, humanize.Plural(c.Replicas, "replica"))
	if c.Leader != "" {
		text += ", leader " + c.Leader
	}
	return text
}
