package install

import (
	"context"
	"slices"
	"strconv"
	"strings"

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
	// plainHTTP lets the controller answer plain HTTP requests of other machines.
	plainHTTP = "--plain-http"
	// plainHTTPVariable does the same if the flag is missing.
	plainHTTPVariable = "BCSNET_PLAIN_HTTP"
	// withoutHTTPS is an argument in the manifests of releases without HTTPS only.
	withoutHTTPS = "--forward-plain-http"
	// rolloutEnded is the reason of a Deployment's condition after all replicas were available once.
	rolloutEnded = "NewReplicaSetAvailable"
)

// keepPlainHTTP keeps an existing Deployment's setting for plain HTTP of other machines, unless the flag is given.
func (v *install) keepPlainHTTP(ctx context.Context, c dynamic.Interface, d step) error {
	if v.plainAsked() {
		if v.plain {
			v.Say.Note("plain HTTP of other machines is answered, to each only for its own host")
		} else {
			v.Say.Note("plain HTTP of other machines is refused")
		}
		return setPlainHTTP(d.want, v.plain)
	}
	on, set := plainHTTPOf(*d.have)
	if !set {
		var err error
		if on, err = hadNoHTTPS(ctx, c, *d.have); err != nil {
			return needAdministrator(v.App, err)
		}
	}
	switch {
	case !on:
		v.Say.Note("plain HTTP of other machines is refused, as now")
	case set:
		v.Say.Note("plain HTTP of other machines is answered, as now; when that can end: see upgrading in the " +
			"documentation")
	default:
		v.Say.Note("the release that runs has no HTTPS: plain HTTP of other machines is answered as before, to each " +
			"only for its own host")
	}
	return setPlainHTTP(d.want, on)
}

// plainHTTPOf returns whether a Deployment's controller answers plain HTTP of other machines: its last such argument
// decides, else its environment. set is false if neither exists. on is false for a value that is not a boolean, with
// which the controller does not start. The chart has the same rule in templates/_helpers.tpl.
func plainHTTPOf(have unstructured.Unstructured) (on, set bool) {
	args := resource.ContainerArguments(have)
	value, set := resource.ContainerVariable(have, plainHTTPVariable)
	if slices.Contains(args, withoutHTTPS) {
		set = false // a release that ignores the variable
	}
	for _, arg := range args {
		switch name, given, valued := strings.Cut(arg, "="); {
		case name != plainHTTP:
		case valued:
			value, set = given, true
		default:
			value, set = "true", true
		}
	}
	on, _ = strconv.ParseBool(value)
	return on && set, set
}

// hadNoHTTPS reports whether a Deployment without flag and variable is of a release without HTTPS, which always
// answered plain HTTP. Such a release has an argument of its own, or it was ready once and published no CA. This
// release always sets the flag; a Deployment without it that refuses plain HTTP, and whose CA was deleted, would be
// mistaken for such a release. The chart has the same rule.
func hadNoHTTPS(ctx context.Context, c dynamic.Interface, have unstructured.Unstructured) (bool, error) {
	if slices.Contains(resource.ContainerArguments(have), withoutHTTPS) {
		return true, nil // even if there is a CA: the cluster may have gone back to such a release
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

func (v *install) addPlainHTTP(cmd *cobra.Command) {
	v.cmd = cmd
	cmd.Flags().BoolVar(&v.plain, "plain-http", false,
		"have the controller answer plain HTTP of other machines, to each only for itself, or not")
}

func (v *install) plainAsked() bool { return v.cmd.Flags().Changed("plain-http") }

// setPlainHTTP sets the flag in a Deployment's arguments, in place of an existing one.
func setPlainHTTP(d unstructured.Unstructured, on bool) error {
	isFlag := func(arg string) bool { return arg == plainHTTP || strings.HasPrefix(arg, plainHTTP+"=") }
	return replaceArguments(d, isFlag, plainHTTP+"="+strconv.FormatBool(on))
}
