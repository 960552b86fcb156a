package groups_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/allocator"
	program "github.com/bcsnet/bcsnet/pkg/controller"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/inprocess"
	"github.com/bcsnet/bcsnet/test/intercept"
	"github.com/bcsnet/bcsnet/test/plugin"
	"github.com/bcsnet/bcsnet/test/site"
)

// between stands between a replica and the API server, and treats requests by a rule.
type between struct {
	api *intercept.API

	mu   sync.Mutex
	rule func(w http.ResponseWriter, r *http.Request) (passes http.ResponseWriter)
}

func (b *between) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	rule := b.rule
	b.mu.Unlock()
	if rule != nil {
		if w = rule(w, r); w == nil {
			return
		}
	}
	b.api.Forward.ServeHTTP(w, r)
}

// set has a rule treat what comes from now on: it returns where the answer goes, or nil when there is none.
func (b *between) set(rule func(w http.ResponseWriter, r *http.Request) http.ResponseWriter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rule = rule
}

// startBehind starts a replica that reaches the API server through a between.
func startBehind(s *site.Site, own *controlplane.ControlPlane) (*inprocess.Controller, *between) {
	s.Helper()
	account, err := own.ServiceAccountConfig(s.Context(), controlplane.SystemNamespace, controlplane.ControllerName)
	if err != nil {
		s.Fatal(err)
	}
	b := &between{}
	b.api = intercept.NewAPI(s.T, account, b)
	return inprocess.ForTest(s.T, b.api.Config(), func(o *program.Options) {
		o.AdvertiseAddress = "none" // whoever does not lead answers by itself
	}), b
}

// lateWriter keeps an answer back until a channel is closed.
type lateWriter struct {
	http.ResponseWriter
	until <-chan struct{}
	done  <-chan struct{}
}

func (w lateWriter) Write(p []byte) (int, error) {
	select {
	case <-w.until:
		return w.ResponseWriter.Write(p)
	case <-w.done:
		return 0, errors.New("the client has gone")
	}
}

func (w lateWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// aheadWriter sets the clock of the API server forward by an hour, as a client sees it.
type aheadWriter struct{ http.ResponseWriter }

func (w aheadWriter) WriteHeader(status int) {
	if date, err := http.ParseTime(w.Header().Get("Date")); err == nil {
		w.Header().Set("Date", date.Add(time.Hour).Format(http.TimeFormat))
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w aheadWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// TestStaleReplica: a replica that has not heard of a group yet gives an address of it out as the parent's. The group
// begins no earlier than such a request can end, also where the API server's clock is set forward meanwhile, and not
// while somebody has the address.
func TestStaleReplica(t *testing.T) {
	t.Parallel()
	s, own := alone(t)
	_, front := startBehind(s, own)
	parent := s.NewPool("stale", nil, "10.70.0.20-10.70.0.29")
	s.WantReady(parent)
	stale, behind := startBehind(s, own)
	hears := make(chan struct{})
	var shut sync.Once
	silent := make(chan struct{})
	behind.set(func(w http.ResponseWriter, r *http.Request) http.ResponseWriter {
		if !intercept.Watches(r) || !intercept.Of("bcsnetpools")(r) {
			return w
		}
		shut.Do(func() { close(silent) })
		return lateWriter{w, hears, r.Context().Done()}
	})
	behind.api.Cut() // of the watch that is under way
	<-silent
	s.NewPod("stale-a")
	s.NewPod("stale-b")

	began := time.Now()
	group := newGroup(s, "stale-eng", "stale", "10.70.0.24-10.70.0.26")
	s.WantCondition(group, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonCarving, "requests that began before")
	front.set(func(w http.ResponseWriter, _ *http.Request) http.ResponseWriter { return aheadWriter{w} })
	var a plugin.Answer
	controlplane.EventuallyWithin(t, site.Patience, func() error { // its other watches begin anew as well
		if a = s.AskAt(stale.URL, http.MethodPost, "stale-a", "10.70.0.24"); a.Code != 0 {
			return errors.New(a.Message)
		}
		return nil
	})
	if a.Address.Pool != parent.Name {
		t.Errorf("the replica knows of the group: %+v", a)
	}
	s.WantCondition(group, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonCarving, "10.70.0.24 (default/stale-a")
	if a := s.AskAt(stale.URL, http.MethodDelete, "stale-a", ""); a.Code != 0 {
		t.Error(a.Message)
	}
	close(hears)
	s.WantReady(group)
	if took := time.Since(began); took < allocator.MaxRequestTime {
		t.Errorf("the group serves after %s, before a request that began earlier is over", took)
	}
	controlplane.EventuallyWithin(t, site.Patience, func() error {
		if a := s.AskAt(stale.URL, http.MethodPost, "stale-b", "10.70.0.24"); a.Code != 0 || a.Address.Pool != group.Name {
			return fmt.Errorf("the replica that has heard of the group: %+v", a)
		}
		return nil
	})
	s.AskAt(stale.URL, http.MethodDelete, "stale-b", "")
}

// lostLeader holds the steps of a leader by which it hands groups over: the list for one of them, the write for
// another, and the answer of the write for a third.
type lostLeader struct {
	b       *between
	arrived map[string]chan struct{}
	gone    chan struct{}
	// late is the write that is held.
	late     *http.Request
	lateBody []byte
}

func (l *lostLeader) at(point string, r *http.Request) {
	select {
	case <-l.arrived[point]:
	default:
		close(l.arrived[point])
	}
	select {
	case <-l.gone:
	case <-r.Context().Done():
	}
	panic(http.ErrAbortHandler)
}

func (l *lostLeader) rule(w http.ResponseWriter, r *http.Request) http.ResponseWriter {
	select {
	case <-l.gone:
		panic(http.ErrAbortHandler)
	default:
	}
	if intercept.Of("bcsnetips")(r) && strings.Contains(r.URL.Query().Get("fieldSelector"), "spec.pool!=gone-list") {
		l.at("list", r)
	}
	if r.Method != http.MethodPatch || !strings.HasSuffix(r.URL.Path, "/status") {
		return w
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	switch {
	case !bytes.Contains(body, []byte(`"carved"`)):
	case strings.Contains(r.URL.Path, "/gone-write/"):
		if l.late == nil {
			l.late, l.lateBody = r.Clone(context.Background()), body
		}
		l.at("write", r)
	case strings.Contains(r.URL.Path, "/gone-answer/"):
		l.b.api.Forward.ServeHTTP(httptest.NewRecorder(), r)
		l.at("answer", r)
	}
	return w
}

// arrive sends the held write, as a leader does that was stopped in between and runs on.
func (l *lostLeader) arrive() int {
	w := httptest.NewRecorder()
	l.late.Body = io.NopCloser(bytes.NewReader(l.lateBody))
	l.b.api.Forward.ServeHTTP(w, l.late)
	return w.Code
}

// TestLeaderGoesWhileItCarves: a leader is lost between the wait and the list, between the list and the write, and
// after the write. The next one begins the wait anew where nothing was written; and a write that comes late changes
// nothing that was decided since.
func TestLeaderGoesWhileItCarves(t *testing.T) {
	t.Parallel()
	s, own := alone(t)
	_, b := startBehind(s, own)
	l := &lostLeader{b: b, gone: make(chan struct{}), arrived: map[string]chan struct{}{}}
	for _, point := range []string{"list", "write", "answer"} {
		l.arrived[point] = make(chan struct{})
	}
	b.set(l.rule)
	parent := s.NewPool("gone", nil, "10.71.0.20-10.71.0.49")
	groups := map[string]*v1.BCSNetPool{
		"list":   newGroup(s, "gone-list", "gone", "10.71.0.20-10.71.0.22"),
		"write":  newGroup(s, "gone-write", "gone", "10.71.0.30-10.71.0.33"),
		"answer": newGroup(s, "gone-answer", "gone", "10.71.0.40-10.71.0.42"),
	}
	for point, arrived := range l.arrived {
		select {
		case <-arrived:
		case <-time.After(site.Patience):
			t.Fatalf("the leader does not come to the %s", point)
		}
	}
	close(l.gone)
	b.api.Cut()
	for point, written := range map[string]bool{"list": false, "write": false, "answer": true} {
		g := groups[point]
		if err := s.Admin.Get(t.Context(), client.ObjectKeyFromObject(g), g); err != nil {
			t.Fatal(err)
		}
		if (len(g.Status.Carved) > 0) != written {
			t.Errorf("group %s: carved %v when the leader went", g.Name, g.Status.Carved)
		}
	}

	// The group that was about to be written gives an address back before the next leader comes, and somebody gets it.
	began := time.Now()
	next, _ := startBehind(s, own)
	s.Edit(groups["write"], func(s *v1.BCSNetPoolSpec) { s.AvailableIPs = []string{"10.71.0.30-10.71.0.32"} })
	s.NewPod("gone-a")
	s.NewPod("gone-b")
	controlplane.EventuallyWithin(t, site.Patience, func() error {
		if a := s.AskAt(next.URL, http.MethodPost, "gone-a", "10.71.0.33"); a.Code != 0 || a.Address.Pool != parent.Name {
			return fmt.Errorf("%+v", a)
		}
		return nil
	})
	if code := l.arrive(); code != http.StatusConflict {
		t.Errorf("a write of the leader before comes late and is answered with %d", code)
	}
	for point, g := range groups {
		s.WantReady(g)
		if took := time.Since(began); point != "answer" && took < allocator.MaxRequestTime {
			t.Errorf("group %s serves %s after the next leader came", g.Name, took)
		}
	}
	g := groups["write"]
	if want := []string{"10.71.0.30-10.71.0.32"}; !slices.Equal(g.Status.Carved, want) {
		t.Errorf("carved %v, want %v", g.Status.Carved, want)
	}
	if a := s.AskAt(next.URL, http.MethodPost, "gone-b", "10.71.0.33"); a.Reason != "AddressInUse" {
		t.Errorf("what somebody has: %+v", a)
	}
	if a := s.AskAt(next.URL, http.MethodPost, "gone-b", "10.71.0.31"); a.Code != 0 || a.Address.Pool != g.Name {
		t.Errorf("of the group: %+v", a)
	}
	for _, pod := range []string{"gone-a", "gone-b"} {
		s.AskAt(next.URL, http.MethodDelete, pod, "")
	}
	if c := meta.FindStatusCondition(parent.Status.Conditions, v1.ConditionOverlap); c != nil && c.Status == metav1.ConditionTrue {
		t.Errorf("the parent overlaps: %s", c.Message)
	}
}
