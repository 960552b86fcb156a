package install

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
)

// nodeName is the name of the DaemonSet of the node side.
const nodeName = "bcsnet-node"

// findNode decides whether an upgrade includes the node side: it does if its DaemonSet is in the cluster and was made
// by this command, unless --node=false.
func (v *install) findNode(ctx context.Context, c dynamic.Interface) error {
	if !v.upgrade || !v.node {
		return nil
	}
	have, err := c.Resource(appsv1.SchemeGroupVersion.WithResource("daemonsets")).Namespace(resource.SystemNamespace).
		Get(ctx, nodeName, metav1.GetOptions{})
	switch {
	case apierrors.IsForbidden(err):
		return nil // the question about rights reports it with the other missing rights
	case apierrors.IsNotFound(err) && v.nodeImage != "":
		return app.Usagef("--node-image: there is no DaemonSet %s in %s whose image it could be", nodeName, v.Where()).
			WithHint("to install the node side: bcsnetctl install --node --node-image REGISTRY/bcsnet-node:TAG")
	case apierrors.IsNotFound(err):
		v.node = false
		return nil
	case err != nil:
		return needAdministrator(v.App, err)
	}
	why, err := otherwise(*have)
	if slices.Contains(resource.ContainerArguments(*have), "uninstall") {
		why = "removes the plugins from nodes"
	}
	if err != nil || why == "" {
		return err
	}
	if v.nodeImage != "" {
		return madeOtherwise(*have, why, "--node-image")
	}
	v.Say.Warn("%s %s: it stays as it is; update it as it was installed: by helm, or by kubectl apply -k",
		resource.Title(*have), why)
	v.node = false
	return nil
}

// otherwise says how a DaemonSet differs from this command's; empty if it does not.
func otherwise(have unstructured.Unstructured) (string, error) {
	node, err := resource.Render(resource.NodeFolder)
	if err != nil {
		return "", err
	}
	for _, want := range node {
		if want.GetKind() != resource.KindDaemonSet {
			continue
		}
		name, err := elsewhere(have, want)
		if err != nil || name == "" {
			return "", err
		}
		return fmt.Sprintf("has the directory %s elsewhere than this command puts it, or has it not", name), nil
	}
	return "", nil
}

// madeOtherwise returns the error for a flag that would change such a DaemonSet.
func madeOtherwise(have unstructured.Unstructured, why, flag string) error {
	return app.Usagef("%s %s", resource.Title(have), why).
		WithHint("leave %s out, and update the node side as it was installed: by helm, or by kubectl apply -k", flag)
}

// noteNodeImage says which image stays on nodes if only the controller is upgraded.
func (v *install) noteNodeImage(steps []step) {
	if !v.upgrade || v.image == "" || v.nodeImage != "" {
		return
	}
	for _, s := range steps {
		if s.want.GetKind() == resource.KindDaemonSet && s.have != nil {
			v.Say.Note("nodes go on with the image %s; --node-image names another", resource.Image(*s.have))
		}
	}
}

// isOnNodes reports whether a step belongs to the node side.
func (v *install) isOnNodes(s step) bool { return v.onNodes[resource.Title(s.want)] }

// wantNode adds the objects of the node side, with the image of --node-image.
func (v *install) wantNode(all []unstructured.Unstructured) ([]unstructured.Unstructured, error) {
	if !v.node {
		return all, nil
	}
	node, err := resource.Render(resource.NodeFolder)
	if err != nil {
		return nil, err
	}
	v.onNodes = map[string]bool{}
	for _, o := range node {
		v.onNodes[resource.Title(o)] = true
		if o.GetKind() == resource.KindDaemonSet && v.nodeImage != "" {
			err = resource.SetImage(o, v.nodeImage)
		}
	}
	return append(all, node...), err
}

// keepNode copies the settings of users from the existing DaemonSet and ConfigMap: the image, the network's name and
// data, and the CA. It refuses a DaemonSet that was made in another way, such as with other directories, because nodes
// would lose their plugins.
func (v *install) keepNode(s step) error {
	switch {
	case s.want.GetKind() == resource.KindConfigMap && s.have != nil:
		data, _, err := unstructured.NestedStringMap(s.have.Object, "data")
		if err != nil {
			return fmt.Errorf("%s: %w", resource.Title(*s.have), err)
		}
		return unstructured.SetNestedStringMap(s.want.Object, data, "data")
	case s.want.GetKind() != resource.KindDaemonSet:
		return nil
	case s.have == nil && v.nodeImage == "":
		return app.Usagef("--node-image is missing: there is no DaemonSet %s in the cluster yet whose image could stay",
			s.want.GetName()).WithHint("name the image: bcsnetctl install --node --node-image REGISTRY/bcsnet-node:TAG")
	case s.have == nil:
		return nil
	}
	why, err := otherwise(*s.have)
	if err != nil {
		return err
	}
	if why != "" {
		return madeOtherwise(*s.have, why, "--node")
	}
	// Volumes that were added by hand stay: they have another field owner.
	for _, flags := range [][]string{{"--conflist-name", "--conflist-file"}, {"--ca-config-map", "--ca-file"}} {
		if err := keepArguments(s, flags...); err != nil {
			return err
		}
	}
	if v.nodeImage != "" {
		return nil
	}
	return resource.SetImage(s.want, resource.Image(*s.have))
}

// elsewhere returns the first volume of want that have lacks or mounts from another path of the node.
func elsewhere(have, want unstructured.Unstructured) (string, error) {
	paths := map[string]string{}
	for i, o := range []unstructured.Unstructured{have, want} {
		var set appsv1.DaemonSet
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &set); err != nil {
			return "", fmt.Errorf("%s: %w", resource.Title(o), err)
		}
		for _, volume := range set.Spec.Template.Spec.Volumes {
			at := "no path"
			if volume.HostPath != nil {
				at = volume.HostPath.Path
			}
			if i == 0 {
				paths[volume.Name] = at
			} else if volume.Name != tokenVolume && paths[volume.Name] != at {
				return volume.Name, nil
			}
		}
	}
	return "", nil
}

// tokenVolume names a volume that DaemonSets of earlier releases lack.
const tokenVolume = "token"
