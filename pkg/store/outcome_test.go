package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/intercept"
)

// proxied is a client that reaches the API server through a proxy.
func proxied(t *testing.T) (*Client, *intercept.Proxy) {
	t.Helper()
	cfg := config(t, nil)
	u, err := url.Parse(cfg.Host)
	if err != nil {
		t.Fatal(err)
	}
	p, err := intercept.NewProxy(u.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	cfg.Host = "https://" + p.Addr()
	return connectTo(t, cfg, index.New()), p
}

type writing struct {
	prepare func(t testing.TB, c *Client, l lease.Lease) lease.Lease
	do      func(ctx context.Context, c *Client, l lease.Lease) error
	done    func(l lease.Lease, err error) bool // whether a read shows that the write was stored
}

// writings are the three ways to change an address.
func writings() map[string]writing {
	store := func(ctx context.Context, c *Client, l lease.Lease) error {
		l.State, l.ContainerID, l.HeldFinalizer = lease.Active, "ours", true
		_, err := c.Write(ctx, l)
		return err
	}
	ours := func(l lease.Lease, err error) bool { return err == nil && l.ContainerID == "ours" }
	return map[string]writing{
		"create": {func(_ testing.TB, _ *Client, l lease.Lease) lease.Lease { return l }, store, ours},
		"update": {write, store, ours},
		"delete": {
			write,
			func(ctx context.Context, c *Client, l lease.Lease) error {
				return c.Delete(ctx, l)
			},
			func(_ lease.Lease, err error) bool { return errors.Is(err, ErrNotFound) },
		},
	}
}

// A write that could not even be sent was not stored, and says so.
func TestConnectionRefused(t *testing.T) {
	c, proxy := proxied(t)
	proxy.Close()
	for what, w := range writings() {
		t.Run(what, func(t *testing.T) {
			l := w.prepare(t, connect(t, nil), available(subnet()(1)))
			if err := w.do(t.Context(), c, l); !errors.Is(err, ErrUnavailable) {
				t.Errorf("%v, want ErrUnavailable", err)
			}
		})
	}
	if _, err := c.Get(t.Context(), subnet()(1)); !errors.Is(err, ErrUnavailable) {
		t.Errorf("get: %v, want ErrUnavailable", err)
	}
	if _, err := c.List(t.Context(), ""); !errors.Is(err, ErrUnavailable) {
		t.Errorf("list: %v, want ErrUnavailable", err)
	}
}

// A connection that is reset while a write is under way tells nothing about the write.
func TestConnectionReset(t *testing.T) {
	for what, w := range writings() {
		for _, arrived := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, arrived %v", what, arrived), func(t *testing.T) {
				direct := connect(t, nil)
				l := w.prepare(t, direct, available(subnet()(1)))
				c, proxy := proxied(t)
				if _, err := c.List(t.Context(), ""); err != nil { // the connection stands
					t.Fatal(err)
				}
				if arrived {
					proxy.KeepAnswers(true)
				} else {
					proxy.KeepRequests(true)
				}
				result := make(chan error, 1)
				go func() { result <- w.do(t.Context(), c, l) }()
				stored := func() bool { return w.done(direct.Get(t.Context(), l.Addr)) }
				if arrived {
					controlplane.Until(t, "the write is stored", stored)
				} else {
					controlplane.Until(t, "the write is on its way", func() bool { return proxy.Kept() > 0 })
				}
				proxy.Reset()
				if err := <-result; !errors.Is(err, ErrUnknown) {
					t.Errorf("%v, want ErrUnknown", err)
				}
				if stored() != arrived {
					t.Errorf("stored %v, want %v", stored(), arrived)
				}
			})
		}
	}
}

// A write that is not answered in time is in doubt, and its caller's place is given back.
func TestWriteTimeout(t *testing.T) {
	t.Parallel() // nearly all of it is waiting
	c, proxy := proxied(t)
	direct := connect(t, nil)
	l := available(subnet()(1))
	read(t, c, write(t, direct, available(subnet()(1))).Addr) // the connection stands
	proxy.KeepAnswers(true)
	began := time.Now()
	_, err := c.Write(t.Context(), active(t, l, "ours"))
	if !errors.Is(err, ErrUnknown) {
		t.Errorf("%v, want ErrUnknown", err)
	}
	if took := time.Since(began); took < WriteTimeout || took > WriteTimeout+time.Minute {
		t.Errorf("it took %s, want %s", took, WriteTimeout)
	}
	if got := read(t, direct, l.Addr); got.ContainerID != "ours" {
		t.Errorf("the write was not stored: %+v", got)
	}
	if s := c.Stats(); s.InFlight != 0 || s.Waiting != 0 {
		t.Errorf("left: %+v", s)
	}
}

// A write outlives its caller, once it is under way.
func TestCallerLeavesDuringTheWrite(t *testing.T) {
	tap, gate := &intercept.Tap{}, intercept.NewGate()
	c := connect(t, tap)
	tap.On(intercept.Writes, gate.Hold)
	ctx, leave := context.WithCancel(t.Context())
	result := make(chan error, 1)
	l := active(t, available(subnet()(1)), "c")
	go func() {
		_, err := c.Write(ctx, l)
		result <- err
	}()
	<-gate.Arrived()
	leave()
	gate.Open()
	if err := <-result; err != nil {
		t.Errorf("%v, want none", err)
	}
	if got := read(t, c, l.Addr); got.ContainerID != "c" {
		t.Errorf("stored: %+v", got)
	}
}

// What the API server says about a write decides what the caller may believe.
func TestWriteErrors(t *testing.T) {
	reset := &net.OpError{Op: "read", Net: "tcp", Err: errors.New("connection reset by peer")}
	raw := func(is func(error) bool) func(error) bool {
		return func(err error) bool {
			for _, e := range []error{ErrConflict, ErrNotFound, ErrUnknown, ErrUnavailable} {
				if errors.Is(err, e) {
					return false
				}
			}
			return is(err)
		}
	}
	is := func(want error) func(error) bool { return func(err error) bool { return errors.Is(err, want) } }
	for what, test := range map[string]struct {
		hook intercept.Hook
		want func(error) bool
	}{
		"400":                          {intercept.Answer(400, metav1.StatusReasonBadRequest, 0), raw(apierrors.IsBadRequest)},
		"401":                          {intercept.Answer(401, metav1.StatusReasonUnauthorized, 0), raw(apierrors.IsUnauthorized)},
		"403":                          {intercept.Answer(403, metav1.StatusReasonForbidden, 0), raw(apierrors.IsForbidden)},
		"404":                          {intercept.Answer(404, metav1.StatusReasonNotFound, 0), is(ErrConflict)},
		"409, there is one":            {intercept.Answer(409, metav1.StatusReasonAlreadyExists, 0), is(ErrConflict)},
		"409, it changed":              {intercept.Answer(409, metav1.StatusReasonConflict, 0), is(ErrConflict)},
		"413":                          {intercept.Answer(413, metav1.StatusReasonRequestEntityTooLarge, 0), raw(apierrors.IsRequestEntityTooLargeError)},
		"422":                          {intercept.Answer(422, metav1.StatusReasonInvalid, 0), raw(apierrors.IsInvalid)},
		"500":                          {intercept.Answer(500, metav1.StatusReasonInternalError, 0), is(ErrUnknown)},
		"500 of a proxy":               {bare(500), is(ErrUnknown)},
		"502 of a proxy":               {bare(502), is(ErrUnknown)},
		"503":                          {intercept.Answer(503, metav1.StatusReasonServiceUnavailable, 0), is(ErrUnknown)},
		"504":                          {intercept.Answer(504, metav1.StatusReasonTimeout, 0), is(ErrUnknown)},
		"504 of a proxy":               {bare(504), is(ErrUnknown)},
		"an answer that is no object":  {bare(200), is(ErrUnknown)},
		"reset":                        {intercept.LoseAnswer(reset), is(ErrUnknown)},
		"ended":                        {intercept.LoseAnswer(io.ErrUnexpectedEOF), is(ErrUnknown)},
		"name of the host not found":   {intercept.Fail(&net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host"}}), is(ErrUnavailable)},
		"TLS does not come to terms":   {intercept.Fail(&net.OpError{Op: "remote error", Err: errors.New("tls: bad certificate")}), is(ErrUnknown)},
		"the answer's body is cut off": {cutBody, is(ErrUnknown)},
	} {
		t.Run(what, func(t *testing.T) {
			tap := &intercept.Tap{}
			c := connect(t, tap)
			tap.On(intercept.Writes, test.hook)
			if _, err := c.Write(t.Context(), active(t, available(subnet()(1)), "c")); err == nil || !test.want(err) {
				t.Errorf("%v", err)
			}
			if n := tap.Count(intercept.Writes); n != 1 {
				t.Errorf("sent %d times, want once", n)
			}
		})
	}
}

func bare(code int) intercept.Hook {
	return func(r *http.Request, _ http.RoundTripper) (*http.Response, error) {
		resp := intercept.Respond(r, code, []byte("<html>an appliance on the way</html>"))
		resp.Header.Set("Content-Type", "text/html")
		return resp, nil
	}
}

func cutBody(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	resp, err := next.RoundTrip(r)
	if err == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(io.LimitReader(resp.Body, 40), failing{io.ErrUnexpectedEOF}), resp.Body}
	}
	return resp, err
}

type failing struct{ error }

func (f failing) Read([]byte) (int, error) { return 0, f.error }

// An answer of the kind 5xx with Retry-After is no leave to send a write again: the first may have been
// stored, and the conflict with it would pass for somebody else's.
func TestServerErrorIsNotRetried(t *testing.T) {
	for what, w := range writings() {
		t.Run(what, func(t *testing.T) {
			tap := &intercept.Tap{}
			c := connect(t, tap)
			l := w.prepare(t, c, available(subnet()(1)))
			tap.Forget()
			tap.On(intercept.Writes, func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
				if _, err := intercept.LoseAnswer(nil)(r, next); err != nil {
					return nil, err
				}
				return intercept.Answer(504, metav1.StatusReasonTimeout, 1)(r, next)
			})
			if err := w.do(t.Context(), c, l); !errors.Is(err, ErrUnknown) {
				t.Errorf("%v, want ErrUnknown", err)
			}
			if n := tap.Count(intercept.Writes); n != 1 {
				t.Errorf("sent %d times, want once", n)
			}
			if !w.done(c.Get(t.Context(), l.Addr)) {
				t.Error("the write was not stored: this test proves nothing")
			}
		})
	}
}

// The API server's fairness may turn a write away: it is sent again when the API server says so, while
// the caller waits, and was not stored otherwise.
func TestTooManyRequests(t *testing.T) {
	t.Parallel()
	for what, w := range writings() {
		t.Run(what, func(t *testing.T) {
			tap := &intercept.Tap{}
			c := connect(t, tap)
			l := w.prepare(t, c, available(subnet()(1)))
			tap.Forget()
			busy := intercept.Answer(429, metav1.StatusReasonTooManyRequests, 1)
			remove := tap.On(intercept.Writes, busy)
			ctx, leave := context.WithCancel(t.Context())
			result := make(chan error, 1)
			go func() { result <- w.do(ctx, c, l) }()
			controlplane.Until(t, "the write was turned away", func() bool { return tap.Count(intercept.Writes) > 0 })
			leave()
			if err := <-result; !errors.Is(err, ErrUnavailable) {
				t.Errorf("%v, want ErrUnavailable", err)
			}
			go func() { result <- w.do(t.Context(), c, l) }()
			sent := tap.Count(intercept.Writes)
			controlplane.Until(t, "the write was turned away again", func() bool { return tap.Count(intercept.Writes) > sent })
			remove()
			if err := <-result; err != nil {
				t.Error(err)
			}
			if !w.done(c.Get(t.Context(), l.Addr)) {
				t.Error("the write was not stored")
			}
		})
	}
}

func TestReadErrors(t *testing.T) {
	is := func(want error) func(error) bool { return func(err error) bool { return errors.Is(err, want) } }
	for what, test := range map[string]struct {
		hook intercept.Hook
		want func(error) bool
	}{
		"403": {intercept.Answer(403, metav1.StatusReasonForbidden, 0), apierrors.IsForbidden},
		"401": {intercept.Answer(401, metav1.StatusReasonUnauthorized, 0), apierrors.IsUnauthorized},
		"404": {intercept.Answer(404, metav1.StatusReasonNotFound, 0), is(ErrNotFound)},
		"410": {intercept.Answer(410, metav1.StatusReasonExpired, 0), apierrors.IsResourceExpired},
		"429": {intercept.Answer(429, metav1.StatusReasonTooManyRequests, 0), is(ErrUnavailable)},
		"500": {intercept.Answer(500, metav1.StatusReasonInternalError, 0), is(ErrUnavailable)},
		"503": {intercept.Answer(503, metav1.StatusReasonServiceUnavailable, 0), is(ErrUnavailable)},
		"cut": {intercept.Fail(&net.OpError{Op: "read", Err: errors.New("no route to host")}), is(ErrUnavailable)},
	} {
		t.Run(what, func(t *testing.T) {
			tap := &intercept.Tap{}
			c := connect(t, tap)
			tap.On(intercept.Method(http.MethodGet), test.hook)
			if _, err := c.Get(t.Context(), subnet()(1)); !test.want(err) {
				t.Errorf("get: %v", err)
			}
			if _, err := c.List(t.Context(), ""); !test.want(err) {
				t.Errorf("list: %v", err)
			}
		})
	}
}

// The real API server's refusals: no rights, no identity, an object that breaks the rules.
func TestRealRefusals(t *testing.T) {
	nobody, err := cluster.ServiceAccountConfig(t.Context(), "default", "nobody")
	if err != nil {
		t.Fatal(err)
	}
	l := active(t, available(subnet()(1)), "c")
	if _, err := connectTo(t, nobody, nil).Write(t.Context(), l); !apierrors.IsForbidden(err) ||
		!strings.Contains(err.Error(), `User "system:serviceaccount:default:nobody" cannot create`) {
		t.Errorf("without rights: %v", err)
	}
	if err := connectTo(t, nobody, nil).Delete(t.Context(), lease.Lease{Addr: l.Addr, Params: l.Params, Version: 1}); !apierrors.IsForbidden(err) {
		t.Errorf("delete without rights: %v", err)
	}
	stranger := rest.CopyConfig(nobody)
	stranger.BearerToken = "x"
	if _, err := connectTo(t, stranger, nil).Write(t.Context(), l); !apierrors.IsUnauthorized(err) {
		t.Errorf("without identity: %v", err)
	}
	wrong := l
	wrong.Bits = 0
	if _, err := connect(t, nil).Write(t.Context(), wrong); !apierrors.IsInvalid(err) ||
		!strings.Contains(err.Error(), "spec.mask") {
		t.Errorf("mask 0: %v", err)
	}
	if l, err := connect(t, nil).Get(t.Context(), l.Addr); !errors.Is(err, ErrNotFound) {
		t.Errorf("something was stored: %+v, %v", l, err)
	}
}

// The API server goes and comes back: what was refused meanwhile was not stored.
func TestAPIServerDown(t *testing.T) {
	c := connectTo(t, config(t, nil), index.New())
	feed := NewFeed(c)
	start(t, feed)
	controlplane.Until(t, "the feed has a list", feed.Synced)
	a := subnet()(1)
	first := write(t, c, available(a))
	controlplane.Until(t, "the watch delivers it",
		func() bool { return c.index.Feed.WaitSeen(t.Context(), first.Version) == nil })
	if err := cluster.KillAPIServer(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write(t.Context(), active(t, first, "c")); !errors.Is(err, ErrUnavailable) &&
		!errors.Is(err, ErrUnknown) {
		t.Errorf("written to a dead API server: %v", err)
	}
	if err := cluster.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := read(t, c, a); got.Version != first.Version {
		t.Errorf("something was stored: %+v", got)
	}
	held := write(t, c, active(t, first, "d"))
	back, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := c.index.Feed.WaitSeen(back, held.Version); err != nil {
		t.Fatalf("the watch is not back: %v", err)
	}
}
