package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
)

// TestReleaseHostPartly: what fails is said and can be run again; what was released is printed.
func TestReleaseHostPartly(t *testing.T) {
	f := newFixture(t)
	f.havePool(t)
	for _, a := range []string{"10.1.0.20", "10.1.0.21", "10.1.0.22"} {
		f.haveLease(t, a, "10.0.0.11", "vm-"+a)
	}
	var mended atomic.Bool
	url := proxy(t, func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/10.1.0.21") && !mended.Load() {
			rw.Header().Set("Content-Type", "application/json")
			rw.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(
				rw, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"a webhook says no"}`)
			return
		}
		next.ServeHTTP(rw, r)
	})
	stdout, stderr := f.call(t, "--server", url, "release-host", "10.0.0.11", "--no-headers", "-o", "name")
	if want := "bcsnetip.networkextension.bkbcs.tencent.com/10.1.0.20\nbcsnetip.networkextension.bkbcs.tencent.com/10.1.0.22\n"; stdout != want {
		t.Errorf("got %q, want %q", stdout, want)
	}
	contains(
		t, stderr, "✗ host 10.0.0.11: 2 of 3 addresses released: releasing 10.1.0.21: a webhook says no (Forbidden)\n",
		"[exit 1]")
	mended.Store(true)
	stdout, stderr = f.call(t, "--server", url, "release-host", "10.0.0.11", "-o", "name")
	if stdout != "bcsnetip.networkextension.bkbcs.tencent.com/10.1.0.21\n" ||
		stderr != "✔ host 10.0.0.11: 1 address released\n" {
		t.Errorf("again: %q, %q", stdout, stderr)
	}
}

// TestReleaseHostInterrupted: Ctrl-C between two hosts leaves a record of the first.
func TestReleaseHostInterrupted(t *testing.T) {
	f := newFixture(t)
	f.havePool(t)
	f.haveLease(t, "10.1.0.20", "10.0.0.11", "vm-1")
	f.haveLease(t, "10.1.0.21", "10.0.0.12", "default/web-2")
	second, looks := make(chan struct{}), atomic.Int32{}
	url := proxy(t, func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		// It looks where the second host's pod is before it begins, and whether that pod still exists at its turn.
		if strings.HasSuffix(r.URL.Path, "/pods/web-2") && looks.Add(1) == 2 {
			close(second)
			<-r.Context().Done() // until the program gives up
			return
		}
		next.ServeHTTP(rw, r)
	})
	stdout, stderr := f.interrupted(t, func() {
		<-second
	}, "--server", url, "release-host", "10.0.0.11", "10.0.0.12", "10.0.0.13", "10.0.0.14", "-o", "name")
	if stdout != "bcsnetip.networkextension.bkbcs.tencent.com/10.1.0.20\n" {
		t.Errorf("released: %q", stdout)
	}
	contains(t, stderr, "✔ host 10.0.0.11: 1 address released\n", "✗ interrupted\n",
		"✗ 2 more hosts not tried\nhint: run it again: it does the rest\n")
}

// TestReleaseManyHosts: however many hosts there are, the addresses are listed twice: before and after.
func TestReleaseManyHosts(t *testing.T) {
	f := newFixture(t)
	f.havePool(t)
	f.haveLease(t, "10.1.0.20", "10.9.0.7", "vm-1")
	f.haveLease(t, "10.1.0.21", "10.9.3.9", "vm-2")
	f.haveLease(t, "10.1.0.22", "10.10.0.1", "vm-3")
	var lists atomic.Int32
	url := proxy(t, func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/"+v1.IPResource) {
			lists.Add(1)
		}
		next.ServeHTTP(rw, r)
	})
	var hosts strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&hosts, "10.9.%d.%d\n", i/250, i%250)
	}
	var stdout, stderr bytes.Buffer
	cmd := f.command(t, "--server", url, "release-host", "-", "-o", "name")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(hosts.String()), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, &stderr)
	}
	if want := "bcsnetip.networkextension.bkbcs.tencent.com/10.1.0.20\nbcsnetip.networkextension.bkbcs.tencent.com/10.1.0.21\n"; stdout.String() != want {
		t.Errorf("got %q, want %q", &stdout, want)
	}
	contains(t, stderr.String(), "✔ host 10.9.0.7: 1 address released\n",
		"host 10.9.3.249 holds no addresses: nothing to release\n")
	if lists.Load() != 2 {
		t.Errorf("it listed addresses %d times", lists.Load())
	}
}

// TestServerThatDoesNotAnswer is a timeout, not a failure.
func TestServerThatDoesNotAnswer(t *testing.T) {
	f := newFixture(t)
	url := proxy(t, func(_ http.ResponseWriter, r *http.Request, _ http.Handler) { <-r.Context().Done() })
	_, stderr := f.call(t, "--server", url, "--request-timeout", "200ms", "lease", "list")
	contains(t, stderr, "✗ the API server SERVER did not answer in time\n", "[exit 124]")
	_, stderr = f.call(t, "--server", url, "--request-timeout", "200ms", "pool", "list")
	contains(t, stderr, "✗ the API server SERVER did not answer in time\n", "[exit 124]")
}

// TestPoolListReadsNoAddresses: what it shows of addresses stands in the status of the pools.
func TestPoolListReadsNoAddresses(t *testing.T) {
	f := newFixture(t)
	f.havePool(t)
	f.haveLease(t, "10.1.0.20", "10.0.0.11", "vm-1")
	var asked []string
	url := proxy(t, func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		asked = append(asked, r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:])
		next.ServeHTTP(rw, r)
	})
	stdout, _ := f.call(t, "--server", url, "pool", "list", "-o", "wide", "--sort-by", ".spec.net")
	contains(t, stdout, "blue")
	if !slices.Equal(asked, []string{v1.PoolResource, v1.PoolResource}) { // roots, then groups that are not blocks
		t.Errorf("it asked for %v", asked)
	}
}

// TestReserveReadsNoOtherAddresses: which pool serves an address follows from the pools alone where none overlap.
func TestReserveReadsNoOtherAddresses(t *testing.T) {
	f := newFixture(t)
	f.havePool(t)
	f.haveLease(t, "10.1.0.20", "10.0.0.11", "vm-1")
	url := proxy(t, func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/"+v1.IPResource) {
			t.Errorf("it asked for %s", r.URL)
		}
		next.ServeHTTP(rw, r)
	})
	_, stderr := f.call(t, "--server", url, "ip", "reserve", "10.1.0.21")
	contains(t, stderr, "✔ 1 address reserved: 10.1.0.21")
	stdout, _ := f.call(t, "--server", url, "ip", "describe", "10.1.0.20", "10.1.0.22")
	contains(t, stdout, "vm-1", "State:       free")
}

// TestListThatBreaksOff: half a list is an error, never a short list.
func TestListThatBreaksOff(t *testing.T) {
	f := newFixture(t)
	f.havePool(t)
	f.haveLease(t, "10.1.0.20", "10.0.0.11", "vm-1")
	url := proxy(t, func(rw http.ResponseWriter, _ *http.Request, _ http.Handler) {
		rw.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(
			rw, `{"kind":"BCSNetIPList","apiVersion":"networkextension.bkbcs.tencent.com/v1","metadata":{},"items":[`)
	})
	_, stderr := f.call(t, "--server", url, "lease", "list")
	contains(t, stderr, "the list ended early", "[exit 1]")
}

// TestClosedPipeAfterChange: a change that nobody reads the result of says all the same what it did and did not.
func TestClosedPipeAfterChange(t *testing.T) {
	f := newFixture(t)
	f.havePool(t)
	f.haveLease(t, "10.1.0.20", "10.0.0.11", "vm-1")
	f.haveLease(t, "10.1.0.21", "10.0.0.11", "vm-2")
	url := proxy(t, func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "1") {
			rw.Header().Set("Content-Type", "application/json")
			rw.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(
				rw, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"a webhook says no"}`)
			return
		}
		next.ServeHTTP(rw, r)
	})
	for _, tc := range []struct {
		args  []string
		wants []string
	}{
		{[]string{"ip", "release", "10.1.0.20", "10.1.0.21", "--yes"}, []string{"✔ 1 address released\n", "✗ 1 of 2 addresses released, not 10.1.0.21: a webhook says no"}},
		{[]string{"ip", "reserve", "10.1.0.30", "-o", "json"}, []string{"✔ 1 address reserved: 10.1.0.30\n"}},
		{[]string{"ip", "unreserve", "10.1.0.30", "-o", "name"}, []string{"✔ 1 address unreserved: 10.1.0.30\n"}},
		{[]string{"ip", "allocate", "--pool", "blue", "--for", "vm-3", "--address", "10.1.0.40"}, []string{"✔ 10.1.0.40 of pool blue allocated for vm-3\n"}},
		{[]string{"release-host", "10.0.0.11"}, []string{"✗ host 10.0.0.11: 0 of 1 address released: releasing 10.1.0.21: a webhook says no"}},
	} {
		r, out, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		var stderr bytes.Buffer
		cmd := f.command(t, append([]string{"--server", url}, tc.args...)...)
		cmd.Env = append(cmd.Env, rawEnv+"=1")
		cmd.Stdout, cmd.Stderr = out, &stderr
		err = cmd.Run()
		if closed := out.Close(); closed != nil {
			t.Fatal(closed)
		}
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != app.ExitFailed {
			t.Errorf("%v: it ended with %v", tc.args, err)
		}
		contains(t, stderr.String(), tc.wants...)
		if tc.args[0] == "ip" {
			contains(t, stderr.String(), "broken pipe")
		}
	}
}

// TestFullDisk: what could not be written is an error, of a help text, too.
func TestFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	f := newFixture(t)
	f.havePool(t)
	for _, args := range [][]string{
		{"--help"}, {"pool", "--help"}, {"pool"}, {"help", "pool", "list"}, {"--version"}, {"options"}, {"completion", "bash"},
		{"version", "--client"}, {"pool", "list"},
	} {
		var stderr bytes.Buffer
		cmd := f.command(t, args...)
		cmd.Env = append(cmd.Env, rawEnv+"=1")
		cmd.Stdout, cmd.Stderr = full, &stderr
		var exit *exec.ExitError
		if err := cmd.Run(); !errors.As(err, &exit) || exit.ExitCode() != app.ExitFailed ||
			strings.Count(stderr.String(), "no space left on device") != 1 {
			t.Errorf("%v: it ended with %v, and said %q", args, err, stderr.String())
		}
	}
}

// TestClosedPipe: a reader that has enough ends the program without a word, as with other tools.
func TestClosedPipe(t *testing.T) {
	f := newFixture(t)
	f.havePool(t)
	f.haveLease(t, "10.1.0.20", "10.0.0.11", "vm-1")
	for _, args := range [][]string{
		{"ip", "list"}, {"pool", "list"}, {"pool", "describe", "blue"}, {"ip", "list", "-o", "json"},
	} {
		r, out, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		var stderr bytes.Buffer
		cmd := f.command(t, args...)
		cmd.Env = append(cmd.Env, rawEnv+"=1")
		cmd.Stdout, cmd.Stderr = out, &stderr
		err = cmd.Run()
		if closed := out.Close(); closed != nil {
			t.Fatal(closed)
		}
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGPIPE || stderr.Len() > 0 {
			t.Errorf("%v: it ended with %v, and said %q", args, err, stderr.String())
		}
	}
}

// TestPoolCreateAfterAnInstallation: an admission policy learns of a new kind seconds after the API server serves it.
func TestPoolCreateAfterAnInstallation(t *testing.T) {
	f := newFixture(t)
	var creates atomic.Int32
	url := proxy(t, func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/bcsnetpools") && creates.Add(1) < 3 {
			rw.Header().Set("Content-Type", "application/json")
			rw.WriteHeader(http.StatusServiceUnavailable)
			status := apierrors.NewServiceUnavailable("Resource kind BCSNetPool not found. There can be a delay between " +
				"when CustomResourceDefinitions are created and when they are available.").ErrStatus
			status.Kind, status.APIVersion = "Status", "v1"
			_ = json.NewEncoder(rw).Encode(status)
			return
		}
		next.ServeHTTP(rw, r)
	})
	_, stderr := f.call(t, "--server", url, "pool", "create", "early", "--cidr", "10.77.0.0/24", "--gateway", "10.77.0.1",
		"--range", "10.77.0.20-10.77.0.29", "--host", "10.0.0.77")
	if contains(t, stderr, "early"); creates.Load() != 3 {
		t.Errorf("%d requests, want 3", creates.Load())
	}
}
