package install

import (
	"context"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

const (
	reasonNewerDefinitions   ipam.Reason = "NewerDefinitions"
	reasonLeavingDefinitions ipam.Reason = "LeavingDefinitions"
)

// foreign warns that the cluster has objects of other systems, which stay as they are.
func (v *install) foreign(ctx context.Context, c dynamic.Interface) error {
	for _, other := range []struct{ name, says string }{
		{"bcsnetpools.netservice.bkbcs.tencent.com",
			"the released system has objects here, which stay as they are: bcsnetctl import netservice takes them " +
				"over; its controller must not answer on port 8090, too, and its plugins are answered only with " +
				"--plain-http"},
		{"floatingips.galaxy.k8s.io",
			"galaxy has objects here, which stay as they are: for its ConfigMap see floatingip-config in the " +
				"documentation"},
	} {
		_, err := c.Resource(resource.CRDResource()).Get(ctx, other.name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		case err != nil:
			return needAdministrator(v.App, err)
		default:
			v.Say.Warn("%s", other.says)
			v.warned(checkOthers, other.says)
		}
	}
	return nil
}

// newer refuses to replace definitions of a newer release or another system, because the API server would drop the
// fields that only those have.
func (v *install) newer(steps []step) error {
	for _, s := range steps {
		if s.have == nil || s.want.GetKind() != resource.KindCRD {
			continue
		}
		more := s.more()
		if len(more) == 0 {
			continue
		}
		return app.Refuse(reasonNewerDefinitions,
			"nothing was changed: %s is not of an earlier release: %s, which this program does not know, and objects "+
				"would lose it", resource.Title(s.want), first(more)).
			WithHint("use the program of the release that installed it; to go back to an earlier release, leave the "+
				"definitions: bcsnetctl upgrade --keep-crds; definitions of another system in the group %s must be "+
				"deleted first",
				v1.GroupVersion.Group)
	}
	return nil
}

// leaving refuses to continue while a definition is being deleted. The API server would accept the apply, and then
// delete the definition with all its objects.
func (v *install) leaving(steps []step) error {
	for _, s := range steps {
		if s.have == nil || s.want.GetKind() != resource.KindCRD || s.have.GetDeletionTimestamp() == nil {
			continue
		}
		return app.Refuse(reasonLeavingDefinitions, "nothing was changed: %s is being deleted, and its objects with it",
			resource.Title(s.want)).
			WithHint("save what is left: bcsnetctl backup FILE; run it again when the definition is gone: "+
				"kubectl wait --for=delete crd/%s", s.want.GetName())
	}
	return nil
}

// more returns the versions and fields that only the definition in the cluster has.
func (s step) more() (all []string) {
	ours, theirs := schemas(&s.want), schemas(s.have)
	stored, _, _ := unstructured.NestedStringSlice(s.have.Object, "status", "storedVersions")
	for _, version := range app.SortedOnce(append(stored, slices.Collect(maps.Keys(theirs))...)) {
		if _, ok := ours[version]; !ok {
			all = append(all, "it has the version "+version)
		}
	}
	for _, version := range slices.Sorted(maps.Keys(theirs)) {
		for _, field := range fieldsMore("", ours[version], theirs[version]) {
			all = append(all, "it has the field "+strings.TrimPrefix(field, "."))
		}
	}
	return all
}

// first returns the first text, and says if there are more.
func first(texts []string) string {
	if len(texts) == 1 {
		return texts[0]
	}
	return texts[0] + ", and more"
}

// schemas returns the schemas of a definition by version.
func schemas(crd *unstructured.Unstructured) map[string]any {
	all := map[string]any{}
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, version := range versions {
		if m, ok := version.(map[string]any); ok {
			name, _, _ := unstructured.NestedString(m, "name")
			all[name], _, _ = unstructured.NestedFieldNoCopy(m, "schema", "openAPIV3Schema")
		}
	}
	return all
}

// fieldsMore returns the fields of theirs that ours lacks; none if ours is nil.
func fieldsMore(path string, ours, theirs any) (all []string) {
	o, known := ours.(map[string]any)
	t, ok := theirs.(map[string]any)
	if !known || !ok {
		return nil
	}
	if o["x-kubernetes-preserve-unknown-fields"] == true {
		return nil
	}
	all = fieldsMore(path+"[]", o["items"], t["items"])
	mine, _ := o["properties"].(map[string]any)
	properties, _ := t["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if _, has := mine[name]; !has {
			all = append(all, path+"."+name)
			continue
		}
		all = append(all, fieldsMore(path+"."+name, mine[name], properties[name])...)
	}
	return all
}
