package store

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// poolsOf returns a list of pools that an API server sends.
func poolsOf(names ...string) string {
	var items []string
	for _, n := range names {
		items = append(items, fmt.Sprintf(`{"apiVersion":"networkextension.bkbcs.tencent.com/v1","kind":"BCSNetPool",`+
			`"metadata":{"name":%q,"uid":"1","resourceVersion":"5","managedFields":[{"manager":"m"}]},`+
			`"spec":{"net":"10.0.0.0","mask":8,"later":"a field of a later release","availableIPs":["10.1.0.0/27"]}}`, n))
	}
	return `{"kind":"BCSNetPoolList","metadata":{"resourceVersion":"7","continue":"on"},"items":[` +
		strings.Join(items, ",") + `]}`
}

// TestPoolList: an informer gets the same pools from the list that is decoded as it comes as from any other, and what
// the API server says against a list.
func TestPoolList(t *testing.T) {
	whole := poolsOf("a", "a-10-1-0-0-27")
	for name, tc := range map[string]struct {
		code    int
		body    string
		want    []string
		refused func(error) bool
	}{
		"two pools":   {body: whole, want: []string{"a", "a-10-1-0-0-27"}},
		"none":        {body: `{"metadata":{"resourceVersion":"7","continue":"on"},"items":null}`},
		"cut short":   {body: whole[:len(whole)-20], refused: func(err error) bool { return err != nil }},
		"no JSON":     {body: "<html>", refused: func(err error) bool { return err != nil }},
		"not a field": {body: strings.Replace(whole, "8", `"8"`, 1), refused: func(err error) bool { return err != nil }},
		"too old": {
			code: http.StatusGone, body: `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`,
			refused: apierrors.IsResourceExpired,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var asked string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked = r.URL.String()
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(max(tc.code, http.StatusOK))
				_, _ = io.WriteString(w, tc.body)
			}))
			defer server.Close()
			lists, err := NewPoolLists(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			lw := lists.Over(&cache.ListWatch{})
			got, err := lw.List(metav1.ListOptions{ResourceVersion: "3", Limit: 500}) //nolint:staticcheck // there is no other
			if want := "/apis/networkextension.bkbcs.tencent.com/v1/bcsnetpools?limit=500&resourceVersion=3"; asked != want {
				t.Errorf("asked for %s, want %s", asked, want)
			}
			if tc.refused != nil {
				if !tc.refused(err) {
					t.Errorf("answer %v, %v", got, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			list := got.(*pools)
			var names []string
			for _, p := range list.Items {
				names = append(names, p.Name)
				if p.Spec.Mask != 8 || p.Spec.AvailableIPs[0] != "10.1.0.0/27" || p.ResourceVersion != "5" {
					t.Errorf("pool %+v", p)
				}
			}
			if !slices.Equal(names, tc.want) || list.ResourceVersion != "7" || list.Continue != "on" {
				t.Errorf("pools %q of %+v, want %q", names, list.ListMeta, tc.want)
			}
			if c := list.DeepCopyObject(); !cmp.Equal(c, got) {
				t.Errorf("the copy differs: %s", cmp.Diff(got, c))
			}
		})
	}
}
