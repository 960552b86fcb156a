package store

import (
	"context"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// othersPage is the number of objects in a page of EachOther. Some systems have a megabyte in one object.
const othersPage = 100

// EachOther calls fn with the JSON of every object of a kind of another program, as of one point in time. It reads page
// by page and splits the answer while it comes in, so that memory use does not grow with the list. An object is valid
// until fn returns.
func EachOther(
	ctx context.Context, cfg *rest.Config, kind schema.GroupVersionResource, fn func(object []byte) error,
) error {
	api, err := restClient(cfg)
	if err != nil {
		return err
	}
	for next := ""; ; {
		request := api.Get().AbsPath("/apis", kind.Group, kind.Version, kind.Resource).
			Param("limit", strconv.Itoa(othersPage))
		if next != "" {
			request.Param("continue", next)
		}
		body, err := request.Stream(ctx)
		if err != nil {
			return err
		}
		meta, err := readObjects(body, fn)
		_ = body.Close() // it was read
		if next = meta.Continue; err != nil || next == "" {
			return err
		}
	}
}
