package ui

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/intercept"
)

// tapped returns a tap of the requests for the API server.
func (s *site) tapped() *intercept.Tap {
	tap := &intercept.Tap{}
	s.server.app.Config.Wrap(tap.Wrap)
	return tap
}

// TestBlocksAreNotRead: of a split pool with blocks, only names of the blocks are read for the list of pools and for
// the pages of other pools, addresses and hosts. A child that is no block is on the list.
func TestBlocksAreNotRead(t *testing.T) {
	s := entered(t)
	split := pool("split", "10.4.0.0", 24, 253, 0, 0)
	split.Spec.BlockSize = 28
	child := func(name, addrs, namespace string) *v1.BCSNetPool {
		p := pool(name, "10.4.0.0", 24, 0, 0, 0)
		p.Spec.Hosts, p.Spec.Parent, p.Spec.AvailableIPs = nil, "split", []string{addrs}
		p.Spec.Namespaces = []string{namespace}
		return p
	}
	plain, web := pool("plain", "10.5.0.0", 24, 253, 0, 0), pool("web", "10.5.0.0", 24, 10, 0, 0)
	web.Spec.Parent, web.Spec.AvailableIPs = "plain", []string{"10.5.0.20-10.5.0.29"}
	s.make(t, split, child("split-10-4-0-16-28", "10.4.0.16/28", "tenant-a"),
		child("split-10-4-0-32-28", "10.4.0.32/28", "tenant-b"), plain, web, held("10.5.0.20", "web", "10.0.0.11", "shop/web-0"))
	tap := s.tapped()
	var mu sync.Mutex
	var read bytes.Buffer
	tap.On(intercept.All(intercept.Of(v1.PoolResource), func(r *http.Request) bool {
		return !intercept.Watches(r) && !strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadata") &&
			r.URL.Query().Get("fieldSelector") != noObject
	}), func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		answer, err := next.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(answer.Body)
		mu.Lock()
		defer mu.Unlock()
		read.Write(text)
		answer.Body = io.NopCloser(bytes.NewReader(text))
		return answer, err
	})
	for page, wants := range map[string][]string{
		"/": {"2 blocks", "/pool/web", "of plain"}, "/pool/plain": {"10.5.0.30-10.5.0.254"},
		"/ip/10.5.0.20": {"shop/web-0"}, "/host/10.0.0.11": {"/pool/plain", "/pool/split"},
	} {
		status, text := s.get(t, s.viewer, page)
		for _, want := range wants {
			if status != http.StatusOK || !strings.Contains(text, want) {
				t.Errorf("%s: %d, without %q:\n%s", page, status, want, text)
			}
		}
		mu.Lock()
		if got := read.String(); strings.Contains(got, "tenant-") || !strings.Contains(got, "10.5.0.0") {
			t.Errorf("%s reads of pools\n%s", page, got)
		}
		read.Reset()
		mu.Unlock()
	}
	s.make(t, child("odd", "10.4.0.48/28", "tenant-c"))
	if status, text := s.get(t, s.viewer, "/"); !strings.Contains(text, "/pool/odd") || !strings.Contains(text, "2 blocks") ||
		strings.Contains(text, "/pool/split-10-4-0-16-28") {
		t.Errorf("with a child that is no block: %d\n%s", status, text)
	}
	if _, text := s.get(t, s.viewer, "/ip/10.4.0.17"); !strings.Contains(text, "split-10-4-0-16-28") {
		t.Errorf("the block of an address is not on its page:\n%s", text)
	}
}

// TestPageIsReadOnce: a page that was just loaded and is followed is read again only after a change, and then once for
// all viewers.
func TestPageIsReadOnce(t *testing.T) {
	s := entered(t)
	s.make(t, pool("blue", "10.1.0.0", 24, 253, 1, 0), held("10.1.0.20", "blue", "10.0.0.11", "shop/web-0"))
	tap := s.tapped()
	lists := intercept.All(intercept.Of(v1.IPResource), intercept.Method(http.MethodGet), func(r *http.Request) bool {
		return !intercept.Watches(r) && strings.Contains(r.URL.Query().Get("fieldSelector"), "spec.pool=blue")
	})
	if status, text := s.get(t, s.viewer, "/pool/blue"); status != http.StatusOK {
		t.Fatalf("%d: %s", status, text)
	}
	var all []*stream
	for range 3 {
		events := s.follow(t, "page=/pool/blue&have=")
		events.until(t, "the page", func(m sent) bool { return m.On && has(m, "shop/web-0") })
		all = append(all, events)
	}
	if n := tap.Count(lists); n != 1 {
		t.Errorf("the addresses were listed %d times", n)
	}
	s.make(t, held("10.1.0.21", "blue", "10.0.0.11", "shop/web-1"))
	for _, events := range all {
		events.until(t, "the new address", func(m sent) bool { return has(m, "shop/web-1") })
	}
	if n := tap.Count(lists); n != 2 {
		t.Errorf("the addresses were listed %d times for one change", n)
	}
}

// watched is an API whose watch is given.
type watched struct {
	dynamic.ResourceInterface
	events *watch.FakeWatcher
	from   string
}

// Watch begins the watch.
func (w *watched) Watch(_ context.Context, which metav1.ListOptions) (watch.Interface, error) {
	w.from = which.ResourceVersion
	return w.events, nil
}

// TestFirstChange: a watch ends with the first change, so that a page that is not made yet costs nothing, however many
// changes there are. What the API server says of a version that it no longer has is an error.
func TestFirstChange(t *testing.T) {
	api := &watched{events: watch.NewFakeWithChanSize(2, false)}
	api.events.Add(&v1.BCSNetPool{})
	api.events.Add(&v1.BCSNetPool{})
	changed, err := first(t.Context(), api, metav1.ListOptions{}, "10")
	if !changed || err != nil || api.from != "10" || !api.events.IsStopped() {
		t.Errorf("%t, %v: from %s, stopped %t", changed, err, api.from, api.events.IsStopped())
	}
	api = &watched{events: watch.NewFakeWithChanSize(1, false)}
	api.events.Error(&metav1.Status{Status: metav1.StatusFailure, Code: http.StatusGone, Reason: metav1.StatusReasonExpired})
	if changed, err := first(t.Context(), api, metav1.ListOptions{}, "10"); changed || !apierrors.IsResourceExpired(err) {
		t.Errorf("of a version that is gone: %t, %v", changed, err)
	}
	api = &watched{events: watch.NewFakeWithChanSize(1, false)}
	api.events.Stop()
	if changed, err := first(t.Context(), api, metav1.ListOptions{}, "10"); changed || err != nil {
		t.Errorf("of a watch that ends: %t, %v", changed, err)
	}
}

// TestMessages: viewers that have the same get the same message, which is made once; a frame keeps few.
func TestMessages(t *testing.T) {
	f := &frame{sections: []section{{ID: "a", Hash: "1"}, {ID: "b", Hash: "2"}}}
	for have, want := range map[string]string{
		"1.2": `{"on":true,"page":"/","sections":[],"versions":"1.2"}`,
		"1.0": `{"on":true,"page":"/","sections":[{"hash":"2","html":"","id":"b"}],"versions":"1.2"}`,
	} {
		got, again := f.message("/", have), f.message("/", have)
		if string(got) != want || &got[0] != &again[0] {
			t.Errorf("who has %s gets %s and %s, want %s", have, got, again, want)
		}
	}
	for i := range 10 {
		f.message("/", fmt.Sprint(i))
	}
	if len(f.texts) > mostTexts {
		t.Errorf("%d messages are kept", len(f.texts))
	}
	if other := (&frame{sections: f.sections}); !f.same(other) || f.same(&frame{problem: "away"}) {
		t.Error("a frame is compared with another one by its time")
	}
}
