package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Causes in the answer to a watch that must list first.
const (
	// causeRestored: the watch began before the store was restored.
	causeRestored metav1.CauseType = "StoreRestored"
	// causeAway: the API server was away, and may have come back with another store.
	causeAway metav1.CauseType = "APIServerWasAway"
)

// Restores notices, for all watches of a process, that the API server's store was restored to an older state.
//
// A watch that goes through Wrap first reads the API server's current version. If that is lower than a version that the
// watcher has seen, the store was restored. Such a server would accept the watch and send nothing until its versions
// have caught up. Therefore the watcher gets the answer that its version has expired, and lists. The read is
// consistent, so a server that merely lags is not mistaken for one with a restored store.
//
// A watch that begins after the versions have caught up notices nothing, and would miss what was lost in between. So a
// restore that one watch notices counts for all: the others end, and list before they continue. A watch that ended
// early, or did not begin, lists, too, because the API server was away and may have come back with another store.
// Watches with the same request count as one.
type Restores struct {
	mu   sync.Mutex
	open map[*restorable]struct{}
	// known are the watches so far, by their requests.
	known map[string]missed
}

// missed is the reason for which a watch must list. If the watch did not begin, from is its intended start version: a
// watch that begins at another version has listed since.
type missed struct {
	gap
	from uint64
	// ended is the time of the last orderly end of a watch; zero if there was none since.
	ended time.Time
}

// longestPause is the longest pause between two watches without a list. A store cannot be restored and served again in
// less, and a process that was stopped for longer does not know whether the API server was away.
const longestPause = 2 * time.Second

// gap is the kind of changes that a watch may have missed since its last list.
type gap int

const (
	noGap gap = iota
	// away: the API server was away.
	away
	// putBack: the store was restored.
	putBack
)

// restorable is a watch that is running or beginning.
type restorable struct {
	asks string
	from uint64
	ctx  context.Context
	end  context.CancelFunc
	// begun is the time of its beginning, and lasts the time after which it ends if nothing happens.
	begun time.Time
	lasts time.Duration
}

// NewRestores returns the Restores of a process.
func NewRestores() *Restores {
	return &Restores{open: map[*restorable]struct{}{}, known: map[string]missed{}}
}

// Noticed makes all watches list, except those of a resource such as "pods", whose users already know.
func (s *Restores) Noticed(resource string) {
	s.others(func(asks string) bool {
		path, _, _ := strings.Cut(asks, "?")
		return strings.HasSuffix(path, "/"+resource)
	})
}

// others makes all watches list, except those that already know.
func (s *Restores) others(knows func(asks string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for asks := range s.known {
		if s.known[asks] = (missed{gap: putBack}); knows(asks) {
			s.known[asks] = missed{}
		}
	}
	for w := range s.open {
		if !knows(w.asks) {
			w.end()
		}
	}
}

// begins records a watch. It returns the gap for which the watch must list first. A watch that receives the whole state
// anyway has none.
func (s *Restores) begins(w *restorable, whole bool) gap {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.known[w.asks]
	if before.gap == noGap && !before.ended.IsZero() && time.Since(before.ended) > longestPause {
		before.gap = away
	}
	s.known[w.asks] = missed{}
	hasListed := before.gap == away && before.from != 0 && before.from != w.from
	if whole || hasListed || failpoint.Broken("restores") {
		before.gap = noGap
	}
	if before.gap == noGap {
		s.open[w] = struct{}{}
	}
	return before.gap
}

// broke records that a watch did not begin, or that it ended early; from is 0 in the latter case.
func (s *Restores) broke(w *restorable, from uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known[w.asks].gap == noGap && !failpoint.Broken("away") {
		s.known[w.asks] = missed{gap: away, from: from}
	}
}

// endedInOrder records that a watch ended when it should.
func (s *Restores) endedInOrder(w *restorable) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known[w.asks].gap == noGap {
		s.known[w.asks] = missed{ended: time.Now()}
	}
}

func (s *Restores) ends(w *restorable) {
	w.end()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, w)
}

// Wrap returns a transport that notices restores in its watches.
func (s *Restores) Wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		q := r.URL.Query()
		if !slices.Contains([]string{"true", "1"}, q.Get("watch")) {
			return next.RoundTrip(r)
		}
		ctx, cancel := context.WithCancel(r.Context())
		w := &restorable{
			ctx: ctx, end: cancel, from: parseVersion(q.Get("resourceVersion")), begun: time.Now(),
			lasts: math.MaxInt64,
			// A watch of whole objects and one of their metadata are different watches.
			asks: r.URL.Path + "?" + selectors(q).Encode() + " " + r.Header.Get("Accept"),
		}
		if seconds, err := strconv.Atoi(q.Get("timeoutSeconds")); err == nil {
			w.lasts = time.Duration(seconds) * time.Second
		}
		whole := q.Get("sendInitialEvents") != "" || w.from == 0
		if must := s.begins(w, whole); must != noGap {
			cancel()
			return expired(r, must), nil
		}
		resp, err := s.watch(next, r.WithContext(ctx), w, whole)
		if err != nil || resp.StatusCode >= http.StatusInternalServerError {
			s.broke(w, w.from)
		}
		if err != nil {
			s.ends(w)
			return nil, err
		}
		resp.Body = &restorableBody{ReadCloser: resp.Body, of: s, w: w, streams: resp.StatusCode == http.StatusOK}
		return resp, nil
	})
}

func (s *Restores) watch(next http.RoundTripper, r *http.Request, w *restorable, whole bool) (*http.Response, error) {
	if whole {
		return next.RoundTrip(r)
	}
	switch present, refused, err := presentVersion(next, r); {
	case err != nil:
		return nil, err
	case refused != nil:
		return refused, nil // otherwise the watch could begin at an unverified store
	case present != 0 && present < w.from:
		s.others(func(asks string) bool { return asks == w.asks })
		return expired(r, putBack), nil
	}
	return next.RoundTrip(r)
}

// restorableBody is the body of an answer to a watch.
type restorableBody struct {
	io.ReadCloser
	of *Restores
	w  *restorable
	// streams reports whether the answer is a stream, not a refusal.
	streams bool
}

// Read records an end that this process did not cause. An orderly end comes in time, and not as an error.
func (b *restorableBody) Read(p []byte) (int, error) {
	const late = 5 * time.Second
	n, err := b.ReadCloser.Read(p)
	if err != nil && b.streams && b.w.ctx.Err() == nil {
		lasted := time.Since(b.w.begun)
		if !errors.Is(err, io.EOF) || lasted < b.w.lasts || lasted-b.w.lasts > late {
			b.of.broke(b.w, 0)
		} else {
			b.of.endedInOrder(b.w)
		}
	}
	return n, err
}

func (b *restorableBody) Close() error {
	err := b.ReadCloser.Close()
	b.of.ends(b.w)
	return err
}

// selectors returns the parameters that select the objects of a request.
func selectors(q url.Values) url.Values {
	some := url.Values{}
	for _, name := range []string{"labelSelector", "fieldSelector"} {
		if values := q[name]; len(values) > 0 {
			some[name] = values
		}
	}
	return some
}

// presentVersion returns the current version of the resource of a watch, 0 if the API server does not provide one. If
// the API server refuses the list, it returns that answer.
func presentVersion(next http.RoundTripper, watch *http.Request) (uint64, *http.Response, error) {
	r := watch.Clone(watch.Context())
	q := selectors(r.URL.Query()) // a permission may be limited to one name
	q.Set("limit", "1")
	r.URL.RawQuery = q.Encode()
	r.Header.Set("Accept", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json")
	resp, err := next.RoundTrip(r)
	if err != nil || resp.StatusCode != http.StatusOK {
		return 0, resp, err
	}
	defer resp.Body.Close()
	var list metav1.PartialObjectMetadataList
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
		return 0, nil, err
	}
	return parseVersion(list.ResourceVersion), nil, nil
}

// expired returns an answer that says that a version is no longer available.
func expired(r *http.Request, why gap) *http.Response {
	status := metav1.Status{
		Code: http.StatusGone, Reason: metav1.StatusReasonExpired,
		Message: "the API server was away, and may have come back with another store",
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: causeAway}}},
	}
	if why == putBack {
		status.Message = "the store was put back to an older version than the watch has seen"
		status.Details.Causes[0].Type = causeRestored
	}
	return respond(r, status)
}

// respond returns an answer that refuses a request in place of the API server.
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

func isRestored(err error) bool { return caused(err, causeRestored) }

func caused(err error, by metav1.CauseType) bool {
	return err != nil && (apierrors.HasStatusCause(err, by) || strings.Contains(err.Error(), string(by)))
}

// known returns a version of an address below which no later read can be, unless the store was restored.
func (c *Client) known(a netip.Addr) uint64 {
	if c.index == nil {
		return 0
	}
	l, _ := c.index.Leases.Get(a)
	return l.Version
}

// behindSeen is the message for an answer with an older version than one seen before.
const behindSeen = "the API server has version %d after version %d was seen"

// restored makes the watches list after evidence that the store was restored to an older state, and returns the error
// with that evidence.
func (c *Client) restored(what string, args ...any) error {
	if c.behind != nil {
		c.behind()
	}
	return fmt.Errorf(what+": its store was put back to an older state", args...)
}

// guarded makes sure, before each attempt of a write, that it replaces or deletes the object on which the decision was
// based. After the store was restored, the version alone does not prove that, because another write may have the same
// version. So the version must be of the current epoch, and while no watch runs, the object is read first. The error is
// ErrConflict, or ErrUnavailable if the object could not be read or is different: then the index must be rebuilt first.
func (c *Client) guarded(caller, sending context.Context, l lease.Lease) error {
	if c.index == nil {
		return nil
	}
	if err := c.sameEpoch(l); err != nil || l.Version == 0 {
		return err
	}
	if c.watched == nil || c.watched() || failpoint.Broken("unwatched") {
		return nil
	}
	switch live, err := c.Get(sending, l.Addr); {
	case errors.Is(err, ErrNotFound):
		return fmt.Errorf("%w: %w", ErrConflict, err)
	case err != nil:
		return err
	case caller.Err() != nil: // nobody waits any more, and nothing was sent
		return fmt.Errorf("%w: %w", ErrUnavailable, caller.Err())
	case c.index.Feed.Rewritten(live):
		return fmt.Errorf("%w: %w", ErrUnavailable,
			c.restored("version %d of %s at the API server is another than was seen", live.Version, l.Addr))
	}
	return c.sameEpoch(l) // the index may have been rebuilt meanwhile
}

// sameEpoch returns ErrConflict for a write based on a version of an earlier epoch. An object that a pool creates for a
// free address has no epoch.
func (c *Client) sameEpoch(l lease.Lease) error {
	if l.Version == 0 && l.State == lease.Available || l.Epoch == c.epoch() {
		return nil
	}
	return fmt.Errorf("%w: it was decided on before the API server's store was put back to an older state", ErrConflict)
}
