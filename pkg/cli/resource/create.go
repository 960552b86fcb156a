package resource

import (
	"context"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
)

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

// isUnlearned reports whether an admission policy refused an object because it does not know the kind yet.
func isUnlearned(err error) bool {
	return apierrors.IsServiceUnavailable(err) &&
		strings.Contains(err.Error(), "CustomResourceDefinitions are created and when they are available")
}
