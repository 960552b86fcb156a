package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
)

// causeRestored marks the answer to a watch that began before the store was put back.
const causeRestored metav1.CauseType = "StoreRestored"

// Restores notices for all watches of a process that the API server's store was put back to an older state.
//
// A watch that goes through Wrap begins with a look at the version that the API server has: one that is behind what
// the watcher has seen is that of a store which was put back. Such a server would accept the watch and send nothing
// until its versions have caught up. The watcher gets the answer that its version has expired, and lists. The look is
// a consistent read: a server that merely lags does not pass for one whose store was put back.
//
// A watch that begins when the versions have caught up already finds nothing wrong, and would miss what was lost in
// between. So what one notices counts for all: the others end, and list before they go on. Watches that ask for the
// same are taken for one.
type Restores struct {
	mu   sync.Mutex
	open map[*restorable]struct{}
	// known are the watches so far, by what they ask for; true for one that has to list.
	known map[string]bool
}

// restorable is a watch that runs, or begins.
type restorable struct {
	asks string
	end  context.CancelFunc
}

// NewRestores makes one for a process.
func NewRestores() *Restores {
	return &Restores{open: map[*restorable]struct{}{}, known: map[string]bool{}}
}

// Noticed makes all watches list, except those of a resource such as "pods": their users know already.
func (s *Restores) Noticed(resource string) {
	s.others(func(asks string) bool {
		path, _, _ := strings.Cut(asks, "?")
		return strings.HasSuffix(path, "/"+resource)
	})
}

// others makes all watches list, except those that know already.
func (s *Restores) others(knows func(asks string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for asks := range s.known {
		s.known[asks] = !knows(asks)
	}
	for w := range s.open {
		if !knows(w.asks) {
			w.end()
		}
	}
}

// begins notes a watch. It returns false for a watch that has to list first. One that receives the whole state anyway
// does not.
func (s *Restores) begins(w *restorable, whole bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	must := s.known[w.asks] && !whole && !failpoint.Broken("restores")
	s.known[w.asks] = false
	if !must {
		s.open[w] = struct{}{}
	}
	return !must
}

func (s *Restores) ends(w *restorable) {
	w.end()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, w)
}

// Wrap makes the transport of a client one that notices.
func (s *Restores) Wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		q := r.URL.Query()
		if !slices.Contains([]string{"true", "1"}, q.Get("watch")) {
			return next.RoundTrip(r)
		}
		ctx, cancel := context.WithCancel(r.Context())
		w := &restorable{end: cancel, asks: r.URL.Path + "?" + url.Values{
			"labelSelector": q["labelSelector"], "fieldSelector": q["fieldSelector"],
		}.Encode()}
		from := parseVersion(q.Get("resourceVersion"))
		whole := q.Get("sendInitialEvents") != "" || from == 0
		if !s.begins(w, whole) {
			cancel()
			return expired(r), nil
		}
		resp, err := s.watch(next, r.WithContext(ctx), w, from, whole)
		if err != nil {
			s.ends(w)
			return nil, err
		}
		resp.Body = &restorableBody{ReadCloser: resp.Body, ends: func() { s.ends(w) }}
		return resp, nil
	})
}

func (s *Restores) watch(
	next http.RoundTripper, r *http.Request, w *restorable, from uint64, whole bool,
) (*http.Response, error) {
	if whole {
		return next.RoundTrip(r)
	}
	switch present, err := presentVersion(next, r); {
	case err != nil:
		return nil, err
	case present != 0 && present < from:
		s.others(func(asks string) bool { return asks == w.asks })
		return expired(r), nil
	}
	return next.RoundTrip(r)
}

// restorableBody is the stream of a watch.
type restorableBody struct {
	io.ReadCloser
	ends func()
}

func (b *restorableBody) Close() error {
	err := b.ReadCloser.Close()
	b.ends()
	return err
}

// presentVersion returns the version of a list of what a watch is about; 0 when the API server does not give one.
func presentVersion(next http.RoundTripper, watch *http.Request) (uint64, error) {
	r := watch.Clone(watch.Context())
	r.URL.RawQuery = url.Values{"limit": {"1"}}.Encode()
	r.Header.Set("Accept", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json")
	resp, err := next.RoundTrip(r)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		_, _ = io.Copy(io.Discard, resp.Body) // the watch itself will say what is wrong
		return 0, nil
	}
	var list metav1.PartialObjectMetadataList
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
		return 0, err
	}
	return parseVersion(list.ResourceVersion), nil
}

// expired returns the answer of an API server that no longer knows a version.
func expired(r *http.Request) *http.Response {
	return respond(r, metav1.Status{
		Code: http.StatusGone, Reason: metav1.StatusReasonExpired,
		Message: "the store was put back to an older version than the watch has seen",
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: causeRestored}}},
	})
}

// respond returns an answer that refuses a request in the API server's place.
func respond(r *http.Request, why metav1.Status) *http.Response {
	why.TypeMeta, why.Status = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, metav1.StatusFailure
	body, _ := json.Marshal(why) // cannot fail
	return &http.Response{
		Status:     fmt.Sprintf("%d %s", why.Code, http.StatusText(int(why.Code))),
		StatusCode: int(why.Code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, ContentLength: int64(len(body)),
		Body: io.NopCloser(bytes.NewReader(body)), Request: r,
	}
}

func isRestored(err error) bool {
	return err != nil && (apierrors.HasStatusCause(err, causeRestored) ||
		strings.Contains(err.Error(), string(causeRestored)))
}

// known returns the version of an address that whoever reads it from now on cannot fall behind, unless the store was
// put back.
func (c *Client) known(a netip.Addr) uint64 {
	if c.index == nil {
		return 0
	}
	l, _ := c.index.Get(a)
	return l.Version
}

// behindSeen says that an answer has an earlier version than was seen before.
const behindSeen = "the API server has version %d after version %d was seen"

// restored makes the watches list after something showed that the store was put back to an older state, and returns the
// error that says what did.
func (c *Client) restored(what string, args ...any) error {
	if c.behind != nil {
		c.behind()
	}
	return fmt.Errorf(what+": its store was put back to an older state", args...)
}

// unchanged makes sure, while no watch runs, that the object which is replaced or deleted is the one that the index
// has. The API server may be back with a store that was put back to an older state, in which somebody else's write has
// the very version that is believed in. The error is ErrConflict, or why the object could not be read.
func (c *Client) unchanged(ctx context.Context, a netip.Addr, version uint64) error {
	if version == 0 || c.watched == nil || c.watched() || failpoint.Broken("unwatched") {
		return nil
	}
	switch live, err := c.Get(ctx, a); {
	case errors.Is(err, ErrNotFound):
		return fmt.Errorf("%w: %w", ErrConflict, err)
	case err != nil:
		return err
	case c.index.Rewritten(live):
		return fmt.Errorf("%w: %w", ErrConflict,
			c.restored("version %d of %s at the API server is another than was seen", live.Version, a))
	}
	return nil
}
