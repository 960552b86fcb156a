package install

import (
	"context"
	"slices"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/bcsnet/bcsnet/pkg/cli/resource"
)

const (
	// plainHTTP has the controller answer plain HTTP of other machines.
	plainHTTP = "--plain-http"
	// withoutHTTPS is an argument that the manifests of releases without HTTPS have, and no later release knows.
	withoutHTTPS = "--forward-plain-http"
	// rolloutEnded is the reason of a condition of Deployments whose replicas were all available once.
	rolloutEnded = "NewReplicaSetAvailable"
)

// keepPlainHTTP makes a Deployment that exists go on answering plain HTTP of other machines, or refusing it, unless the
// flag asks for one of these.
func (v *install) keepPlainHTTP(ctx context.Context, c dynamic.Interface, d step) error {
	if v.plainAsked() {
		if v.plain {
			v.Say.Note("plain HTTP of other machines is answered, to each for its own host alone")
		} else {
			v.Say.Note("plain HTTP of other machines is refused")
		}
		return setPlainHTTP(d.want, v.plain)
	}
	runs := resource.ControllerArguments(*d.have)
	if slices.Contains(runs, plainHTTP) {
		v.Say.Note("plain HTTP of other machines is answered, as now; docs/upgrading.md says when that can end")
		return setPlainHTTP(d.want, true)
	}
	before, err := hadNoHTTPS(ctx, c, *d.have)
	switch {
	case err != nil:
		return needAdministrator(v.App, err)
	case before:
		v.Say.Note("the release that runs has no HTTPS: plain HTTP of other machines is answered as before, to each for " +
			"its own host alone")
	default:
		v.Say.Note("plain HTTP of other machines is refused, as now")
	}
	return setPlainHTTP(d.want, before)
}

// hadNoHTTPS reports whether a Deployment is of a release without HTTPS, which answered plain HTTP always. It has an
// argument of its own, or came up and published no CA. What never came up served nobody. The chart has the same rule in
// templates/_helpers.tpl.
func hadNoHTTPS(ctx context.Context, c dynamic.Interface, have unstructured.Unstructured) (bool, error) {
	if slices.Contains(resource.ControllerArguments(have), withoutHTTPS) {
		return true, nil // whoever published a CA: the cluster may have gone back to it
	}
	var d appsv1.Deployment
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(have.Object, &d); err != nil {
		return false, err
	}
	ended := func(c appsv1.DeploymentCondition) bool { return c.Reason == rolloutEnded }
	if d.Status.ReadyReplicas == 0 && !slices.ContainsFunc(d.Status.Conditions, ended) {
		return false, nil
	}
	_, err := c.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(resource.SystemNamespace).
		Get(ctx, resource.ControllerName+"-ca", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	return false, err
}

// addPlainHTTP adds the flag of an installation.
func (v *install) addPlainHTTP(cmd *cobra.Command) {
	v.cmd = cmd
	cmd.Flags().BoolVar(&v.plain, "plain-http", false,
		"have the controller answer plain HTTP of other machines, to each for itself alone, or not")
}

// plainAsked reports whether the flag was given.
func (v *install) plainAsked() bool { return v.cmd.Flags().Changed("plain-http") }

// setPlainHTTP writes the flag into the arguments of a Deployment, or takes it out.
func setPlainHTTP(d unstructured.Unstructured, on bool) error {
	args := slices.DeleteFunc(resource.ControllerArguments(d), func(arg string) bool { return arg == plainHTTP })
	if on {
		args = append(args, plainHTTP)
	}
	return resource.SetControllerArguments(d, args)
}
