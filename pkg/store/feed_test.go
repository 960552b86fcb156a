package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/intercept"
)

// The feed lists once, streams, and then follows the watch: what is made, changed and removed, by whom
// ever, is in the index.
func TestFeed(t *testing.T) {
	direct, addr := connect(t, nil), subnet()
	before := write(t, direct, active(t, available(addr(1)), "c"))
	c, f := feeding(t, nil)
	controlplane.Until(t, "the feed has a list", f.Synced)
	if got, _ := c.index.Leases.Get(before.Addr); got.Version != before.Version || got.ContainerID != "c" {
		t.Errorf("the list brought %+v", got)
	}
	made := write(t, direct, available(addr(2)))
	controlplane.Until(t, "the watch brings a new object", has(c.index, made.Addr, made.Version))
	released, _ := lease.Release(before, now(), lease.Change{})
	changed := write(t, direct, released)
	controlplane.Until(t, "the watch brings a change", has(c.index, changed.Addr, changed.Version))
	if err := direct.Delete(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	controlplane.Until(t, "the watch brings a deletion", func() bool { _, ok := c.index.Leases.Get(made.Addr); return !ok })
	if s := f.Stats(); s.Lists != 1 || s.Watches != 1 {
		t.Errorf("%d lists and %d watches, want one of each", s.Lists, s.Watches)
	}
}

// The index holds what the list holds, whatever the size; and Synced says so not before all of it is there.
func TestFeedIsSyncedWithTheWholeList(t *testing.T) {
	tap, gate := &intercept.Tap{}, intercept.NewGate()
	tap.On(lists, gate.HoldStream)
	direct, addr := connect(t, nil), subnet()
	for n := range 50 {
		write(t, direct, available(addr(n+1)))
	}
	c, f := feeding(t, tap)
	<-gate.Arrived()
	if f.Synced() || c.index.Leases.Len() != 0 {
		t.Errorf("synced %v with %d entries before the list has come", f.Synced(), c.index.Leases.Len())
	}
	gate.Open()
	controlplane.Until(t, "the feed has a list", f.Synced)
	all, err := direct.List(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(all, func(a, b lease.Lease) int { return a.Addr.Compare(b.Addr) })
	if diff := cmp.Diff(all, c.index.Leases.Find(func(lease.Lease) bool { return true }), compareAddrs); diff != "" {
		t.Errorf("-API server +index:\n%s", diff)
	}
}

// A watch that is cut misses nothing: the leases are listed, once each time.
func TestWatchIsCut(t *testing.T) {
	tap, gate := &intercept.Tap{}, intercept.NewGate()
	gate.Open()
	tap.On(watches, gate.HoldStream)
	direct, addr := connect(t, nil), subnet()
	c, f := feeding(t, tap)
	controlplane.Until(t, "the feed has a list", f.Synced)
	first := write(t, direct, available(addr(1)))
	controlplane.Until(t, "the watch works", has(c.index, first.Addr, first.Version))
	for n := range 3 {
		controlplane.Until(t, "it watches again", func() bool { return f.Stats().Watches == uint64(n)+1 })
		heard := write(t, direct, available(addr(30+n)))
		controlplane.Until(t, "the watch works", has(c.index, heard.Addr, heard.Version))
		gate.Shut()
		kept := write(t, direct, active(t, available(addr(10+n)), "c"))
		gone := write(t, direct, available(addr(20+n)))
		if err := direct.Delete(t.Context(), gone); err != nil {
			t.Fatal(err)
		}
		gate.Cut()
		gate.Open()
		controlplane.Until(t, "the change made meanwhile", has(c.index, kept.Addr, kept.Version))
		controlplane.Until(t, "the deletion made meanwhile", func() bool { _, ok := c.index.Leases.Get(gone.Addr); return !ok })
	}
	if n := f.Stats().Lists; n != 4 || f.Restarts() != 0 {
		t.Errorf("%d lists, %d restores, want 4 and none", n, f.Restarts())
	}
}

// A replica that was away for too long is told that its version has expired. It lists again, as new as
// what it knew or newer.
func TestExpired(t *testing.T) {
	for what, expired := range map[string]intercept.Hook{
		"by the answer": intercept.Answer(410, metav1.StatusReasonExpired, 0),
		"by an event": func(r *http.Request, _ http.RoundTripper) (*http.Response, error) {
			return intercept.Respond(r, 200, []byte(expiredFrame)), nil
		},
	} {
		t.Run(what, func(t *testing.T) {
			tap, gate := &intercept.Tap{}, intercept.NewGate()
			gate.Open()
			tap.On(watches, gate.HoldStream)
			direct, addr := connect(t, nil), subnet()
			c, f := feeding(t, tap)
			controlplane.Until(t, "the feed has a list", f.Synced)
			gone, kept := write(t, direct, available(addr(1))), write(t, direct, available(addr(2)))
			controlplane.Until(t, "the watch works", has(c.index, kept.Addr, kept.Version))

			var asked atomic.Value
			remove := tap.On(watches, expired)
			tap.On(lists, func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
				remove()
				asked.CompareAndSwap(nil, r.URL.Query().Get("resourceVersionMatch")+" "+versionOf(r)) // the first
				return next.RoundTrip(r)
			})
			gate.Shut()
			if err := direct.Delete(t.Context(), gone); err != nil {
				t.Fatal(err)
			}
			held := write(t, direct, active(t, kept, "c"))
			f.open.Load().end(false) // in order, as after its time
			gate.Open()
			controlplane.Until(t, "what changed meanwhile", has(c.index, held.Addr, held.Version))
			controlplane.Until(t, "what went meanwhile", func() bool { _, ok := c.index.Leases.Get(gone.Addr); return !ok })
			if got, want := asked.Load(), fmt.Sprintf("NotOlderThan %d", kept.Version); got != want {
				t.Errorf("listed %v, want %s", got, want)
			}
			after := write(t, direct, available(addr(3)))
			controlplane.Until(t, "the watch works again", has(c.index, after.Addr, after.Version))
		})
	}
}

// The index is filled in pages of one state: what changes while they are read comes by the watch.
func TestFeedListsInPages(t *testing.T) {
	direct, addr := connect(t, nil), subnet()
	for n := range 8 {
		write(t, direct, available(addr(n)))
	}
	tap, pages := &intercept.Tap{}, atomic.Int64{}
	var moved lease.Lease
	tap.On(lists, func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if pages.Add(1) == 2 {
			l, err := direct.Get(r.Context(), addr(7))
			if err != nil {
				return nil, err
			}
			moved = write(t, direct, active(t, l, "c"))
		}
		return next.RoundTrip(r)
	})
	c := connectTo(t, config(t, tap), index.New())
	c.pageSize = 3
	f := NewFeed(c)
	start(t, f)
	controlplane.Until(t, "the feed has a list", f.Synced)
	controlplane.Until(t, "what changed between the pages", has(c.index, addr(7), moved.Version))
	for n := range 8 {
		if _, ok := c.index.Leases.Get(addr(n)); !ok {
			t.Errorf("%s is not in the index", addr(n))
		}
	}
	if n := pages.Load(); n < 3 {
		t.Errorf("the list came in %d pages", n)
	}
}

// A version that the API server has not reached, as after a restore of etcd, does not stop the feed: it
// lists what there is.
func TestVersionOfTheFuture(t *testing.T) {
	t.Parallel()
	tap, gate := &intercept.Tap{}, intercept.NewGate()
	gate.Open()
	tap.On(watches, gate.HoldStream)
	direct, addr := connect(t, nil), subnet()
	c, f := feeding(t, tap)
	controlplane.Until(t, "the feed has a list", f.Synced)
	<-gate.Arrived()
	tap.On(watches, intercept.Answer(410, metav1.StatusReasonExpired, 0))
	var relisted atomic.Bool
	tap.On(lists, func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if versionOf(r) != "" {
			q := r.URL.Query()
			q.Set("resourceVersion", "999999999")
			r = r.Clone(r.Context())
			r.URL.RawQuery = q.Encode()
		} else {
			relisted.Store(true)
		}
		return next.RoundTrip(r)
	})
	gate.Cut()
	controlplane.Until(t, "the feed lists without a version", relisted.Load)
	tap.On(watches, gate.HoldStream)
	l := write(t, direct, available(addr(1)))
	controlplane.Until(t, "the feed works again", has(c.index, l.Addr, l.Version))
}

// After the API server was out of reach the leases are listed as the store has them, not as new as what was seen: a
// store that was put back would keep the list waiting until it has come that far. A watch that went on where it stopped
// would miss what came before that.
func TestListAfterAnOutage(t *testing.T) {
	for name, answer := range map[string]intercept.Hook{
		"not available": intercept.Answer(503, metav1.StatusReasonServiceUnavailable, 0),
		"refused": func(*http.Request, http.RoundTripper) (*http.Response, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
		},
		"too busy, as it has just started": intercept.Answer(429, metav1.StatusReasonTooManyRequests, 1),
		"back at once": func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
			return next.RoundTrip(r)
		},
	} {
		t.Run(name, func(t *testing.T) {
			tap, gate := &intercept.Tap{}, intercept.NewGate()
			gate.Open()
			tap.On(watches, gate.HoldStream)
			direct, addr := connect(t, nil), subnet()
			c, f := feeding(t, tap)
			controlplane.Until(t, "the feed has a list", f.Synced)
			first := write(t, direct, available(addr(1)))
			controlplane.Until(t, "the watch works", has(c.index, first.Addr, first.Version))
			var asked atomic.Value
			away := tap.On(watches, answer)
			tap.On(lists, func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
				away()
				asked.CompareAndSwap(nil, "version "+versionOf(r)) // the first
				return next.RoundTrip(r)
			})
			gate.Cut()
			l := write(t, direct, available(addr(2)))
			controlplane.Until(t, "it has listed", func() bool { return asked.Load() != nil })
			controlplane.Until(t, "the feed works again", has(c.index, l.Addr, l.Version))
			if got := asked.Load(); got != "version " {
				t.Errorf("listed as of %v", got)
			}
		})
	}
}

// While no watch runs, the API server may be back with a store that was put back to an older state: a write replaces
// nothing of another content, and deletes nothing, although the versions are the same.
func TestWriteWhileNoWatchRuns(t *testing.T) {
	direct, addr := connect(t, nil), subnet()
	n := 0
	for name, tc := range map[string]struct {
		watched, asSeen, gone bool
		do                    func(*testing.T, *Client, lease.Lease) error
		want                  error
	}{
		"a write":                 {do: release, want: ErrUnavailable},
		"a deletion":              {do: remove, want: ErrUnavailable},
		"the object has gone":     {do: release, gone: true, want: ErrConflict},
		"it is as it was seen":    {do: release, asSeen: true},
		"a watch runs":            {do: release, watched: true}, // and the version alone is asked for
		"a watch runs, and it is": {do: release, watched: true, asSeen: true},
	} {
		n++
		t.Run(name, func(t *testing.T) {
			c := connectTo(t, config(t, nil), index.New())
			noticed := false
			c.watched, c.behind = func() bool { return tc.watched }, func() { noticed = true }
			now := write(t, direct, active(t, write(t, direct, available(addr(n))), "now"))
			believed := now
			if !tc.asSeen {
				believed = at(active(t, available(addr(n)), "before"), now.Version)
			}
			c.index.Feed.Watched(believed)
			if tc.gone {
				if err := objects(t).Delete(t.Context(), ipaddr.ObjectName(now.Addr), metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
				patch(t, now.Addr, `{"metadata":{"finalizers":null}}`)
			}
			if err := tc.do(t, c, believed); !errors.Is(err, tc.want) || noticed != errors.Is(tc.want, ErrUnavailable) {
				t.Errorf("%v, noticed %v", err, noticed)
			}
			if errors.Is(tc.want, ErrUnavailable) {
				unwritten(t, now)
			}
		})
	}
}

func release(t *testing.T, c *Client, l lease.Lease) error {
	t.Helper()
	next, _ := lease.Release(l, c.Now(), lease.Change{})
	_, err := c.Write(t.Context(), next)
	return err
}

func remove(t *testing.T, c *Client, l lease.Lease) error {
	t.Helper()
	return c.Delete(t.Context(), l)
}

// at is a lease at a version.
func at(l lease.Lease, version uint64) lease.Lease {
	l.Version = version
	return l
}

// unwritten fails the test if the object of a lease is not as it was.
func unwritten(t *testing.T, l lease.Lease) {
	t.Helper()
	if now := read(t, connect(t, nil), l.Addr); now.Version != l.Version || now.ContainerID != l.ContainerID || now.Deleting {
		t.Errorf("stored: %+v", now)
	}
}

// What was decided on before the leases were read anew is neither written nor deleted after it, whenever that comes:
// the object may be another's at the same version.
func TestWriteOfAnEarlierEpoch(t *testing.T) {
	direct, addr := connect(t, nil), subnet()
	n := 0
	for name, do := range map[string]func(*testing.T, *Client, lease.Lease) error{"a write": release, "a deletion": remove} {
		for _, when := range []string{"before it", "while its object is read", "before it is sent again", "while no watch runs"} {
			n++
			t.Run(name+"/"+when, func(t *testing.T) {
				now := write(t, direct, active(t, write(t, direct, available(addr(n))), "now"))
				believed := at(active(t, available(addr(n)), "before"), now.Version)
				tap := &intercept.Tap{}
				c := connectTo(t, config(t, tap), index.New())
				var watched atomic.Bool
				watched.Store(when != "while its object is read")
				c.watched = watched.Load
				c.index.Feed.Watched(believed)
				want := ErrConflict
				anew := func() { c.index.Feed.ResetTo([]lease.Lease{now}, now.Version) }
				on := func(match func(*http.Request) bool, then func(*http.Request, http.RoundTripper) (*http.Response, error)) {
					var off func()
					off = tap.On(match, func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
						off()
						return then(r, next)
					})
				}
				busy := intercept.Answer(429, metav1.StatusReasonTooManyRequests, 1)
				switch when {
				case "before it":
					anew()
				case "while its object is read":
					on(func(r *http.Request) bool { return r.Method == http.MethodGet },
						func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
							anew()
							return next.RoundTrip(r)
						})
				default:
					on(func(r *http.Request) bool { return r.Method != http.MethodGet },
						func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
							if when == "before it is sent again" {
								anew()
							} else {
								watched.Store(false)
								want = ErrUnavailable
							}
							return busy(r, next)
						})
				}
				if err := do(t, c, believed); !errors.Is(err, want) {
					t.Errorf("%v, want %v", err, want)
				}
				unwritten(t, now)
			})
		}
	}
	c := connectTo(t, config(t, nil), index.New())
	picked := active(t, available(addr(200)), "picked")
	c.index.Feed.ResetTo(nil, 1)
	if _, err := c.Write(t.Context(), picked); !errors.Is(err, ErrConflict) {
		t.Errorf("an address that was picked before: %v", err)
	}
	reserved := available(addr(200))
	reserved.State = lease.Reserved
	if _, err := c.Write(t.Context(), reserved); !errors.Is(err, ErrConflict) {
		t.Errorf("an address that was set aside before: %v", err)
	}
	if l, err := c.Get(t.Context(), addr(200)); !errors.Is(err, ErrNotFound) || l.Epoch != 1 {
		t.Errorf("read in epoch %d: %v", l.Epoch, err)
	}
	write(t, c, available(addr(200))) // as a pool does, which knows no epoch
}

// What shows that the store was put back while no watch is open has the leases listed, too: the watch that begins after
// it, once the versions have caught up, would find nothing wrong, and the replica would never be ready again.
func TestToldWhileNoWatchRuns(t *testing.T) {
	tap := &intercept.Tap{}
	begins, goOn := make(chan struct{}), make(chan struct{})
	first := sync.OnceFunc(func() {
		close(begins)
		<-goOn
	})
	tap.On(watches, func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		first()
		return next.RoundTrip(r)
	})
	c, f := feeding(t, tap)
	<-begins
	if !f.Synced() || f.Watching() {
		t.Errorf("synced %v, watching %v before", f.Synced(), f.Watching())
	}
	_ = c.restored("a test says so")
	if f.Synced() {
		t.Error("it is still taken for synced")
	}
	if err := (sink{f}).Replace(nil, formatVersion(c.index.Feed.Seen())); err != nil || f.Synced() { // of a list that began before
		t.Errorf("it is taken for synced by an earlier list, %v", err)
	}
	close(goOn)
	controlplane.Until(t, "the leases are listed anew", func() bool { return f.Restarts() == 1 && f.Synced() })
}

// A lease that is read at an earlier version than it was seen at is of a store that was put back.
func TestReadBehindWhatWasSeen(t *testing.T) {
	tap, addr := &intercept.Tap{}, subnet()
	c, f := feeding(t, tap)
	controlplane.Until(t, "the feed watches", f.Watching)
	l := confirmed(t, c, available(addr(1)))
	seen := l
	seen.Version += 1_000_000_000
	c.index.Feed.Watched(seen)
	if _, err := c.Get(t.Context(), l.Addr); !errors.Is(err, ErrUnavailable) {
		t.Errorf("the read says %v", err)
	}
	controlplane.Until(t, "the leases are listed anew", func() bool { return f.Restarts() == 1 })
	if got, err := c.Get(t.Context(), l.Addr); err != nil || got.Version != l.Version || got.Epoch != 1 {
		t.Errorf("read version %d of epoch %d, %v", got.Version, got.Epoch, err)
	}
}

// A restore after which the versions were raised counts like any other: whether leases were lost is checked anew.
func TestRestoreWithRaisedVersions(t *testing.T) {
	index, addr := index.New(), subnet()
	f := NewFeed(connectTo(t, config(t, nil), index))
	l := available(addr(1))
	list := func(version uint64, as string) {
		t.Helper()
		l.Version = version
		if err := (sink{f}).Replace([]any{&item{Lease: l}}, as); err != nil {
			t.Fatal(err)
		}
	}
	list(8, "9")
	list(8, "20")
	if n := f.Restarts(); n != 0 {
		t.Errorf("%d restores before there was one", n)
	}
	list(3, "1000")
	list(3, "1001")
	if n := f.Restarts(); n != 1 {
		t.Errorf("%d restores counted, want 1", n)
	}
}

// recorded keeps the next list that passes, to be given again later as the list of a lagging API server.
type recorded struct {
	mu   sync.Mutex
	body []byte
}

func (l *recorded) record(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	resp, err := next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.body = body
	return intercept.Respond(r, resp.StatusCode, body), nil
}

func (l *recorded) replay(r *http.Request, _ http.RoundTripper) (*http.Response, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return intercept.Respond(r, 200, l.body), nil
}

// A relist that lags behind does not take the index back in time: not what the watch has brought, not
// what this process wrote, and not what it deleted.
func TestRelistDoesNotGoBack(t *testing.T) {
	tap, gate := &intercept.Tap{}, intercept.NewGate()
	gate.Open()
	removeGate := tap.On(watches, gate.HoldStream)
	direct, addr := connect(t, nil), subnet()
	gone := write(t, direct, available(addr(1)))
	kept := write(t, direct, available(addr(2)))
	old := &recorded{}
	tap.On(lists, old.record)
	c, f := feeding(t, tap)
	controlplane.Until(t, "the feed has a list", f.Synced)
	<-gate.Arrived()

	// The watch says nothing from here on; these are our own writes.
	gate.Shut()
	held := write(t, c, active(t, kept, "c"))
	made := write(t, c, active(t, available(addr(3)), "d"))
	if err := c.Delete(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	check := func(when string) {
		t.Helper()
		for _, want := range []lease.Lease{held, made} {
			if got, _ := c.index.Leases.Get(want.Addr); got.Version != want.Version {
				t.Errorf("%s: the index has %+v, want version %d", when, got, want.Version)
			}
		}
		if got, ok := c.index.Leases.Get(gone.Addr); ok {
			t.Errorf("%s: what was deleted is back: %+v", when, got)
		}
	}
	check("after the writes")
	var relisted atomic.Bool
	tap.On(watches, intercept.Answer(410, metav1.StatusReasonExpired, 0))
	tap.On(lists, func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if relisted.Load() {
			return gate.Hold(r, next)
		}
		defer relisted.Store(true)
		return old.replay(r, next)
	})
	gate.Cut()
	controlplane.Until(t, "the old list was taken", func() bool { return tap.Count(lists) > 2 }) // the next one waits
	check("after the old list")
	removeGate()
	tap.On(watches, func(r *http.Request, next http.RoundTripper) (*http.Response, error) { return next.RoundTrip(r) })
	gate.Open()
	again := write(t, direct, available(gone.Addr))
	controlplane.Until(t, "the feed works again", has(c.index, again.Addr, again.Version))
	if got, _ := c.index.Leases.Get(made.Addr); got.Version != made.Version {
		t.Errorf("in the end: %+v", got)
	}
}

// A list whose connection dies in the middle changes nothing, neither the first nor a later one.
func TestListThatDiesInTheMiddle(t *testing.T) {
	tap, gate := &intercept.Tap{}, intercept.NewGate()
	gate.Open()
	tap.On(watches, gate.HoldStream)
	direct, addr := connect(t, nil), subnet()
	for n := range 20 {
		write(t, direct, available(addr(n+1)))
	}
	var died atomic.Int64
	dying := func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		resp, err := next.RoundTrip(r)
		if err == nil {
			resp.Body = struct {
				io.Reader
				io.Closer
			}{io.MultiReader(io.LimitReader(resp.Body, 3000), failing{io.ErrUnexpectedEOF}), resp.Body}
			died.Add(1)
		}
		return resp, err
	}
	remove := tap.On(lists, dying)
	c, f := feeding(t, tap)
	controlplane.Until(t, "a list has died", func() bool { return died.Load() > 1 })
	if f.Synced() || c.index.Leases.Len() != 0 {
		t.Fatalf("synced %v with %d entries", f.Synced(), c.index.Leases.Len())
	}
	remove()
	controlplane.Until(t, "the feed has a list", f.Synced)
	<-gate.Arrived()
	entries := c.index.Leases.Len()

	died.Store(0)
	remove = tap.On(lists, dying)
	tap.On(watches, intercept.Answer(410, metav1.StatusReasonExpired, 0))
	gate.Cut()
	controlplane.Until(t, "a relist has died", func() bool { return died.Load() > 1 })
	if got := c.index.Leases.Len(); got != entries || !f.Synced() {
		t.Errorf("%d entries, synced %v; want the %d of before", got, f.Synced(), entries)
	}
	remove()
	tap.On(watches, gate.HoldStream)
	l := write(t, direct, available(addr(100)))
	controlplane.Until(t, "the feed works again", has(c.index, l.Addr, l.Version))
}

// A bookmark tells that nothing happened up to a version: who waits for it goes on.
func TestBookmark(t *testing.T) {
	tap := &intercept.Tap{}
	var version atomic.Uint64
	tap.On(watches, func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		resp, err := next.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		from, err := strconv.ParseUint(versionOf(r), 10, 64)
		if err != nil {
			return nil, err
		}
		version.Store(from + 1)
		frame := fmt.Sprintf(`{"type":"BOOKMARK","object":{"kind":"BCSNetIP","apiVersion":%q,"metadata":{"resourceVersion":"%d","creationTimestamp":null},"spec":{"gateway":"","mask":0,"pool":""}}}`,
			v1.GroupVersion, from+1)
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader([]byte(frame)), resp.Body), resp.Body}
		return resp, nil
	})
	c, f := feeding(t, tap)
	controlplane.Until(t, "the feed has a list and a watch", func() bool { return f.Synced() && version.Load() > 0 })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := c.index.Feed.WaitSeen(ctx, version.Load()); err != nil {
		t.Errorf("waiting for the version of a bookmark: %v", err)
	}
	l := write(t, connect(t, nil), available(subnet()(1))) // not by c: the bookmark was ahead of the API server
	if err := c.index.Feed.WaitSeen(ctx, l.Version); err != nil {
		t.Errorf("waiting for a write after the bookmark: %v", err)
	}
}

// Objects that no writer of ours makes do not stop the feed, in a list or in a watch, and lose nothing
// that is not ours.
func TestStrangeObjectsInTheFeed(t *testing.T) {
	addr := subnet()
	admin := objects(t)
	create := func(n int, status map[string]any) netip.Addr {
		a := addr(n)
		if _, err := admin.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": v1.GroupVersion.String(), "kind": "BCSNetIP", "metadata": map[string]any{"name": ipaddr.ObjectName(a)},
			"spec": map[string]any{"pool": "p", "mask": int64(24), "gateway": "10.0.0.1"}, "status": status,
		}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		return a
	}
	strange := map[string]any{
		"status": "Active", "containerID": "c", "updateTime": "yesterday", "startedAt": "?", "fixedIPExpiredTime": "soon",
	}
	listed := create(1, strange)
	c, f := feeding(t, nil)
	controlplane.Until(t, "the feed has a list", f.Synced)
	watched := create(2, strange)
	for _, a := range []netip.Addr{listed, watched} {
		controlplane.Until(t, "the index has "+a.String(), func() bool { _, ok := c.index.Leases.Get(a); return ok })
		l, _ := c.index.Leases.Get(a)
		if l.State != lease.Active || l.ContainerID != "c" || !l.Updated.IsZero() || !l.Foreign || l.ExpiredTime != "soon" {
			t.Errorf("%s is %+v", a, l)
		}
		released, _ := lease.Release(l, now(), lease.Change{})
		if got := write(t, c, released); got.State != lease.Available || got.Updated.IsZero() {
			t.Errorf("%s released is %+v", a, got)
		}
	}
}

// Every kind of event comes out of the stream as what it is, and the stream stays in step after an
// unknown field, a strange name and an error.
func TestWatchFrames(t *testing.T) {
	body := `{"type":"ADDED","object":` + plainObject + `}` + "\n" +
		`{"new":{"type":"x"},"type":"MODIFIED","object":` + strangeObject + `}` +
		`{"type":"ADDED","object":{"metadata":{"name":"strange","resourceVersion":"9"}}}` +
		`{"type":"DELETED","object":` + plainObject + `}` +
		`{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"12"}}}` +
		expiredFrame +
		`{"type":"ADDED","obj`
	type event struct {
		Type    watch.EventType
		Version uint64
		Foreign bool
		Code    int32
		Reason  metav1.StatusReason
	}
	var got []event
	for _, e := range frames([]byte(body)) {
		switch o := e.Object.(type) {
		case *item:
			got = append(got, event{Type: e.Type, Version: parseVersion(o.version), Foreign: o.Foreign})
		case *metav1.Status:
			got = append(got, event{Type: e.Type, Code: o.Code, Reason: o.Reason})
		}
	}
	want := []event{
		{Type: watch.Added, Version: 7}, {Type: watch.Modified, Version: 8, Foreign: true}, {Type: watch.Deleted, Version: 7},
		{Type: watch.Bookmark, Version: 12}, {Type: watch.Error, Code: 410, Reason: metav1.StatusReasonExpired},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Many writers and a feed whose watch is cut again and again: in the end the index is what the API
// server has, and its notices add up to it.
func TestFeedUnderFire(t *testing.T) {
	t.Parallel()
	tap, gate := &intercept.Tap{}, intercept.NewGate()
	gate.Open()
	tap.On(watches, gate.HoldStream)
	index := index.New()
	var mu sync.Mutex
	noticed := map[netip.Addr]lease.Lease{}
	index.Feed.Subscribe(func(_, l lease.Lease) {
		mu.Lock()
		defer mu.Unlock()
		if l.Version > noticed[l.Addr].Version || l.Version == 0 {
			noticed[l.Addr] = l
		}
	})
	c := connectTo(t, config(t, tap), index)
	f := NewFeed(c)
	start(t, f)
	direct, addr := connect(t, nil), subnet()
	controlplane.Until(t, "the feed has a list", f.Synced)
	var writers sync.WaitGroup
	var last atomic.Uint64
	for n := range 8 {
		writers.Go(func() {
			for round := range 25 {
				by := []*Client{c, direct}[round%2]
				a := addr(n%4 + 1) // two writers for each address
				l, err := by.Get(t.Context(), a)
				if errors.Is(err, ErrNotFound) {
					l, err = available(a), nil
				}
				if err == nil {
					switch {
					case l.State == lease.Active:
						l, _ = lease.Release(l, now(), lease.Change{})
						l, err = by.Write(t.Context(), l)
					case l.Version != 0 && round%5 == 4:
						err = by.Delete(t.Context(), l)
					default:
						l, err = by.Write(t.Context(), active(t, l, fmt.Sprintf("c%d-%d", n, round)))
					}
				}
				if err != nil && !errors.Is(err, ErrConflict) {
					t.Error(err)
				}
				last.Store(max(last.Load(), l.Version))
			}
		})
	}
	done := make(chan struct{})
	go func() { writers.Wait(); close(done) }()
	for cuts := 0; ; cuts++ {
		select {
		case <-done:
		default:
			from := tap.Count(watches)
			controlplane.Until(t, "the watch was taken up", func() bool {
				gate.Cut()
				return tap.Count(watches) > from
			})
			continue
		}
		break
	}
	fence := write(t, direct, available(addr(200)))
	if err := index.Feed.WaitSeen(t.Context(), fence.Version); err != nil {
		t.Fatal(err)
	}
	inSubnet := func(l lease.Lease) bool {
		return addr(0).As4()[1] == l.Addr.As4()[1] && addr(0).As4()[2] == l.Addr.As4()[2]
	}
	want, err := direct.List(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	var ours []lease.Lease
	for _, l := range want {
		if l.Addr.Is4() && inSubnet(l) {
			ours = append(ours, l)
		}
	}
	slices.SortFunc(ours, func(a, b lease.Lease) int { return a.Addr.Compare(b.Addr) })
	if diff := cmp.Diff(ours, index.Leases.Find(func(l lease.Lease) bool { return l.Addr.Is4() && inSubnet(l) }),
		compareAddrs); diff != "" {
		t.Errorf("-API server +index:\n%s", diff)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, l := range ours {
		if diff := cmp.Diff(l, noticed[l.Addr], compareAddrs); diff != "" {
			t.Errorf("-API server +noticed:\n%s", diff)
		}
	}
}
