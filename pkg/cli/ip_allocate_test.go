package cli

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
)

// TestAllocateInterrupted: a write that was under way goes on after Ctrl-C. The user reads how to find out what
// became of it, and running it again settles it.
func TestAllocateInterrupted(t *testing.T) {
	f := newFixture(t)
	f.havePool(t)
	writing, noticed := make(chan struct{}), make(chan struct{})
	notice := sync.OnceFunc(func() { close(noticed) })
	url := proxy(t, func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		switch {
		case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/"+v1.IPResource):
			close(writing)
			<-noticed
			next.ServeHTTP(rw, r)
		case strings.Contains(r.URL.RawQuery, "watch="):
			defer notice() // a proxy whose client is gone panics
			next.ServeHTTP(rw, r)
		default:
			next.ServeHTTP(rw, r)
		}
	})
	var stdout, stderr bytes.Buffer
	cmd := f.command(t, "--server", url, "ip", "allocate", "--pool", "blue", "--for", "vm 1")
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-writing
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	err := cmd.Wait()
	notice() // whatever happened, the proxy must end
	if !errors.As(err, &exit) || exit.ExitCode() != app.ExitInterrupted || stdout.Len() > 0 {
		t.Errorf("it ended with %v, and printed %q", err, stdout.String())
	}
	contains(t, stderr.String(), "✗ interrupted\n", "✗ whether vm 1 has got an address is unknown\n",
		"hint: run it again: the same name gets the same address; what it has: bcsnetctl ip find \"vm 1\" --for\n")
	found, _ := f.call(t, "ip", "find", "vm 1", "--for", "-o", "name")
	again, said := f.call(t, "ip", "allocate", "--pool", "blue", "--for", "vm 1", "-o", "name")
	if found != again || found == "" || !strings.HasPrefix(said, "vm 1 has ") {
		t.Errorf("it has %q, and then %q: %s", found, again, said)
	}
}

// TestAllocateUnanswered: a write whose answer is lost may be stored.
func TestAllocateUnanswered(t *testing.T) {
	f := newFixture(t)
	f.havePool(t)
	url := proxy(t, func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/"+v1.IPResource) {
			panic(http.ErrAbortHandler)
		}
		next.ServeHTTP(rw, r)
	})
	_, stderr := f.call(t, "--server", url, "ip", "allocate", "--pool", "blue", "--for", "vm-1")
	contains(t, stderr, "did not say whether it stored address 10.1.0.", "(OutcomeUnknown)\n", "hint: run it again: ",
		"bcsnetctl ip find \"vm-1\" --for\n", "[exit 1]")
}

// TestAllocateReadsNodesFirst: the addresses of nodes are known, and the time is counted, before any pool is drawn
// from.
func TestAllocateReadsNodesFirst(t *testing.T) {
	f := newFixture(t)
	f.havePool(t)
	var mu sync.Mutex
	var lists []string
	url := proxy(t, func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		if kind := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]; kind == "nodes" || kind == v1.PoolResource {
			mu.Lock()
			lists = append(lists, kind)
			mu.Unlock()
		}
		next.ServeHTTP(rw, r)
	})
	_, stderr := f.call(t, "--server", url, "ip", "allocate", "--pool", "blue", "--for", "vm-1")
	contains(t, stderr, "allocated for vm-1")
	if want := []string{"nodes", v1.PoolResource}; !slices.Equal(lists, want) {
		t.Errorf("it listed %v, want %v", lists, want)
	}
}
