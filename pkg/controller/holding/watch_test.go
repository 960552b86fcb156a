package holding

import (
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// TestDenied: a role counts as missing after half a minute of nothing but refusals, since an API server that has just
// started refuses everything.
func TestDenied(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no"))
	for name, test := range map[string]struct {
		after []error // ten seconds apart
		want  bool
	}{
		"once":                {[]error{forbidden}, false},
		"for twenty seconds":  {[]error{forbidden, forbidden, forbidden}, false},
		"for half a minute":   {[]error{forbidden, forbidden, forbidden, forbidden}, true},
		"with another answer": {[]error{forbidden, forbidden, errors.New("reset"), forbidden, forbidden}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWatch(t)
				for _, err := range test.after {
					w.noticed(t.Context(), nil, err)
					time.Sleep(10 * time.Second) //nolint:forbidigo // of the time in this bubble
				}
				if w.Denied() != test.want {
					t.Errorf("denied: %v", w.Denied())
				}
			})
		})
	}
}

// TestSeen: a kind that is not served has no objects, until it is served and its list is awaited.
func TestSeen(t *testing.T) {
	w := newWatch(t)
	if w.Seen() {
		t.Error("seen before the first list")
	}
	if w.noticed(t.Context(), nil, errNotServed); !w.Seen() {
		t.Error("not seen although the kind is not served")
	}
	w.served.Store(&schema.GroupVersion{})
	if w.Seen() {
		t.Error("seen before the list of a kind that is served now")
	}
	if w.noticed(t.Context(), nil, errors.New("the webhook of the kind fails")); w.Seen() {
		t.Error("seen although the list fails")
	}
}

func newWatch(t *testing.T) *Watch {
	t.Helper()
	w, err := NewWatch(nil, slog.New(slog.DiscardHandler), "g", "r", nil, nil, cache.ResourceEventHandlerFuncs{})
	if err != nil {
		t.Fatal(err)
	}
	return w
}
