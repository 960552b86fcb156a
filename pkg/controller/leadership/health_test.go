package leadership

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/bcsnet/bcsnet/pkg/replica"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/intercept"
)

// A replica in trouble does not stand for leader while another one may, not the first time either.
func TestTroubleKeepsFromStanding(t *testing.T) {
	t.Parallel()
	key, err := replica.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	leads := NewTerms(log)
	tap := &intercept.Tap{}
	anything := func(*http.Request) bool { return true }
	tap.On(anything, intercept.Answer(http.StatusForbidden, metav1.StatusReasonForbidden, 0))
	cfg := &rest.Config{Host: "http://api.invalid"}
	cfg.Wrap(tap.Wrap)
	h := &Health{log: log, trouble: errors.New("no watch delivers")}
	var waited atomic.Bool
	h.others = func() bool { // asked while the replica waits
		if waited.Swap(true) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.trouble = nil
		} else if n := tap.Count(anything); n != 0 {
			t.Errorf("%d requests for the Lease before it was asked whether there are others", n)
		}
		return true
	}
	o := Config{Namespace: metav1.NamespaceDefault, Timing: Timing{time.Hour, time.Minute, time.Second}}
	e, err := newElection(cfg, o, newPeers(replica.New("one", ""), key, leads), leads, h, log)
	if err != nil {
		t.Fatal(err)
	}
	background(t, func(ctx context.Context) { e.run(ctx) })
	controlplane.Until(t, "it stands when it has recovered", func() bool { return tap.Count(anything) > 0 })
	if !waited.Load() {
		t.Error("it stood while it was in trouble")
	}
}
