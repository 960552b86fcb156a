package cli

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// TestReleaseHostWait: what the host takes after the release is released, too.
func TestReleaseHostWait(t *testing.T) {
	w := newWorld(t)
	w.havePool(t)
	w.haveLease(t, "10.1.0.20", "10.0.0.11", "vm-1")
	var released atomic.Bool
	var looks atomic.Int32
	url := proxy(t, func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		look := r.Method == http.MethodGet && strings.Contains(r.URL.RawQuery, "status.host")
		if look && released.Load() && looks.Add(1) == quietLooks {
			w.haveLease(t, "10.1.0.22", "10.0.0.11", "vm-2")
		}
		next.ServeHTTP(rw, r)
		if r.Method == http.MethodPut {
			released.Store(true)
		}
	})
	stdout, stderr := w.call(t, "--server", url, "release-host", "10.0.0.11", "--wait", "-o", "name")
	const name = "bcsnetip.networkextension.bkbcs.tencent.com/"
	if want := name + "10.1.0.20\n" + name + "10.1.0.22\n"; stdout != want {
		t.Errorf("got %q, want %q", stdout, want)
	}
	want := "✔ host 10.0.0.11: 1 address released\n"
	if want += "◎ host 10.0.0.11: 1 address in use anew\n" + want; stderr != want {
		t.Errorf("it said %q, want %q", stderr, want)
	}
}

// TestReleaseHostWaitEnds: what never works ends with the time, and with the reason.
func TestReleaseHostWaitEnds(t *testing.T) {
	w := newWorld(t)
	w.havePool(t)
	w.haveLease(t, "10.1.0.20", "10.0.0.11", "vm-1")
	url := proxy(t, func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method != http.MethodPut {
			next.ServeHTTP(rw, r)
			return
		}
		rw.Header().Set("Content-Type", "application/json")
		rw.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(rw, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","code":429,"message":"too busy"}`)
	})
	stdout, stderr := w.call(t, "--server", url, "release-host", "10.0.0.11", "--wait", "--timeout", "1s")
	if stdout != "" {
		t.Errorf("it released %q", stdout)
	}
	contains(t, stderr, "◎ host 10.0.0.11: 1 address left, trying again\n", "✗ host 10.0.0.11 still has 1 address in use after 1s", "too busy", "[exit 124]")
}
