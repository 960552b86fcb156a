package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// going is a command that goes on until it is interrupted.
type going struct {
	cmd    *exec.Cmd
	lines  *bufio.Scanner
	stderr bytes.Buffer
}

func (f *fixture) start(t *testing.T, args ...string) *going {
	t.Helper()
	g := &going{cmd: f.command(t, args...)}
	g.cmd.Env = append(g.cmd.Env, rawEnv+"=1")
	g.cmd.Stderr = &g.stderr
	out, err := g.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	g.lines = bufio.NewScanner(out)
	if err := g.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return g
}

// next expects lines that begin with these fields.
func (g *going) next(t *testing.T, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !g.lines.Scan() {
			t.Fatalf("no line for %q; it said %s", want, g.stderr.String())
		}
		if got := strings.Join(strings.Fields(g.lines.Text()), " "); !strings.HasPrefix(got+" ", want+" ") {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
}

// interrupt ends it as Ctrl-C does, and expects that it has said all this.
func (g *going) interrupt(t *testing.T, said ...string) {
	t.Helper()
	if err := g.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if g.lines.Scan() {
		t.Errorf("one line more: %q", g.lines.Text())
	}
	if err := g.cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	contains(t, g.stderr.String(), said...)
	if len(said) == 0 && g.stderr.Len() > 0 {
		t.Errorf("it said %q", g.stderr.String())
	}
}

// TestWatchLeases: every change is a line, also those that happen while the watch is cut or can no longer be
// taken up.
func TestWatchLeases(t *testing.T) {
	f := newFixture(t)
	f.havePool(t)
	f.haveLease(t, "10.1.0.20", "10.0.0.11", "vm-20")
	var refuse atomic.Int32 // watches to refuse
	cut := make(chan context.CancelFunc, 1)
	refused := make(chan struct{}, 1)
	url := proxy(t, func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.URL.Query().Get("watch") == "" {
			next.ServeHTTP(rw, r)
			return
		}
		if refuse.Add(-1) >= 0 {
			refused <- struct{}{}
			rw.Header().Set("Content-Type", "application/json")
			rw.WriteHeader(http.StatusGone)
			_, _ = io.WriteString(
				rw, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410,"message":"too old"}`)
			return
		}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		cut <- cancel
		next.ServeHTTP(rw, r.WithContext(ctx))
	})
	g := f.start(t, "--server", url, "lease", "list", "--watch")
	g.next(t, "EVENT ADDRESS POOL", "- 10.1.0.20 blue 10.0.0.11 - vm-20 (owner)")
	first := <-cut
	f.haveLease(t, "10.1.0.9", "10.0.0.11", "vm-9")
	g.next(t, "ADDED 10.1.0.9 blue")
	f.haveLease(t, "10.1.0.9", "10.0.0.12", "vm-9")
	g.next(t, "MODIFIED 10.1.0.9 blue 10.0.0.12")
	f.haveLease(t, "10.1.0.9", "10.0.0.12", "reserved")
	g.next(t, "DELETED 10.1.0.9 blue 10.0.0.12 - vm-9 (owner)")

	first()
	f.haveLease(t, "10.1.0.21", "10.0.0.11", "vm-21")
	g.next(t, "ADDED 10.1.0.21")
	second := <-cut

	refuse.Store(1)
	second()
	<-refused
	f.haveLease(t, "10.1.0.22", "10.0.0.11", "vm-22")
	f.haveLease(t, "10.1.0.21", "10.0.0.12", "reserved")
	for range 2 { // what the list does not show yet, the next watch does
		if !g.lines.Scan() {
			t.Fatal("too few lines")
		}
		if got := g.lines.Text(); !strings.HasPrefix(got, "ADDED     10.1.0.22 ") &&
			!strings.HasPrefix(got, "DELETED   10.1.0.21 ") {
			t.Errorf("got %q", got)
		}
	}
	g.interrupt(t)
}

// TestWatchObjects: one object for each change.
func TestWatchObjects(t *testing.T) {
	f := newFixture(t)
	p := f.havePool(t)
	g := f.start(t, "pool", "list", "-w", "-o", `jsonpath={.metadata.name} {.spec.priority}{"\n"}`)
	g.next(t, "blue")
	p.Spec.Priority = 7
	if err := f.client.Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	g.next(t, "blue 7")
	g.interrupt(t)

	g = f.start(t, "ip", "list", "-w", "-o", "name")
	f.haveLease(t, "10.1.0.20", "10.0.0.11", "vm-20")
	g.next(t, "bcsnetip.networkextension.bkbcs.tencent.com/10.1.0.20")
	g.interrupt(t)
}

// TestWatchHosts: pools and addresses together make a line. There are no nodes, so no host is known to be gone.
func TestWatchHosts(t *testing.T) {
	f := newFixture(t)
	p := f.havePool(t)
	g := f.start(t, "host", "list", "-w")
	g.next(t, "EVENT HOST NODE", "- 10.0.0.11 - - 0 0 blue")
	f.haveLease(t, "10.1.0.20", "10.0.0.11", "vm-20")
	g.next(t, "MODIFIED 10.0.0.11 - - 1 0 blue")
	f.haveLease(t, "10.1.0.21", "10.0.0.9", "vm-21")
	g.next(t, "ADDED 10.0.0.9 - - 1 0 -")
	p.Spec.Hosts = []string{"10.0.0.11", "10.0.0.12"}
	if err := f.client.Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	g.next(t, "ADDED 10.0.0.12 - - 0 0 blue")
	if err := f.client.Delete(t.Context(), &v1.BCSNetPool{ObjectMeta: p.ObjectMeta}); err != nil {
		t.Fatal(err)
	}
	g.next(t, "MODIFIED 10.0.0.11 - - 1 0 -", "DELETED 10.0.0.12 - - 0 0 blue")
	g.interrupt(t)

	g = f.start(t, "--kubeconfig", f.kubeconfigs["VIEWER"], "host", "list", "-w", "--no-headers")
	g.next(t, "- 10.0.0.9 - - 1 0 -", "- 10.0.0.11 - - 1 0 -")
	g.interrupt(t, "nodes cannot be read, so NODE and STATE are unknown")
}

// TestWatchComplainsOnce: that changes cannot be read is said once, not for each kind of object that a list is made
// of, and again when it was over in between.
func TestWatchComplainsOnce(t *testing.T) {
	f := newFixture(t)
	f.havePool(t)
	var broken atomic.Bool
	var refused, watching atomic.Int32
	url := proxy(t, func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		switch {
		case r.URL.Query().Get("watch") == "":
			next.ServeHTTP(rw, r)
		case broken.Load():
			refused.Add(1)
			rw.WriteHeader(http.StatusInternalServerError)
		default:
			ctx, cancel := context.WithCancel(r.Context())
			defer cancel()
			go func() { // until it breaks
				for ctx.Err() == nil && !broken.Load() {
					select {
					case <-ctx.Done():
					case <-time.After(10 * time.Millisecond):
					}
				}
				cancel()
			}()
			next.ServeHTTP(begun{rw, func() { watching.Add(1) }}, r.WithContext(ctx))
		}
	})
	g := f.start(t, "--kubeconfig", f.kubeconfigs["ADMIN"], "--server", url, "host", "list", "-w")
	g.next(t, "EVENT HOST NODE", "- 10.0.0.11 - - 0 0 blue")
	for range 2 {
		until(t, func() bool { return watching.Load() == 3 })
		refused.Store(0)
		broken.Store(true)
		until(t, func() bool { return refused.Load() >= 6 })
		watching.Store(0)
		broken.Store(false)
	}
	until(t, func() bool { return watching.Load() == 3 })
	g.interrupt(t, "changes cannot be read")
	if n := strings.Count(g.stderr.String(), "changes cannot be read"); n != 2 {
		t.Errorf("it complained %d times: %s", n, g.stderr.String())
	}
}

// begun tells when an answer has begun, and its client knows.
type begun struct {
	http.ResponseWriter
	tell func()
}

func (b begun) WriteHeader(code int) {
	b.ResponseWriter.WriteHeader(code)
	if code == http.StatusOK && http.NewResponseController(b.ResponseWriter).Flush() == nil {
		b.tell()
	}
}

// Unwrap lets the proxy flush.
func (b begun) Unwrap() http.ResponseWriter { return b.ResponseWriter }

// until waits for what the program does to its proxy.
func until(t *testing.T, done func() bool) {
	t.Helper()
	err := controlplane.WaitFor(t.Context(), time.Minute, func() error {
		if !done() {
			return errors.New("it has not come")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestWatchWithoutRights fails at once, as the list does.
func TestWatchWithoutRights(t *testing.T) {
	f := newFixture(t)
	url := proxy(t, func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.URL.Query().Get("watch") == "" {
			next.ServeHTTP(rw, r)
			return
		}
		rw.Header().Set("Content-Type", "application/json")
		rw.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(
			rw, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"no watching here"}`)
	})
	_, stderr := f.call(t, "--server", url, "pool", "list", "-w")
	contains(t, stderr, "✗ no watching here (Forbidden)\n", "[exit 1]")
}

// TestWatchTop: what is fullest comes first, and what changes says how fast.
func TestWatchTop(t *testing.T) {
	f := newFixture(t)
	p := f.havePool(t)
	p.Status = v1.BCSNetPoolStatus{ObservedGeneration: p.Generation, Capacity: 10, Available: 10}
	counts := func(active int64) {
		t.Helper()
		p.Status.Active, p.Status.Available = active, 10-active
		if err := f.client.Status().Update(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	counts(0)
	g := f.start(t, "top", "-w")
	g.next(t, "EVENT NAME USED FREE RATE FULL IN ACTIVE", "- blue 0% 10 0 - 0 0 10 Ready")
	counts(4)
	g.next(t, "MODIFIED blue 40% 6 +4/min 90s 4 0 10 Ready")
	counts(3)
	g.next(t, "MODIFIED blue 30% 7 +3/min 2m20s 3 0 10 Ready")
	g.interrupt(t)

	g = f.start(t, "top", "pool", "blue", "-w", "--no-headers", "-o", `jsonpath={.pool} {.free} {.perMinute}{"\n"}`)
	g.next(t, "blue 7 0")
	counts(5)
	g.next(t, "blue 5 2")
	g.interrupt(t)

	f.haveLease(t, "10.1.0.20", "10.0.0.11", "vm-20")
	g = f.start(t, "top", "host", "-w")
	g.next(t, "EVENT HOST ACTIVE PODS NEW RATE POOLS", "- 10.0.0.11 1 0 1 0 blue")
	f.haveLease(t, "10.1.0.21", "10.0.0.12", "vm-21")
	g.next(t, "ADDED 10.0.0.12 1 0 1 +1/min blue")
	f.haveLease(t, "10.1.0.21", "10.0.0.11", "vm-21")
	g.next(t, "MODIFIED 10.0.0.11 2 0 2 +1/min blue", "DELETED 10.0.0.12 1 0 1 0 blue")
	g.interrupt(t)
}
