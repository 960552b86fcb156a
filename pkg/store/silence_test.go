package store

import (
	"context"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/intercept"
)

// confirmed writes an address and returns when the feed has it, as an answer to a request waits for it.
func confirmed(t *testing.T, c *Client, l lease.Lease) lease.Lease {
	t.Helper()
	l = write(t, c, l)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := c.index.Feed.WaitSeen(ctx, l.Version); err != nil {
		t.Fatalf("the feed does not tell of version %d: %v", l.Version, err)
	}
	return l
}

// A watch that stands and says nothing is ended when it has not delivered what was written, and the next one goes on
// where it stopped, without a list.
func TestSilentWatchIsReplaced(t *testing.T) {
	t.Parallel()
	tap, gate, addr := &intercept.Tap{}, intercept.NewGate(), subnet()
	release := tap.On(watches, gate.HoldStream)
	c, f := feeding(t, tap)
	<-gate.Arrived()
	controlplane.Until(t, "the feed watches", f.Watching)
	release()
	confirmed(t, c, available(addr(1)))
	if s := f.Stats(); s.Lists != 1 || s.Watches != 2 || s.Silences != 1 {
		t.Errorf("%+v, want one list, and two watches of which one was silent", s)
	}
	controlplane.Until(t, "the watch counts as one that works", func() bool { return f.Silent() == 0 })
}

// Where every watch is silent, lists tell what was written; the row of silent watches is known, and ends when one
// works.
func TestAllWatchesAreSilent(t *testing.T) {
	t.Parallel()
	tap, gate, addr := &intercept.Tap{}, intercept.NewGate(), subnet()
	tap.On(watches, gate.HoldStream)
	c, f := feeding(t, tap)
	<-gate.Arrived()
	controlplane.Until(t, "the feed watches", f.Watching)
	l := confirmed(t, c, available(addr(1)))
	for f.Silent() < SilentWatches {
		l = confirmed(t, c, active(t, l, "c"))
		released, _ := lease.Release(l, now(), lease.Change{})
		l = confirmed(t, c, released)
	}
	if n := f.Stats().Lists; n < 2 {
		t.Errorf("%d lists, want more than the first", n)
	}
	gate.Open()
	l = confirmed(t, c, active(t, l, "d"))
	controlplane.Until(t, "a watch delivers", func() bool {
		if f.Silent() > 0 {
			released, _ := lease.Release(l, now(), lease.Change{})
			l = confirmed(t, c, active(t, confirmed(t, c, released), "d"))
		}
		return f.Silent() == 0
	})
}

// emptyList is a list as of version 5.
func emptyList(r *http.Request, _ http.RoundTripper) (*http.Response, error) {
	return intercept.Respond(r, http.StatusOK, []byte(`{"metadata":{"resourceVersion":"5"},"items":[]}`)), nil
}

// A watch that cannot be opened is no better than a silent one, whether the API server refuses it or says nothing.
func TestWatchCannotBeOpened(t *testing.T) {
	for what, hook := range map[string]intercept.Hook{
		"refused": intercept.Answer(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, 1),
		"no headers": func(r *http.Request, _ http.RoundTripper) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tap := &intercept.Tap{}
				tap.On(lists, emptyList)
				tap.On(watches, hook)
				c := tapped(t, tap)
				f := NewFeed(c)
				stop := start(t, f)
				defer stop()
				<-time.After(time.Minute)
				if !f.Synced() || f.Silent() != 0 {
					t.Fatalf("synced %v, %d silent before anything was written", f.Synced(), f.Silent())
				}
				if f.Err() == nil {
					t.Error("the feed does not know that its watch did not begin")
				}
				c.counts.answers(7)
				<-time.After(5 * time.Second)
				if n := f.Silent(); n < SilentWatches {
					t.Errorf("%d silent seconds, want %d", n, SilentWatches)
				}
			})
		})
	}
}

// streamFor answers with a stream of a text, which ends after a time.
func streamFor(d time.Duration, text string) intercept.Hook {
	return func(r *http.Request, _ http.RoundTripper) (*http.Response, error) {
		reader, writer := io.Pipe()
		go func() {
			defer writer.Close()
			_, _ = io.WriteString(writer, text)
			select {
			case <-time.After(d):
			case <-r.Context().Done():
			}
		}()
		resp := intercept.Respond(r, http.StatusOK, nil)
		resp.Body = reader
		return resp, nil
	}
}

// Watches that open and end at once are no better than silent ones, also while nothing is written; one that delivers a
// bookmark is.
func TestWatchEndsAtOnce(t *testing.T) {
	const bookmark = `{"type":"BOOKMARK","object":{"kind":"BCSNetIP","metadata":{"resourceVersion":"6"}}}`
	for what, c := range map[string]struct {
		stream string
		silent int
	}{
		"empty":      {"", SilentWatches},
		"with news":  {bookmark, 0},
		"with error": {`{"type":"ERROR","object":{"code":500,"reason":"InternalError","message":"x","status":"Failure"}}`, SilentWatches},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tap := &intercept.Tap{}
				tap.On(lists, emptyList)
				tap.On(watches, streamFor(100*time.Millisecond, c.stream))
				f := NewFeed(tapped(t, tap))
				stop := start(t, f)
				defer stop()
				<-time.After(10 * time.Second)
				if n := f.Silent(); n != c.silent || !f.Synced() {
					t.Errorf("%d silent watches after %+v, want %d", n, f.Stats(), c.silent)
				}
			})
		})
	}
}

// A watch that stands for longer than a second and ends, as some proxy ends what is idle, is none of the silent ones.
func TestIdleWatchEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tap := &intercept.Tap{}
		tap.On(lists, emptyList)
		tap.On(watches, streamFor(3*time.Second, ""))
		f := NewFeed(tapped(t, tap))
		stop := start(t, f)
		defer stop()
		<-time.After(time.Minute)
		if s := f.Stats(); f.Silent() > 0 || s.Watches < 10 {
			t.Errorf("%d silent watches after %+v", f.Silent(), s)
		}
	})
}

// After silent watches, one that stands with nothing outstanding is given another chance without an event: a single
// one.
func TestQuietWatchIsTrustedAgain(t *testing.T) {
	c := tapped(t, &intercept.Tap{})
	f := NewFeed(c)
	f.synced.Store(true)
	f.silent.Store(SilentWatches)
	c.counts.answers(7)
	c.index.Feed.Reached(6)
	f.open.Store(&watcher{cut: func() {}})
	var l looks
	see := func(n, want int) {
		t.Helper()
		for range n {
			l.check(f)
		}
		if got := f.Silent(); got != want {
			t.Errorf("%d silent watches, want %d", got, want)
		}
	}
	see(2*wellLooks, SilentWatches)
	c.index.Feed.Reached(7)
	see(wellLooks-1, SilentWatches)
	see(1, SilentWatches-1)
	see(2*wellLooks, SilentWatches-1)
	c.counts.answers(8)
	see(silentLooks+1, SilentWatches)
}
