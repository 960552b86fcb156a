package store

import (
	"bytes"
	"encoding/json"
	"io"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

const (
	plainObject   = `{"apiVersion":"networkextension.bkbcs.tencent.com/v1","kind":"BCSNetIP","metadata":{"name":"10.0.0.9","resourceVersion":"7"},"spec":{"pool":"p","mask":24,"gateway":"10.0.0.1"},"status":{"status":"Active","containerID":"c","updateTime":"2026-01-02T03:04:05.000000006Z"}}`
	strangeObject = `{"metadata":{"name":"10.0.0.9","resourceVersion":"8"},"new":[{"a":1}],"status":{"host":"node","updateTime":"yesterday","more":{}}}`
	expiredFrame  = `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old","reason":"Expired","details":{},"code":410}}`
)

// What decodes as a lease, and knows no foreign fields, comes back from what is written for it.
func FuzzDecodeLease(f *testing.F) {
	for _, seed := range []string{
		plainObject, strangeObject, `{}`, `null`,
		`{"metadata":{"name":"2001-0db8-0000-0000-0000-0000-0000-0020","resourceVersion":"1"}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		l, err := decodeLease(body)
		if err != nil || l.Version == 0 || l.Foreign || l.Deleting || l.SetSize > 1<<31-1 {
			return
		}
		again, err := json.Marshal(Object(l))
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeLease(again)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(l, got, compareAddrs); diff != "" {
			t.Errorf("-read first +read again:\n%s", diff)
		}
	})
}

// A part of a list is never taken for the whole.
func FuzzReadList(f *testing.F) {
	for _, seed := range []string{
		`{"metadata":{"resourceVersion":"9"},"items":[` + plainObject + `,` + strangeObject + `]}`,
		`{"items":null,"metadata":{"resourceVersion":"9"}}`, `{"items":[{}]}`, `{`, ``,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		nothing := func(lease.Lease) error { return nil }
		if _, err := readList(bytes.NewReader(body), nothing); err != nil || !json.Valid(body) {
			return
		}
		whole := bytes.TrimRight(body, " \t\r\n")
		for _, cut := range []int{len(whole) - 1, len(whole) / 2, len(whole) / 3} {
			if meta, err := readList(bytes.NewReader(whole[:cut]), nothing); err == nil {
				t.Errorf("%d of %d bytes pass for a list of version %q: %s", cut, len(whole), meta.ResourceVersion, whole)
			}
		}
	})
}

// A watch stream of any bytes ends, and every event carries what its type says.
func FuzzWatchFrames(f *testing.F) {
	for _, seed := range []string{
		`{"type":"ADDED","object":` + plainObject + `}` + "\n" + `{"type":"MODIFIED","object":` + strangeObject + `}`,
		`{"type":"BOOKMARK","object":{"kind":"BCSNetIP","metadata":{"resourceVersion":"12","annotations":{"k8s.io/initial-events-end":"true"}}}}`,
		expiredFrame, `{"type":"DELETED","object":{}}`, `{"type":"ADDED","object":null}`, `{"type":1}`, `x`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, e := range frames(body) {
			switch o := e.Object.(type) {
			case *item:
				if e.Type != watch.Bookmark && !o.Addr.IsValid() {
					t.Errorf("%s without an address", e.Type)
				}
			default:
				if e.Type != watch.Error {
					t.Errorf("%s carries a %T", e.Type, e.Object)
				}
			}
		}
	})
}

// frames decodes a watch stream to its end.
func frames(body []byte) []watch.Event {
	w := &watcher{events: make(chan watch.Event), done: make(chan struct{}), cut: func() {}}
	go w.read(io.NopCloser(bytes.NewReader(body)))
	var out []watch.Event
	for e := range w.events {
		out = append(out, e)
	}
	return out
}

// Whatever stands in an object that holds more than a lease, writing a lease into it makes it that lease, and leaves
// the rest.
func FuzzMergeInto(f *testing.F) {
	for _, seed := range []string{
		plainObject, strangeObject, `{"metadata":{"finalizers":["a",1,null]},"spec":[],"status":null,"x":{"y":1}}`,
		`{"metadata":null}`, `{}`, `null`, `[]`,
	} {
		f.Add([]byte(seed))
	}
	l := lease.Lease{
		Addr: netip.MustParseAddr("10.0.0.9"), Version: 7, State: lease.Active, Params: params,
		Holder: lease.Holder{ContainerID: "c"}, HeldFinalizer: true,
	}
	f.Fuzz(func(t *testing.T, stored []byte) {
		body, err := mergeInto(stored, l)
		if err != nil {
			return
		}
		var before, after map[string]any
		if json.Unmarshal(stored, &before) != nil || json.Unmarshal(body, &after) != nil {
			t.Fatalf("%s becomes %s", stored, body)
		}
		for _, ours := range []string{"metadata", "spec", "status"} {
			delete(before, ours)
			delete(after, ours)
		}
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("-before +after:\n%s", diff)
		}
		got, err := decodeLease(body)
		if err != nil { // its name is not that of an address, or its own fields are of a type that we do not write
			return
		}
		if got.State != l.State || got.Version != l.Version || got.Holder.ContainerID != l.ContainerID ||
			got.Params != l.Params || !got.HeldFinalizer {
			t.Errorf("%s is read as %+v", body, got)
		}
	})
}
