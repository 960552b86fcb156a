package resource

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

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
