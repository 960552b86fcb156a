package install

import (
	"context"
	"encoding/json"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
)

// The marks of what Helm installed.
const (
	managedBy        = "app.kubernetes.io/managed-by"
	helm             = "Helm"
	releaseName      = "meta.helm.sh/release-name"
	releaseNamespace = "meta.helm.sh/release-namespace"
)

// releases returns the names of the objects' Helm releases.
func releases(steps []step) (names []string) {
	for _, s := range steps {
		if s.have == nil {
			continue
		}
		if name := s.have.GetAnnotations()[releaseName]; name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// adopt takes the objects over from Helm. It deletes the records of the releases first, so that no Helm command can
// remove or revert what is installed from now on. Then it removes Helm's labels and annotations. After an interruption
// the next run completes it.
func (v *install) adopt(ctx context.Context, c dynamic.Interface, steps []step) error {
	for _, name := range releases(steps) {
		if v.DryRun != app.DryRunClient {
			if err := v.forget(ctx, c, name); err != nil {
				return err
			}
		}
		v.Say.Done("the Helm release %s is forgotten", name)
	}
	if v.DryRun != app.DryRunNone {
		return nil
	}
	for _, s := range steps {
		if s.have == nil || s.have.GetAnnotations()[releaseName] == "" {
			continue
		}
		meta := map[string]any{"annotations": map[string]any{releaseName: nil, releaseNamespace: nil}}
		if s.have.GetLabels()[managedBy] == helm {
			meta["labels"] = map[string]any{managedBy: nil}
		}
		patch, err := json.Marshal(map[string]any{"metadata": meta})
		if err != nil {
			return err
		}
		_, err = s.api.Patch(ctx, s.want.GetName(), types.MergePatchType, patch,
			metav1.PatchOptions{FieldManager: app.ProgramName})
		if err != nil && !apierrors.IsNotFound(err) {
			return needAdministrator(v.App, err)
		}
	}
	return nil
}

func rightsToForget() (r resource.Rights) {
	for _, verb := range []string{"list", "delete"} {
		r = append(r, authorizationv1.ResourceAttributes{
			Verb: verb, Version: "v1", Resource: "secrets", Namespace: resource.SystemNamespace,
		})
	}
	return r
}

// forget deletes the Secrets with Helm's records of a release.
func (v *install) forget(ctx context.Context, c dynamic.Interface, name string) error {
	kind := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	secrets := c.Resource(kind).Namespace(resource.SystemNamespace)
	records := labels.SelectorFromSet(labels.Set{"owner": "helm", "name": name}).String()
	found, err := secrets.List(ctx, metav1.ListOptions{LabelSelector: records})
	if err != nil {
		return needAdministrator(v.App, err)
	}
	for _, secret := range found.Items {
		err := secrets.Delete(ctx, secret.GetName(), metav1.DeleteOptions{DryRun: v.DryRun.Options()})
		if err != nil && !apierrors.IsNotFound(err) {
			return needAdministrator(v.App, err)
		}
	}
	return nil
}
