package cli

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	v1 "github.com/bcsnet/bcsnet/api/v1"
)

// quietLooks is the number of looks in a row that must find nothing before release-host --wait ends.
const quietLooks = 2

// TestReleaseHostWait: what the host takes after the release is released, too.
func TestReleaseHostWait(t *testing.T) {
	f := newFixture(t)
	f.havePool(t)
	f.haveLease(t, "10.1.0.20", "10.0.0.11", "vm-1")
	var released atomic.Bool
	var looks atomic.Int32
	url := proxy(t, func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		look := r.Method == http.MethodGet && strings.Contains(r.URL.RawQuery, "status.host")
		if look && released.Load() && looks.Add(1) == quietLooks {
			f.haveLease(t, "10.1.0.22", "10.0.0.11", "vm-2")
		}
		next.ServeHTTP(rw, r)
		if r.Method == http.MethodPut {
			released.Store(true)
		}
	})
	stdout, stderr := f.call(t, "--server", url, "release-host", "10.0.0.11", "--wait", "-o", "name")
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
	f := newFixture(t)
	f.havePool(t)
	f.haveLease(t, "10.1.0.20", "10.0.0.11", "vm-1")
	url := proxy(t, func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method != http.MethodPut {
			next.ServeHTTP(rw, r)
			return
		}
		rw.Header().Set("Content-Type", "application/json")
		rw.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(
			rw, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","code":429,"message":"too busy"}`)
	})
	stdout, stderr := f.call(t, "--server", url, "release-host", "10.0.0.11", "--wait", "--timeout", "1s")
	if stdout != "" {
		t.Errorf("it released %q", stdout)
	}
	contains(t, stderr, "◎ host 10.0.0.11: 1 address left, trying again\n",
		"✗ host 10.0.0.11 still has 1 address in use after 1s", "too busy", "[exit 124]")
}

// TestReleaseHostsMeanwhile: what a host takes after the list and before its turn is released as well.
func TestReleaseHostsMeanwhile(t *testing.T) {
	f := newFixture(t)
	f.havePool(t)
	f.haveLease(t, "10.1.0.20", "10.0.0.11", "vm-1")
	var once sync.Once
	url := proxy(t, func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method == http.MethodPut { // the first host's turn
			once.Do(func() { f.haveLease(t, "10.1.0.22", "10.0.0.12", "vm-2") })
		}
		next.ServeHTTP(rw, r)
	})
	stdout, stderr := f.call(t, "--server", url, "release-host", "10.0.0.11", "10.0.0.12", "-o", "name")
	const name = "bcsnetip.networkextension.bkbcs.tencent.com/"
	if want := name + "10.1.0.20\n" + name + "10.1.0.22\n"; stdout != want {
		t.Errorf("got %q, want %q", stdout, want)
	}
	want := "✔ host 10.0.0.11: 1 address released\nhost 10.0.0.12 holds no addresses: nothing to release\n" +
		"◎ host 10.0.0.12: 1 address in use anew\n✔ host 10.0.0.12: 1 address released\n"
	if stderr != want {
		t.Errorf("it said %q, want %q", stderr, want)
	}
}

// TestReleaseHostsWait: the hosts are waited for together, and what cannot be done is said of the one host.
func TestReleaseHostsWait(t *testing.T) {
	f := newFixture(t)
	f.havePool(t)
	f.haveLease(t, "10.1.0.20", "10.0.0.11", "vm-1")
	f.haveLease(t, "10.1.0.21", "10.9.0.7", "vm-2")
	var refuse atomic.Bool
	var lists atomic.Int32
	url := proxy(t, func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		switch {
		case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/"+v1.IPResource):
			lists.Add(1)
		case r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/10.1.0.21") && refuse.Load():
			rw.Header().Set("Content-Type", "application/json")
			rw.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(
				rw, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"a webhook says no"}`)
			return
		}
		next.ServeHTTP(rw, r)
	})
	hosts := []string{"--server", url, "release-host", "--wait", "-o", "name", "10.0.0.11"}
	for i := range 100 {
		hosts = append(hosts, fmt.Sprint("10.9.0.", i))
	}
	refuse.Store(true)
	stdout, stderr := f.call(t, hosts...)
	const name = "bcsnetip.networkextension.bkbcs.tencent.com/"
	if want := name + "10.1.0.20\n"; stdout != want {
		t.Errorf("got %q, want %q", stdout, want)
	}
	contains(t, stderr, "✗ host 10.9.0.7: 0 of 1 address released: releasing 10.1.0.21: a webhook says no (Forbidden)\n",
		"[exit 1]")
	refuse.Store(false)
	lists.Store(0)
	if stdout, stderr = f.call(t, hosts...); stdout != name+"10.1.0.21\n" {
		t.Errorf("got %q; %s", stdout, stderr)
	}
	if n := lists.Load(); n != 1+quietLooks {
		t.Errorf("it listed addresses %d times", n)
	}
}

// TestReleaseHostsReadyMeanwhile: what a Ready node takes while other hosts are released is left to it.
func TestReleaseHostsReadyMeanwhile(t *testing.T) {
	for _, wait := range []string{"--wait=false", "--wait"} {
		t.Run(wait, func(t *testing.T) {
			f := newFixture(t)
			f.havePool(t)
			f.haveLease(t, "10.1.0.20", "10.0.0.11", "vm-1")
			f.haveReadyNode(t, "node-2", "10.0.0.12")
			var once sync.Once
			url := proxy(t, func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
				if r.Method == http.MethodPut { // the first host's turn
					once.Do(func() { f.haveLease(t, "10.1.0.22", "10.0.0.12", "vm-2") })
				}
				next.ServeHTTP(rw, r)
			})
			stdout, stderr := f.call(t, "--server", url, "release-host", "10.0.0.11", "10.0.0.12", "-o", "name", wait)
			if want := "bcsnetip.networkextension.bkbcs.tencent.com/10.1.0.20\n"; stdout != want {
				t.Errorf("got %q, want %q", stdout, want)
			}
			contains(t, stderr, "✔ host 10.0.0.11: 1 address released\n",
				"✗ host 10.0.0.12 is the node node-2, which is Ready: 1 address in use there (NodeReady)\n", "[exit 1]")
		})
	}
}
