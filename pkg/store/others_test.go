package store

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// TestEachOther: objects come page by page, until the last one, an error of the API server, or one of the caller.
func TestEachOther(t *testing.T) {
	const (
		first  = `{"kind":"IPAMBlockList","items":[{"a":1},{"a":[{"b":"]}"}]}],"metadata":{"continue":"on"}}`
		second = `{"metadata":{},"items":[{"a":3}]}`
		gone   = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`
	)
	enough := errors.New("enough")
	for name, tc := range map[string]struct {
		code  int
		pages []string
		stop  bool
		want  []string
		wrong func(error) bool
	}{
		"two pages": {pages: []string{first, second}, want: []string{`{"a":1}`, `{"a":[{"b":"]}"}]}`, `{"a":3}`}},
		"none":      {pages: []string{`{"metadata":{},"items":null}`}},
		"the state is gone": {
			code: http.StatusGone, pages: []string{first, gone}, want: []string{`{"a":1}`, `{"a":[{"b":"]}"}]}`},
			wrong: apierrors.IsResourceExpired,
		},
		"no such kind": {code: http.StatusNotFound, pages: []string{"404 page not found"}, wrong: apierrors.IsNotFound},
		"cut short": {
			pages: []string{first[:40]}, want: []string{`{"a":1}`},
			wrong: func(err error) bool { return errors.Is(err, ErrUnavailable) },
		},
		"the caller stops": {
			pages: []string{first}, stop: true, want: []string{`{"a":1}`},
			wrong: func(err error) bool { return errors.Is(err, enough) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked = append(asked, r.URL.String())
				page := tc.pages[min(len(asked), len(tc.pages))-1]
				if strings.HasPrefix(page, "{") {
					w.Header().Set("Content-Type", "application/json")
				}
				if len(asked) == len(tc.pages) && tc.code > 0 {
					w.WriteHeader(tc.code)
				}
				_, _ = io.WriteString(w, page)
			}))
			defer server.Close()
			kind := schema.GroupVersionResource{Group: "crd.projectcalico.org", Version: "v1", Resource: "ipamblocks"}
			var got []string
			err := EachOther(t.Context(), &rest.Config{Host: server.URL}, kind, func(object []byte) error {
				got = append(got, string(object))
				if tc.stop {
					return enough
				}
				return nil
			})
			if (err != nil) != (tc.wrong != nil) || err != nil && !tc.wrong(err) {
				t.Errorf("error %v", err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			want := []string{"/apis/crd.projectcalico.org/v1/ipamblocks?limit=100"}
			if len(tc.pages) > 1 {
				want = append(want, "/apis/crd.projectcalico.org/v1/ipamblocks?continue=on&limit=100")
			}
			if diff := cmp.Diff(want, asked); diff != "" {
				t.Errorf("asked -want +got:\n%s", diff)
			}
		})
	}
}
