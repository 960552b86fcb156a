package install

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
)

// wantNode adds the objects of the node side, with the image that was asked for.
func (v *install) wantNode(all []unstructured.Unstructured) ([]unstructured.Unstructured, error) {
	if !v.node {
		return all, nil
	}
	node, err := resource.Render(resource.NodeFolder)
	if err != nil {
		return nil, err
	}
	for _, o := range node {
		if o.GetKind() == resource.KindDaemonSet && v.nodeImage != "" {
			err = resource.SetImage(o, v.nodeImage)
		}
	}
	return append(all, node...), err
}

// keepNode makes the DaemonSet and the conflist that exist keep what people set: the image, and the network of pods. A
// DaemonSet that is made in another way than this one, for other directories or without a conflist, is refused: nodes
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
	if name, err := elsewhere(*s.have, s.want); err != nil || name != "" {
		if err != nil {
			return err
		}
		return app.Usagef("%s has the directory %s elsewhere than this command puts it, or has it not",
			resource.Title(*s.have), name).WithHint("leave --node out, and update the node side as it was installed: by " +
			"helm, or by kubectl apply -k")
	}
	if v.nodeImage != "" {
		return nil
	}
	return resource.SetImage(s.want, resource.Image(*s.have))
}

// elsewhere returns the first volume that one DaemonSet has of another path of the node than the other, or has not.
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

// tokenVolume is what a DaemonSet of an earlier release has not.
const tokenVolume = "token"
