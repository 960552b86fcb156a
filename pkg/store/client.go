package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/limiter"
)

// Outcomes of a write or read, apart from success and the API server's own refusals.
var (
	// ErrConflict: nothing was stored, because the object is not in the state that the caller expects.
	ErrConflict = errors.New("the object has changed")
	// ErrNotFound: there is no such object.
	ErrNotFound = errors.New("there is no such object")
	// ErrUnknown: the write may have been stored, or may yet be.
	ErrUnknown = errors.New("the outcome of the write is unknown")
	// ErrUnavailable: nothing was stored, because the API server could not be reached or refuses to serve at present.
	ErrUnavailable = errors.New("the API server is not available")
	// ErrOverloaded: nothing was sent, because the write could not be done before the caller's deadline.
	ErrOverloaded = limiter.ErrOverloaded
)

const (
	// MaxWrites bounds the writes that are in flight, or stored and not yet delivered by the watch. Further writes
	// wait.
	MaxWrites = 128
	// maxLag bounds the time for which an answered write keeps its place while the watch does not deliver it. Releases
	// need no confirmation, so while the watch is silent they continue at a rate of MaxWrites per maxLag.
	maxLag = time.Second
	// WriteTimeout bounds one write. After a write was sent, its answer is awaited even if the caller gave up.
	WriteTimeout = 10 * time.Second
)

// Client reads and writes leases.
type Client struct {
	rest    rest.Interface
	limiter *limiter.Limiter
	clock   *Clock
	// index receives every stored write; nil for none.
	index *index.Index
	// behind is called if an answer shows that the store was restored to an older state.
	behind func()
	// watched reports whether a watch feeds the index; nil if there is no watch.
	watched func() bool
	// lag bounds the time for which an answered write keeps its place.
	lag      time.Duration
	dry      bool
	observer Observer
	counts   *counts
	// pageSize is the number of objects in a page of a list, except the first page of Each.
	pageSize int
}

// New returns a client. The index may be nil; the clock learns from every answer of the API server.
func New(cfg *rest.Config, index *index.Index, clock *Clock) (*Client, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(clock.Wrap)
	r, err := restClient(cfg)
	if err != nil {
		return nil, err
	}
	return &Client{rest: r, limiter: limiter.New(MaxWrites), clock: clock, index: index, counts: &counts{}, lag: maxLag,
		pageSize: laterPages}, nil
}

// restClient returns a REST client for our kinds. Objects are decoded in this package; the API server's errors are
// metav1.Status.
func restClient(cfg *rest.Config) (rest.Interface, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.GroupVersion = &v1.GroupVersion
	cfg.APIPath = "/apis"
	answers := runtime.NewScheme()
	metav1.AddToGroupVersion(answers, schema.GroupVersion{Version: "v1"})
	cfg.NegotiatedSerializer = serializer.NewCodecFactory(answers).WithoutConversion()
	cfg.ContentType, cfg.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	cfg.QPS, cfg.RateLimiter, cfg.Timeout = -1, nil, 0
	return rest.RESTClientFor(cfg)
}

// Dry returns the same client with writes that the API server validates and does not store. The answer to such a write
// is the lease as it was sent.
func (c *Client) Dry() *Client {
	dry := *c
	dry.dry = true
	return &dry
}

// Now returns the API server's time.
func (c *Client) Now() time.Time { return c.clock.Now() }

// Get reads one lease from the API server, never from a cache.
func (c *Client) Get(ctx context.Context, a netip.Addr) (lease.Lease, error) {
	epoch, known := c.epoch(), c.known(a)
	body, err := c.get(ctx, a)
	if err != nil {
		return lease.Lease{Addr: a, Epoch: epoch}, err
	}
	l, err := decodeLease(body)
	if err == nil && l.Version < known {
		return l, fmt.Errorf("%w: %w", ErrUnavailable, c.restored(behindSeen, l.Version, known))
	}
	l.Epoch = epoch
	return l, err
}

// epoch returns the epoch of the versions that are read from now on.
func (c *Client) epoch() uint32 {
	if c.index == nil {
		return 0
	}
	return c.index.Feed.Epoch()
}

func (c *Client) get(ctx context.Context, a netip.Addr) ([]byte, error) {
	return c.ask(ctx, c.lease(a))
}

// lease returns a request for the object of an address.
func (c *Client) lease(a netip.Addr) *rest.Request {
	return c.rest.Get().Resource(v1.IPResource).Name(ipaddr.ObjectName(a))
}

// ask sends a read. client-go repeats it while the API server is too busy, unless the request says otherwise.
func (c *Client) ask(ctx context.Context, request *rest.Request) ([]byte, error) {
	end := c.Begin(ctx, StageRead)
	body, err := answer(request.Do(ctx))
	end(err)
	c.counts.answering.reads(err)
	if err != nil {
		return nil, readError(err)
	}
	return body, nil
}

// Refetch reads an address after a conflict, so that the index gets the actual state instead of the expected one. It
// returns ErrConflict, or the reason why it could not read. The client must have an index.
func (c *Client) Refetch(ctx context.Context, believed lease.Lease) error {
	live, err := c.Get(ctx, believed.Addr)
	switch {
	case errors.Is(err, ErrNotFound):
		c.index.Feed.WroteDelete(believed.Addr, believed.Version, believed.Epoch)
	case err != nil:
		return err
	default:
		c.index.Feed.Wrote(live)
	}
	return ErrConflict
}

// answer returns the body of an answer, or the API server's error.
func answer(r rest.Result) ([]byte, error) {
	if err := r.Error(); err != nil { // Raw alone would not contain the reason
		return nil, err
	}
	return r.Raw()
}

// Write commits a lease: it creates the object if the lease's version is 0, else it replaces the object with exactly
// that version. It returns the lease as stored.
func (c *Client) Write(ctx context.Context, l lease.Lease) (lease.Lease, error) {
	leave, err := c.enter(ctx, classOf(l), l.Pool)
	if err != nil {
		return l, err
	}
	defer func() { leave() }()
	// From here on the write is sent even if the caller gives up: if nobody waited for its answer, its outcome would be
	// unknown.
	sending, cancel := context.WithTimeout(context.WithoutCancel(ctx), WriteTimeout)
	defer cancel()
	if failpoint.Broken("precondition") { // replaces any version
		if live, err := c.Get(sending, l.Addr); err == nil {
			l.Version = live.Version
		}
	}
	body, err := c.encode(sending, l)
	if err != nil {
		return l, err
	}
	var request *rest.Request
	if l.Version == 0 {
		request = c.rest.Post().Resource(v1.IPResource)
	} else {
		request = c.rest.Put().Resource(v1.IPResource).Name(ipaddr.ObjectName(l.Addr))
	}
	if c.dry {
		request = request.Param("dryRun", metav1.DryRunAll)
	}
	var seen uint64
	epoch := c.epoch()
	if c.index != nil {
		seen = c.index.Feed.Seen()
	}
	raw, err := c.send(ctx, sending, request.Body(body), func() error { return c.guarded(ctx, sending, l) })
	switch {
	case err != nil:
		return l, err
	case c.dry: // a created object has no version in a dry run
		return l, nil
	}
	stored, err := decodeLease(raw)
	if err != nil {
		return l, fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	if stored.Epoch = epoch; l.FromSecond {
		stored = stored.Turned() // the caller continues from the same attachment
	}
	if stored.Version <= seen && stored.Version != l.Version { // the answer to a write without changes
		return stored, fmt.Errorf("%w: %w", ErrUnknown, c.restored(behindSeen, stored.Version, seen))
	}
	if c.index != nil {
		c.counts.answers(stored.Version)
		c.index.Feed.Wrote(stored)
		leave = c.onceDelivered(stored.Version, leave)
	}
	return stored, nil
}

func (c *Client) encode(ctx context.Context, l lease.Lease) ([]byte, error) {
	if l.Version == 0 || !l.Foreign {
		return json.Marshal(Object(l))
	}
	stored, err := c.get(ctx, l.Addr)
	if errors.Is(err, ErrNotFound) {
		return nil, ErrConflict
	}
	if err != nil {
		return nil, err
	}
	return mergeInto(stored, l)
}

// Delete removes the object of a lease if it still has the lease's version.
func (c *Client) Delete(ctx context.Context, l lease.Lease) error {
	leave, err := c.enter(ctx, limiter.Take, l.Pool)
	if err != nil {
		return err
	}
	defer leave()
	rv := strconv.FormatUint(l.Version, 10)
	options := metav1.DeleteOptions{
		TypeMeta:      metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		Preconditions: &metav1.Preconditions{ResourceVersion: &rv},
	}
	if c.dry { // if there is a body, the API server ignores parameters
		options.DryRun = []string{metav1.DryRunAll}
	}
	body, err := json.Marshal(options)
	if err != nil {
		return err
	}
	sending, cancel := context.WithTimeout(context.WithoutCancel(ctx), WriteTimeout)
	defer cancel()
	request := c.rest.Delete().Resource(v1.IPResource).Name(ipaddr.ObjectName(l.Addr)).Body(body)
	if _, err := c.send(ctx, sending, request, func() error { return c.guarded(ctx, sending, l) }); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}
	if c.index != nil && !c.dry {
		c.index.Feed.WroteDelete(l.Addr, l.Version, l.Epoch)
	}
	return nil
}

// Each calls fn with every lease that a field selector matches ("" for all), sorted by object name. It decodes while it
// reads, page by page: memory use, here and at the API server, does not grow with the list. All leases are of the same
// point in time, unless reading takes longer than etcd keeps old states (five minutes): then the rest is of a later
// one.
func (c *Client) Each(ctx context.Context, fieldSelector string, fn func(lease.Lease) error) error {
	return c.EachLabelled(ctx, fieldSelector, "", fn)
}

// Sizes of the pages of a list. The API server answers only after it has a whole page: the first page is small, so that
// it comes at once. The others are large, because each costs a request.
const (
	firstPage  = 500
	laterPages = 10_000
)

// EachLabelled does the same as Each, for leases whose objects also match a label selector.
func (c *Client) EachLabelled(
	ctx context.Context, fieldSelector, labelSelector string, fn func(lease.Lease) error,
) error {
	limit, next := firstPage, ""
	for {
		meta, err := c.page(ctx, c.lists(), limit,
			map[string]string{"fieldSelector": fieldSelector, "labelSelector": labelSelector, "continue": next}, fn)
		if later := continueLater(err); later != "" {
			limit, next = c.pageSize, later
			continue
		}
		if err != nil || meta.Continue == "" {
			return err
		}
		limit, next = c.pageSize, meta.Continue
	}
}

func (c *Client) lists() *rest.Request { return c.rest.Get().Resource(v1.IPResource) }

// page streams one page of a list. Only non-empty parameters are sent.
func (c *Client) page(
	ctx context.Context, request *rest.Request, limit int, params map[string]string, fn func(lease.Lease) error,
) (metav1.ListMeta, error) {
	request.Param("limit", strconv.Itoa(limit))
	for name, value := range params {
		if value != "" {
			request = request.Param(name, value)
		}
	}
	return c.each(ctx, request, fn)
}

// continueLater returns the token with which a list continues after etcd no longer has its state; empty if it cannot
// continue.
func continueLater(err error) string {
	var status apierrors.APIStatus
	if !apierrors.IsResourceExpired(err) || !errors.As(err, &status) {
		return ""
	}
	return status.Status().Continue
}

// each streams a list and returns its metadata.
func (c *Client) each(ctx context.Context, request *rest.Request, fn func(lease.Lease) error) (metav1.ListMeta, error) {
	epoch := c.epoch()
	body, err := request.Stream(ctx)
	if err != nil {
		return metav1.ListMeta{}, readError(err)
	}
	defer body.Close()
	return readList(body, func(l lease.Lease) error {
		l.Epoch = epoch
		return fn(l)
	})
}

// Migrating returns the leases whose address another pod also has and of which an attachment matches, as seen from that
// attachment. No field selector finds second attachments, because a CRD has room for only eight.
func (c *Client) Migrating(ctx context.Context, match func(lease.Lease) bool) (out []lease.Lease, err error) {
	err = c.EachLabelled(ctx, "", v1.MigratingLabel, func(l lease.Lease) error {
		if l, ok := l.From(match); ok {
			out = append(out, l)
		}
		return nil
	})
	return out, err
}

// List returns the leases that a field selector matches. Use it for selectors that match few leases.
func (c *Client) List(ctx context.Context, fieldSelector string) (out []lease.Lease, err error) {
	err = c.Each(ctx, fieldSelector, func(l lease.Lease) error {
		out = append(out, l)
		return nil
	})
	return out, err
}

func readError(err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%w: %w", ErrNotFound, err)
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), apierrors.IsBadRequest(err),
		apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		return err
	default:
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
}
