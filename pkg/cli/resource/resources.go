package resource

import (
	"context"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
)

// KeyOf returns the name of an object, with its namespace if it has one.
func KeyOf(o *unstructured.Unstructured) string {
	if o.GetNamespace() == "" {
		return o.GetName()
	}
	return o.GetNamespace() + "/" + o.GetName()
}

// Of returns one of our resources by name.
func Of(name string) schema.GroupVersionResource { return v1.GroupVersion.WithResource(name) }

// NodeResource returns the resource of nodes.
func NodeResource() schema.GroupVersionResource {
	return corev1.SchemeGroupVersion.WithResource("nodes")
}

// PodResource returns the resource of pods.
func PodResource() schema.GroupVersionResource {
	return corev1.SchemeGroupVersion.WithResource("pods")
}

// EventResource returns the resource of events.
func EventResource() schema.GroupVersionResource {
	return eventsv1.SchemeGroupVersion.WithResource("events")
}

// DeploymentResource returns the resource of Deployments.
func DeploymentResource() schema.GroupVersionResource {
	return appsv1.SchemeGroupVersion.WithResource("deployments")
}

// CRDResource returns the resource of CustomResourceDefinitions.
func CRDResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
		Resource: "customresourcedefinitions"}
}

// PageSize is the number of objects per list request.
const PageSize = 500

// ListPages lists all objects of a kind at one state, page by page. It keeps them all in memory; callers with tens of
// thousands print pages instead.
func ListPages(
	ctx context.Context, api dynamic.ResourceInterface, options metav1.ListOptions,
) (all []unstructured.Unstructured, err error) {
	for options.Limit = PageSize; ; {
		page, err := api.List(ctx, options)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return all, nil
		}
	}
}

// readAll lists all objects of a kind at one state, and decodes them.
func readAll[T any](
	ctx context.Context, s *app.App, api dynamic.ResourceInterface, options metav1.ListOptions,
	read func(*unstructured.Unstructured) (T, error),
) (all []T, err error) {
	stored, err := ListPages(ctx, api, options)
	if err != nil {
		return nil, Explain(s, err)
	}
	for i := range stored {
		one, err := read(&stored[i])
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// readNamed reads objects by name. It fails if one is missing.
func readNamed[K, T any](ctx context.Context, keys []K, get func(context.Context, K) (T, error)) (all []T, err error) {
	var failed app.Several
	for _, key := range keys {
		one, err := get(ctx, key)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		all = append(all, one)
	}
	return all, failed.OrNil()
}

// learnedWithin bounds the wait for a kind that was installed a moment ago, and learnedEvery is the interval of the
// attempts. Admission policies learn of a kind seconds after the API server serves it.
const learnedWithin, learnedEvery = 15 * time.Second, 200 * time.Millisecond

// Create creates an object. It repeats the request, for learnedWithin at most, while an admission policy does not know
// the kind yet: the API server has stored nothing then. The error is the API server's.
func Create(
	ctx context.Context, api dynamic.ResourceInterface, o *unstructured.Unstructured, opts metav1.CreateOptions,
) (created *unstructured.Unstructured, err error) {
	within, stop := context.WithTimeout(ctx, learnedWithin)
	defer stop()
	_ = wait.PollUntilContextCancel(within, learnedEvery, true, func(context.Context) (bool, error) {
		created, err = api.Create(ctx, o, opts)
		return !isUnlearned(err), nil
	}) // err says more
	return created, err
}

// CreateOurs creates an object of one of our kinds, without a status. With --dry-run=client it sends nothing. The error
// is the API server's.
func CreateOurs(
	ctx context.Context, s *app.App, api dynamic.ResourceInterface, kind string, typed any,
) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return nil, err
	}
	o := &unstructured.Unstructured{Object: content}
	unstructured.RemoveNestedField(o.Object, "status")
	o.SetGroupVersionKind(v1.GroupVersion.WithKind(kind))
	if s.DryRun == app.DryRunClient {
		return o, nil
	}
	return Create(ctx, api, o, metav1.CreateOptions{FieldManager: app.ProgramName, DryRun: s.DryRun.Options()})
}

// isUnlearned reports whether an admission policy refused an object because it does not know the kind yet.
func isUnlearned(err error) bool {
	return apierrors.IsServiceUnavailable(err) &&
		strings.Contains(err.Error(), "CustomResourceDefinitions are created and when they are available")
}

// deleteTime bounds the wait for the answer to a deletion.
const deleteTime = 10 * time.Second

// Delete deletes an object by name and UID. It returns no error if the object is gone.
func Delete(ctx context.Context, s *app.App, api dynamic.ResourceInterface, name string, uid types.UID) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	// An interruption does not cancel the request, because then nobody would know whether the deletion has begun.
	sending, cancel := context.WithTimeout(context.WithoutCancel(ctx), deleteTime)
	defer cancel()
	err := api.Delete(sending, name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid}, DryRun: s.DryRun.Options(),
	})
	if apierrors.IsNotFound(err) && !NoSuchResource(err) {
		return nil
	}
	return Explain(s, err)
}
