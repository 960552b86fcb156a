package store

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/test/intercept"
)

// tapped is a client for which the hooks of a tap are the API server.
func tapped(t *testing.T, tap *intercept.Tap) *Client {
	t.Helper()
	cfg := &rest.Config{Host: "http://api.invalid"}
	cfg.Wrap(tap.Wrap)
	return connectTo(t, cfg, index.New())
}

func anything(*http.Request) bool { return true }

// An API server that is too busy for a probe has answered it, and is not asked again within the probe's time.
func TestProbeOfBusyAPIServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tap := &intercept.Tap{}
		tap.On(anything, intercept.Answer(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, 1))
		c := tapped(t, tap)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if err := c.Probe(ctx, time.Second); err != nil {
			t.Errorf("too busy counts as no answer: %v", err)
		}
		if n := tap.Count(anything); n != 1 {
			t.Errorf("%d reads, want 1", n)
		}
	})
}

// A write of unknown outcome that nothing follows leaves nothing without an answer; one that hung does, for a while.
func TestUnansweredInAQuietCluster(t *testing.T) {
	for what, hung := range map[string]time.Duration{"failed at once": 0, "hung": WriteTimeout} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := tapped(t, &intercept.Tap{})
				c.counts.answering.begin()
				<-time.After(hung)
				if got := c.Unanswered(); got != hung {
					t.Errorf("on its way: unanswered for %s, want %s", got, hung)
				}
				c.counts.answering.end(ErrUnknown)
				<-time.After(unknownFor)
				if got := c.Unanswered(); got != hung {
					t.Errorf("a quiet time later: unanswered for %s, want %s", got, hung)
				}
				<-time.After(time.Second)
				if got := c.Unanswered(); got != 0 {
					t.Errorf("long after: unanswered for %s", got)
				}
			})
		})
	}
}
