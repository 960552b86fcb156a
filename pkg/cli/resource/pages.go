package resource

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

// PageSize is how many objects one request asks for.
const PageSize = 500

// ListPages lists all objects of a kind in pages of pageSize, all of one state. It keeps all of them: what there may be
// tens of thousands of is printed page by page instead.
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
