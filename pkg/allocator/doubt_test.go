package allocator

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/intercept"
)

// late takes requests, tells their senders that the connection was cut, and sends them when it is told to.
type late struct {
	t    testing.TB
	held []func() (*http.Response, error)
}

func (l *late) hook(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	l.held = append(l.held, func() (*http.Response, error) {
		again := r.Clone(context.Background())
		again.Body = io.NopCloser(bytes.NewReader(body))
		return next.RoundTrip(again)
	})
	return nil, errReset
}

// arrive sends what was taken, and returns the status of the last answer.
func (l *late) arrive() (code int) {
	l.t.Helper()
	for _, send := range l.held {
		resp, err := send()
		if err != nil {
			l.t.Fatal(err)
		}
		code = resp.StatusCode
		if err := resp.Body.Close(); err != nil {
			l.t.Error(err)
		}
	}
	l.held = nil
	return code
}

// inDoubt reports whether an address is kept for a write of unknown outcome.
func (r *replica) inDoubt(a netip.Addr) bool {
	_, ok := r.index.Unknown("")[a]
	return ok
}

// Rule 4: an address whose write has an unknown outcome is nobody else's meanwhile, no other is taken for
// the request, and asking again settles it: by one read, and one write if it was not stored.
func TestUnknownOutcome(t *testing.T) {
	for what, test := range map[string]struct {
		hook          intercept.Hook
		materialized  bool
		writes, reads int // of the request that settles it
	}{
		"created":                 {hook: intercept.LoseAnswer(errReset), writes: 0, reads: 2},
		"not created":             {hook: intercept.Fail(errReset), writes: 1, reads: 1},
		"updated":                 {hook: intercept.LoseAnswer(errReset), materialized: true, writes: 0, reads: 2},
		"not updated":             {hook: intercept.Fail(errReset), materialized: true, writes: 1, reads: 1},
		"not updated, says a 500": {hook: intercept.Answer(500, metav1.StatusReasonInternalError, 0), materialized: true, writes: 1, reads: 1},
	} {
		t.Run(what, func(t *testing.T) {
			s := newSite("9")
			r := newReplica(t, s.pool)
			if test.materialized {
				s.materialize(t, r)
				r.picture(s, nil)
			}
			r.watch.Shut() // the watch settles nothing here
			// It says when it began, as what it asks for again must cost nothing.
			mine, other := Request{Host: s.host, Owner: "vm-doubt " + what, StartedAt: ago()(1)}, s.vm("else")
			mend := r.tap.On(writes, test.hook)
			_, err := r.Allocate(t.Context(), mine)
			refused(t, err, ipam.ReasonOutcomeUnknown)
			mend()
			if l, ok := r.index.Leases.Get(s.addr(9)); ok {
				r.changed(lease.Lease{Addr: s.addr(9)}, l) // the watch tells late of what the write was for
			}
			if !r.inDoubt(s.addr(9)) {
				t.Fatal("the address is not in doubt")
			}
			_, err = r.Allocate(t.Context(), other)
			refused(t, err, ipam.ReasonPoolExhausted)
			other.Addrs = []netip.Addr{s.addr(9)}
			_, err = r.Allocate(t.Context(), other)
			refused(t, err, ipam.ReasonAddressInUse)

			r.tap.Forget()
			done := r.adding(t.Context(), mine)
			controlplane.Until(t, "the doubt is settled", func() bool { return !r.inDoubt(s.addr(9)) })
			r.watch.Open() // for the answer
			if got := <-done; got.err != nil || !slices.Equal(got.addrs, []netip.Addr{s.addr(9)}) {
				t.Fatalf("settled to %v, %v", got.addrs, got.err)
			}
			r.cost("settling", test.writes, test.reads)
			if held := s.held(t); len(held) != 1 {
				t.Errorf("held: %v", held)
			}
			if !slices.Equal(r.add(mine), []netip.Addr{s.addr(9)}) {
				t.Error("another answer afterwards")
			}
		})
	}
}

// Rule 4: the watch settles a doubt too, whether it brings the write before or after the failure.
func TestUnknownOutcomeSettledByTheWatch(t *testing.T) {
	for what, before := range map[string]bool{"before the failure": true, "after the failure": false} {
		t.Run(what, func(t *testing.T) {
			s := newSite("9")
			r := newReplica(t, s.pool)
			mine := Request{Host: s.host, Owner: "vm-watched " + what, StartedAt: ago()(1)}
			if !before {
				r.watch.Shut()
			}
			mend := r.tap.On(writes, func(q *http.Request, next http.RoundTripper) (*http.Response, error) {
				resp, err := intercept.LoseAnswer(errReset)(q, next)
				if before {
					controlplane.Until(t, "the watch delivers the write", func() bool { _, ok := r.index.Leases.Get(s.addr(9)); return ok })
				}
				return resp, err
			})
			_, err := r.Allocate(t.Context(), mine)
			refused(t, err, ipam.ReasonOutcomeUnknown)
			mend()
			r.watch.Open()
			controlplane.Until(t, "the watch settles the doubt", func() bool { return !r.inDoubt(s.addr(9)) })
			r.tap.Forget()
			if got := r.one(mine); got != s.addr(9) {
				t.Errorf("got %s", got)
			}
			r.cost("the next request", 0, 1)
			// Released, it is free for others at once.
			r.del(ReleaseRequest{Owner: mine.Owner})
			r.one(s.vm("else"))
		})
	}
}

// Rule 4: a write that is stored long after it was given up finds its address taken by the retry, or by
// nobody else; never is an address given twice or a container left with two.
func TestWriteThatArrivesLate(t *testing.T) {
	for _, materialized := range []bool{false, true} {
		for what, test := range map[string]func(t *testing.T, s site, r *replica, mine Request, l *late){
			"before the retry": func(t *testing.T, s site, r *replica, mine Request, l *late) {
				t.Helper()
				if code := l.arrive(); code >= 300 {
					t.Fatalf("the late write: %d", code)
				}
				if got := r.one(mine); got != s.addr(9) {
					t.Errorf("got %s", got)
				}
			},
			"after the retry": func(t *testing.T, s site, r *replica, mine Request, l *late) {
				t.Helper()
				if got := r.one(mine); got != s.addr(9) {
					t.Errorf("got %s", got)
				}
				version := r.lease(s.addr(9)).Version
				if code := l.arrive(); code != http.StatusConflict {
					t.Errorf("the late write: %d, want a conflict", code)
				}
				if got := r.lease(s.addr(9)).Version; got != version {
					t.Error("the late write changed something")
				}
			},
			"between the retry's read and write": func(t *testing.T, s site, r *replica, mine Request, l *late) {
				t.Helper()
				gate := intercept.NewGate()
				remove := r.tap.On(writes, gate.Hold)
				done := r.adding(t.Context(), mine)
				<-gate.Arrived()
				l.arrive()
				remove()
				gate.Open()
				if got := <-done; got.err != nil || !slices.Equal(got.addrs, []netip.Addr{s.addr(9)}) {
					t.Errorf("got %v, %v", got.addrs, got.err)
				}
			},
			"after the DEL": func(t *testing.T, s site, r *replica, mine Request, l *late) {
				t.Helper()
				r.del(del(mine))
				l.arrive()
				controlplane.Until(t, "the late lease is released", func() bool { return len(s.held(t)) == 0 })
				mine.ContainerID += "-next"
				controlplane.Until(t, "the address is free again", func() bool {
					_, err := r.Allocate(t.Context(), mine)
					return err == nil
				})
			},
			"after the retry and the DEL": func(t *testing.T, s site, r *replica, mine Request, l *late) {
				t.Helper()
				r.one(mine)
				r.del(del(mine))
				if code := l.arrive(); code != http.StatusConflict {
					t.Errorf("the late write: %d, want a conflict", code)
				}
				other := s.vm("else")
				r.one(other)
			},
		} {
			name := map[bool]string{true: "update ", false: "create "}[materialized] + what
			t.Run(name, func(t *testing.T) {
				s := newSite("9")
				r := newReplica(t, s.pool)
				if materialized {
					s.materialize(t, r)
					controlplane.Until(t, "the index has the object",
						func() bool { return r.index.Leases.Len() > 0 && len(r.index.Leases.ByPool(s.pool.Name)) == 1 })
				}
				mine := Request{Host: s.host, Owner: "vm-late " + name, ContainerID: "late " + name}
				l := &late{t: t}
				mend := r.tap.On(writes, l.hook)
				_, err := r.Allocate(t.Context(), mine)
				refused(t, err, ipam.ReasonOutcomeUnknown)
				mend()
				_, err = r.Allocate(t.Context(), s.vm("else"))
				refused(t, err, ipam.ReasonPoolExhausted)
				test(t, s, r, mine, l)
				if held := s.held(t); len(held) != 1 {
					t.Errorf("held: %v, want one", held)
				}
			})
		}
	}
}

// A doubt whose request never comes back ends when its write cannot arrive any more; not before, and not
// while the API server cannot be asked.
func TestForgetUnknown(t *testing.T) {
	s := newSite("9")
	r := newReplica(t, s.pool)
	r.stop() // Run forgets too
	r.forgetWith(t, s, 0, nil, true)
	r.forgetWith(t, s, unknownLife-5*time.Second, nil, true)
	r.forgetWith(t, s, unknownLife+5*time.Second, intercept.Fail(errRefused), true)
	r.forgetWith(t, s, unknownLife+5*time.Second, nil, false)
}

// forgetWith puts an address in doubt, so long ago, and checks whether it still is after a look.
func (r *replica) forgetWith(t *testing.T, s site, age time.Duration, spoil intercept.Hook, want bool) {
	t.Helper()
	r.index.MarkUnknown(s.addr(9), 0, "somebody", r.leases.Now().Add(-age))
	if spoil != nil {
		defer r.tap.On(reads, spoil)()
	}
	r.Repairer.writer.forgetUnknown(t.Context())
	if got := r.inDoubt(s.addr(9)); got != want {
		t.Errorf("in doubt after %s: %v, want %v", age, got, want)
	}
	r.index.Forget(s.addr(9))
}

// A doubt about moving an address to the pod's next container is settled in the same way.
func TestUnknownOutcomeOfARebind(t *testing.T) {
	for what, test := range map[string]struct {
		hook          intercept.Hook
		writes, reads int
	}{
		"stored":     {intercept.LoseAnswer(errReset), 0, 2},
		"not stored": {intercept.Fail(errReset), 1, 2},
	} {
		t.Run(what, func(t *testing.T) {
			s := newSite("9-12")
			r := newReplica(t, s.pool)
			p := newPod(t, "rebind-"+what[:3], s.host, r)
			a := r.one(s.of(p, "one "+what))
			r.watch.Shut()
			mend := r.tap.On(writes, test.hook)
			next := s.of(p, "two "+what)
			_, err := r.Allocate(t.Context(), next)
			refused(t, err, ipam.ReasonOutcomeUnknown)
			mend()
			r.tap.Forget()
			done := r.adding(t.Context(), next)
			controlplane.Until(t, "the doubt is settled", func() bool { return !r.inDoubt(a) })
			r.watch.Open()
			if got := <-done; got.err != nil || !slices.Equal(got.addrs, []netip.Addr{a}) {
				t.Fatalf("got %v, %v; want %s", got.addrs, got.err, a)
			}
			r.cost("settling", test.writes, test.reads)
			if held := s.held(t); len(held) != 1 || held[a] != "two "+what {
				t.Errorf("held: %v", held)
			}
		})
	}
}

// An API server that cannot be asked leaves the doubt as it is: the request is refused, and the address
// stays kept for it.
func TestUnknownOutcomeCannotBeSettled(t *testing.T) {
	s := newSite("9")
	r := newReplica(t, s.pool)
	mine := Request{Host: s.host, Owner: "vm-unsettled"}
	mend := r.tap.On(writes, intercept.Fail(errReset))
	_, err := r.Allocate(t.Context(), mine)
	refused(t, err, ipam.ReasonOutcomeUnknown)
	mend()
	mend = r.tap.On(reads, intercept.Answer(503, metav1.StatusReasonServiceUnavailable, 0))
	_, err = r.Allocate(t.Context(), mine)
	refused(t, err, ipam.ReasonUnavailable)
	if !r.inDoubt(s.addr(9)) {
		t.Error("the doubt is gone")
	}
	mend()
	r.one(mine)
}

// The API server goes away in the middle of requests and comes back: every request that asks again gets
// exactly one address.
func TestAPIServerDown(t *testing.T) {
	s := newSite("9-60")
	r := newReplica(t, s.pool)
	s.materialize(t, r)
	const callers = 16
	results := make(chan error, callers)
	for n := range callers {
		request := Request{Host: s.host, Owner: "vm-down-" + string(rune('a'+n)), ContainerID: "down-" + string(rune('a'+n))}
		go func() {
			var got []netip.Addr
			for { // as a plugin does: again and again, for as long as the answer says so
				ctx, cancel := context.WithTimeout(t.Context(), MaxRequestTime)
				as, err := r.Allocate(ctx, request)
				cancel()
				if t.Context().Err() != nil {
					results <- t.Context().Err()
					return
				}
				if err == nil {
					if got != nil && !slices.Equal(got, addrs(as)) {
						t.Errorf("%s: %v, then %v", request.Owner, got, addrs(as))
					}
					got = addrs(as)
					if l, ok := r.index.Leases.Get(s.addr(60)); ok && l.Owner == "fence" {
						results <- nil
						return
					}
				}
			}
		}()
	}
	if err := cluster.KillAPIServer(); err != nil {
		t.Fatal(err)
	}
	if err := cluster.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	l := r.lease(s.addr(60))
	next, ok := lease.Bind(l, l.Params, lease.Holder{Owner: "fence", IfName: "eth0"}, lease.Retention{}, r.leases.Now())
	if !ok {
		t.Fatalf("%+v", l)
	}
	controlplane.Until(t, "the API server takes writes", func() bool {
		_, err := r.leases.Write(t.Context(), next)
		return err == nil || r.lease(s.addr(60)).Owner == "fence"
	})
	for range callers {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if held := s.held(t); len(held) != callers+1 {
		t.Errorf("%d addresses are held, want %d: %v", len(held), callers+1, held)
	}
}
