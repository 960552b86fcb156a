package cli

import (
	"bufio"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
)

// TestWaitIsTold: waiting costs a read and a watch, however long it takes, and a watch that breaks off is
// begun again.
func TestWaitIsTold(t *testing.T) {
	f := newFixture(t)
	p := f.havePool(t)
	var mu sync.Mutex
	var asked []string
	broken := make(chan struct{})
	url := proxy(t, func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		kind := "read"
		if r.URL.Query().Get("watch") != "" {
			kind = "watch"
		}
		mu.Lock()
		asked = append(asked, kind)
		watches := strings.Count(strings.Join(asked, " "), "watch")
		mu.Unlock()
		if kind == "watch" && watches == 1 {
			close(broken) // with an empty answer
			return
		}
		next.ServeHTTP(rw, r)
	})
	done := make(chan string)
	go func() {
		_, stderr := f.call(t, "--server", url, "wait", "blue", "--for=ready", "--timeout=1m")
		done <- stderr
	}()
	<-broken
	p.Status.ObservedGeneration = p.Generation
	meta.SetStatusCondition(&p.Status.Conditions,
		metav1.Condition{Type: v1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1.ReasonReady})
	if err := f.client.Status().Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	stderr := <-done
	if stderr != "◎ pool blue: waiting until it is ready: no controller has looked at it yet\n✔ pool blue is ready\n" {
		t.Errorf("it said %q", stderr)
	}
	if got := strings.Join(asked, " "); got != "read read watch watch" {
		t.Errorf("it asked: %s", got)
	}
}

// TestEventsAreTold: events appear as they happen, until Ctrl-C.
func TestEventsAreTold(t *testing.T) {
	f := newFixture(t)
	p := f.havePool(t)
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := f.command(t, "events", "-w", "blue")
	cmd.Env = append(cmd.Env, rawEnv+"=1")
	cmd.Stdout = in
	f.happen(t, p, "first", "one")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = in.Close() // the program has it
	lines := bufio.NewScanner(out)
	next := func() string {
		if !lines.Scan() {
			t.Fatalf("no more lines: %v", lines.Err())
		}
		return lines.Text()
	}
	if header := next(); !strings.HasPrefix(header, "AGE ") {
		t.Errorf("the first line is %q", header)
	}
	contains(t, next(), "Warning", "first", "bcsnetpool/blue", "one")
	f.happen(t, p, "second", "two")
	contains(t, next(), "Warning", "second", "bcsnetpool/blue", "two")
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // how it ended is in its state
	if code := cmd.ProcessState.ExitCode(); code != app.ExitDone {
		t.Errorf("exit code %d", code)
	}
}

// happen makes an event about a pool, as the controller does.
func (f *fixture) happen(t *testing.T, p *v1.BCSNetPool, reason, note string) {
	t.Helper()
	e := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "blue-", Namespace: metav1.NamespaceDefault},
		EventTime:  metav1.NowMicro(), Type: corev1.EventTypeWarning, Reason: reason, Action: "Test", Note: note,
		ReportingController: "test", ReportingInstance: "test",
		Regarding: corev1.ObjectReference{APIVersion: v1.GroupVersion.String(), Kind: "BCSNetPool", Name: p.Name, UID: p.UID},
	}
	if _, err := f.kubernetes.EventsV1().Events(metav1.NamespaceDefault).
		Create(t.Context(), e, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestCompletionGivesUp: a shell does not hang on an API server that does not answer, and says nothing.
func TestCompletionGivesUp(t *testing.T) {
	f := newFixture(t)
	url := proxy(t, func(_ http.ResponseWriter, r *http.Request, _ http.Handler) { <-r.Context().Done() })
	cmd := f.command(t, "--server", url, "__completeNoDesc", "wait", "")
	cmd.Env = append(cmd.Env, rawEnv+"=1")
	began := time.Now()
	out, err := cmd.Output()
	if err != nil || string(out) != ":4\n" {
		t.Errorf("%q, %v", out, err)
	}
	if took := time.Since(began); took > 30*time.Second { // the machine may be busy
		t.Errorf("it took %s", took)
	}
}
