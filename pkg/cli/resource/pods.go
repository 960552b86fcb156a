package resource

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// podPage is the number of pods per request: the next page is read while this one is decoded. A pod in memory takes
// some tens of kilobytes until what is used of it is taken.
const podPage = 250

// AllPods reads the pods of all namespaces.
func AllPods(ctx context.Context, s *app.App) (all []workload.Pod, err error) {
	c, err := CoreClient(s)
	if err != nil {
		return nil, err
	}
	var number atomic.Int64 // of all pods, as the first page says
	pages := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		page, err := c.Pods("").List(ctx, o)
		if err == nil && page.RemainingItemCount != nil {
			number.CompareAndSwap(0, int64(len(page.Items))+*page.RemainingItemCount)
		}
		return page, err
	})
	pages.PageSize, pages.PageBufferSize = podPage, 1
	err = pages.EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
		if all == nil {
			all = make([]workload.Pod, 0, number.Load())
		}
		if p, ok := o.(*corev1.Pod); ok {
			all = append(all, workload.FromObject(p))
		}
		return nil
	})
	return all, err
}

// CoreClient returns a client for pods that reads protobuf, the fastest encoding.
func CoreClient(s *app.App) (*typedcorev1.CoreV1Client, error) {
	cfg, err := s.Connect()
	if err != nil {
		return nil, err
	}
	cfg = rest.CopyConfig(cfg)
	cfg.ContentType = runtime.ContentTypeProtobuf
	cfg.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	c, err := typedcorev1.NewForConfig(cfg)
	if err != nil {
		return nil, s.ConfigProblem(err)
	}
	return c, nil
}

// IsPodWord reports whether a word names the kind Pod.
func IsPodWord(word string) bool { return slices.Contains([]string{"pod", "pods", "po"}, word) }

// PodWord returns the pod of an argument, which may have the form pod/NAME.
func PodWord(word string) string {
	if kind, name, ok := strings.Cut(strings.TrimSpace(word), "/"); ok && IsPodWord(kind) {
		return name
	}
	return strings.TrimSpace(word)
}
