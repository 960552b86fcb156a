package install

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/bcsnet/bcsnet/pkg/cli/resource"
)

const (
	// plainHTTP has the controller answer plain HTTP of other machines.
	plainHTTP = "--plain-http"
	// withoutHTTPS is an argument that the manifests of releases without HTTPS have, and no later release knows.
	withoutHTTPS = "--forward-plain-http"
)

// keepPlainHTTP makes a Deployment that exists go on answering plain HTTP of other machines, or refusing it. A release
// without HTTPS answers it always, and has published no CA, unless the cluster went back to it.
func (v *install) keepPlainHTTP(ctx context.Context, c dynamic.Interface, d step) error {
	runs := resource.ControllerArguments(*d.have)
	if slices.Contains(runs, plainHTTP) {
		v.Say.Note("plain HTTP of other machines is answered, as now; docs/upgrading.md says when that can end")
		return nil
	}
	_, err := c.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(resource.SystemNamespace).
		Get(ctx, resource.ControllerName+"-ca", metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && slices.Contains(runs, withoutHTTPS):
		v.Say.Note("the release that runs has no HTTPS: plain HTTP of other machines is answered as before, to each for " +
			"its own host alone")
		return nil
	case err != nil:
		return needAdministrator(v.App, err)
	}
	v.Say.Note("plain HTTP of other machines is refused, as now")
	args := slices.DeleteFunc(resource.ControllerArguments(d.want), func(arg string) bool { return arg == plainHTTP })
	return resource.SetControllerArguments(d.want, args)
}
