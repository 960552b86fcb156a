package cli

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/recovery"
)

// haveRunningPod makes a pod that reports an address.
func (f *fixture) haveRunningPod(t *testing.T, name, address string) {
	t.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name},
		Spec:       corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	if err := f.client.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	p.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, StartTime: new(metav1.Now()),
		PodIP: address, PodIPs: []corev1.PodIP{{IP: address}}, HostIP: "10.0.0.11",
		HostIPs: []corev1.HostIP{{IP: "10.0.0.11"}},
	}
	if err := f.client.Status().Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
}

// TestRebuildInterrupted: Ctrl-C while leases are made leaves those that are made, and running it again does the rest.
func TestRebuildInterrupted(t *testing.T) {
	f := newFixture(t)
	f.havePool(t)
	f.haveRunningPod(t, "web-0", "10.1.0.20")
	f.haveRunningPod(t, "web-1", "10.1.0.21")
	var creates atomic.Int32
	second := make(chan struct{})
	url := proxy(t, func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, v1.IPResource) && creates.Add(1) == 2 {
			close(second)
			_, _ = io.Copy(io.Discard, r.Body) // only then is it noticed that a client has gone
			<-r.Context().Done()               // until the program gives up
			return
		}
		next.ServeHTTP(rw, r)
	})
	var stderr bytes.Buffer
	cmd := f.command(t, "--server", url, "rebuild", "--yes")
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-second:
	case err := <-ended:
		t.Fatalf("it ended with %v before the second write:\n%s", err, stderr.String())
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := <-ended; !errors.As(err, &exit) || exit.ExitCode() != app.ExitInterrupted {
		t.Errorf("it ended with %v", err)
	}
	contains(t, stderr.String(), "✗ interrupted\n", " of 2 addresses rebuilt, not ",
		"hint: run it again: it does the rest\n")
	f.call(t, "rebuild", "--yes")
	stdout, _ := f.call(t, "lease", "list", "--no-headers")
	contains(t, stdout, "10.1.0.20  blue  10.0.0.11  default  web-0", "10.1.0.21  blue  10.0.0.11  default  web-1")
}

// TestRebuildMeetsAnother: an address that somebody takes between the look and the write is a conflict, and one
// that a controller gave back to its pod is not.
func TestRebuildMeetsAnother(t *testing.T) {
	f := newFixture(t)
	f.havePool(t)
	f.haveRunningPod(t, "web-0", "10.1.0.20")
	f.haveRunningPod(t, "web-1", "10.1.0.21")
	var others sync.Once
	url := proxy(t, func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, v1.IPResource) {
			others.Do(func() {
				f.haveLease(t, "10.1.0.20", "10.0.0.11", "vm-1")
				f.haveLease(t, "10.1.0.21", "10.0.0.11", "default/web-1")
			})
		}
		next.ServeHTTP(rw, r)
	})
	stdout, stderr := f.call(t, "--server", url, "rebuild", "--yes", "-o", "name")
	if stdout != "bcsnetip.networkextension.bkbcs.tencent.com/10.1.0.21\n" {
		t.Errorf("it printed %q", stdout)
	}
	contains(t, stderr, "! 10.1.0.20 of pool blue: pod default/web-0 reports it, and vm-1 holds it now\n",
		"✗ 1 conflict stays: 10.1.0.20\n", "[exit 3]")
}

// TestPoolThatIsRebuilt: nothing is taken by hand from a pool whose pods have not told what they have, unless the
// word of its controller is too old to be true.
func TestPoolThatIsRebuilt(t *testing.T) {
	f := newFixture(t)
	p := f.havePool(t)
	says := func(ago time.Duration) {
		t.Helper()
		if err := f.client.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			t.Fatal(err)
		}
		meta.RemoveStatusCondition(&p.Status.Conditions, v1.ConditionReady)
		meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{
			Type: v1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1.ReasonRebuilding, Message: "it waits",
			LastTransitionTime: metav1.NewTime(time.Now().Add(-ago)),
		})
		if err := f.client.Status().Update(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	calls := [][]string{
		{"ip", "allocate", "--pool", "blue", "--for", "vm-1"},
		{"ip", "allocate", "--pool", "blue", "--for", "vm-1", "--dry-run=client"},
		{"ip", "reserve", "10.1.0.30"},
	}
	says(0)
	for _, call := range calls {
		_, stderr := f.call(t, call...)
		contains(t, stderr, "being rebuilt after its leases were lost, until its pods have told which addresses they have",
			"(PoolRebuilding)", "hint: ", "[exit 1]")
	}
	says(recovery.MaxWait + time.Second)
	for _, call := range calls {
		if _, stderr := f.call(t, call...); strings.Contains(stderr, "exit") {
			t.Errorf("%v: %s", call, stderr)
		}
	}
}
