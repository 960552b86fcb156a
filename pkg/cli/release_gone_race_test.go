package cli

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
)

// TestReleaseGoneBesidesOthers: what comes back between the two looks, or between the second and the write, is left
// alone.
func TestReleaseGoneBesidesOthers(t *testing.T) {
	f := newFixture(t)
	for name, tc := range map[string]struct {
		// after is the number of requests of the method for the path that come before the change.
		method, path string
		after        int32
		change       func() error
		wants        []string
		freed        bool
	}{
		"the pod, before the second look": {
			http.MethodGet, "/pods/gone-0", 1, func() error { f.haveRunningPod(t, "gone-0", "10.1.0.20"); return nil },
			[]string{"10.1.0.20 is not released: pod default/gone-0 is there and may use it\n"}, false,
		},
		"the container, before the write": {
			http.MethodPut, "/bcsnetips/10.1.0.20", 0, func() error {
				ip := f.object(t, "10.1.0.20")
				ip.Status.ContainerID, ip.Status.PodUID = "another", "new"
				return f.client.Update(t.Context(), ip)
			}, []string{"10.1.0.20 is not released: somebody else has changed it\n"}, false,
		},
		"its DEL, before the write": {
			http.MethodPut, "/bcsnetips/10.1.0.20", 0, func() error {
				ip := f.object(t, "10.1.0.20")
				ip.Status, ip.Finalizers = v1.BCSNetIPStatus{Status: v1.IPAvailable}, nil
				return f.client.Update(t.Context(), ip)
			}, []string{"10.1.0.20 is not released: somebody else has changed it\n"}, true,
		},
		"the node goes away": {
			http.MethodGet, "/api/v1/nodes", 1, func() error {
				var n corev1.Node
				if err := f.client.Get(t.Context(), client.ObjectKey{Name: "node-1"}, &n); err != nil {
					return err
				}
				n.Status.Conditions = []corev1.NodeCondition{
					{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: metav1.Now()},
				}
				return f.client.Status().Update(t.Context(), &n)
			}, []string{"10.1.0.20 is not released: its containers may still run: host 10.0.0.11 is not a Ready node\n"},
			false,
		},
		"nobody": {
			http.MethodGet, "/nothing", 0, func() error { return nil }, []string{"✔ 1 address released\n"}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f.havePool(t)
			f.haveReadyNode(t, "node-1", "10.0.0.11")
			f.haveLease(t, "10.1.0.20", "10.0.0.11", "default/gone-0")
			var seen atomic.Int32
			url := proxy(t, func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
				if r.Method == tc.method && strings.HasSuffix(r.URL.Path, tc.path) && seen.Add(1) == tc.after+1 {
					if err := tc.change(); err != nil {
						t.Error(err)
					}
				}
				next.ServeHTTP(rw, r)
			})
			_, stderr := f.call(t, "--server", url, "ip", "release", "--pool", "blue", "--yes", "--settle", "1ms")
			contains(t, stderr, tc.wants...)
			if freed := f.object(t, "10.1.0.20").Status.Status == v1.IPAvailable; freed != tc.freed {
				t.Errorf("it is free: %v, want %v\n%s", freed, tc.freed, stderr)
			}
		})
	}
}

// TestReleaseGonePartly: what fails is counted, and can be run again; what was released is printed.
func TestReleaseGonePartly(t *testing.T) {
	f := newFixture(t)
	f.havePool(t)
	f.haveReadyNode(t, "node-1", "10.0.0.11")
	for _, a := range []string{"10.1.0.20", "10.1.0.21", "10.1.0.22"} {
		f.haveLease(t, a, "10.0.0.11", "default/gone-"+a[len(a)-1:])
	}
	url := proxy(t, func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/10.1.0.21") {
			rw.Header().Set("Content-Type", "application/json")
			rw.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(
				rw, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"a webhook says no"}`)
			return
		}
		next.ServeHTTP(rw, r)
	})
	stdout, stderr := f.call(t, "--server", url, "ip", "release", "--host", "node-1", "--yes", "--settle=0s", "-o",
		"name")
	if want := "bcsnetip.networkextension.bkbcs.tencent.com/10.1.0.20\nbcsnetip.networkextension.bkbcs.tencent.com/10.1.0.22\n"; stdout != want {
		t.Errorf("got %q, want %q", stdout, want)
	}
	contains(t, stderr, "✗ 2 of 3 addresses released, not 10.1.0.21: a webhook says no (Forbidden)\n", "[exit 1]")
	_, stderr = f.call(t, "ip", "release", "--host", "node-1", "--yes", "--settle=0s")
	contains(t, stderr, "✔ 1 address released\n")
}

// TestReleaseGoneInterrupted: Ctrl-C after the first look, while it waits for the second, releases nothing.
func TestReleaseGoneInterrupted(t *testing.T) {
	f := newFixture(t)
	f.havePool(t)
	f.haveReadyNode(t, "node-1", "10.0.0.11")
	f.haveLease(t, "10.1.0.20", "10.0.0.11", "default/gone-0")
	looked := make(chan struct{})
	url := proxy(t, func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		next.ServeHTTP(rw, r)
		if strings.HasSuffix(r.URL.Path, "/api/v1/nodes") {
			close(looked)
		}
	})
	stdout, stderr := f.interrupted(t, func() {
		<-looked
	}, "--server", url, "ip", "release", "--pool", "blue", "--yes", "--settle", "1h")
	if stdout != "" {
		t.Errorf("on standard output: %s", stdout)
	}
	contains(t, stderr, "✗ interrupted\n")
	if f.object(t, "10.1.0.20").Status.Status != v1.IPActive {
		t.Error("it was released")
	}
}

// TestReleaseGoneInterruptedWhileItWrites: after Ctrl-C no further lease ends, those under way do, both parts are said,
// and running it again does the rest.
func TestReleaseGoneInterruptedWhileItWrites(t *testing.T) {
	f := newFixture(t)
	f.havePool(t)
	f.haveReadyNode(t, "node-1", "10.0.0.11")
	const leases = 20
	for i := range leases {
		f.haveLease(t, fmt.Sprintf("10.1.0.%d", 20+i), "10.0.0.11", fmt.Sprintf("default/gone-%d", i))
	}
	// The second look at one pod takes long; meanwhile, with the other workers held up, the user interrupts.
	looking, heldUp, noticed := make(chan struct{}), make(chan struct{}, leases), make(chan struct{})
	var looks atomic.Int32
	url := proxy(t, func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		switch {
		case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/pods/gone-0") && looks.Add(1) == 2:
			close(looking)
			<-r.Context().Done() // the program has noticed
			close(noticed)
		case r.Method == http.MethodPut:
			heldUp <- struct{}{}
			<-noticed
			next.ServeHTTP(rw, r)
		default:
			next.ServeHTTP(rw, r)
		}
	})
	stdout, stderr := f.interrupted(t, func() {
		<-looking
		for range resource.AtOnce - 1 {
			<-heldUp
		}
	}, "--server", url, "ip", "release", "--pool", "blue", "--yes", "--settle", "0s", "-o", "name")
	contains(t, stderr, "✔ 15 addresses released\n", "✗ interrupted\n",
		"✗ 15 of 20 addresses released, not 10.1.0.20, 10.1.0.36-10.1.0.39\nhint: run it again: it does the rest\n")
	if got := strings.Count(stdout, "\n"); got != 15 {
		t.Errorf("%d addresses on standard output:\n%s", got, stdout)
	}
	_, again := f.call(t, "ip", "release", "--pool", "blue", "--yes", "--settle", "0s")
	contains(t, again, "► pool blue: 5 addresses, 5 of holders that are gone\n", "✔ 5 addresses released\n")
}
