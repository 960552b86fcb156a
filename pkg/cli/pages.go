package cli

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

// listPages lists all objects of a kind in pages of pageSize, all of one state. It keeps all of them: what there may be
// tens of thousands of is printed page by page instead.
func listPages(ctx context.Context, api dynamic.ResourceInterface, options metav1.ListOptions) (all []unstructured.Unstructured, err error) {
	for options.Limit = pageSize; ; {
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
