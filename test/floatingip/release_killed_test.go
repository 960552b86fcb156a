package floatingip_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

// TestReleaseKilled: a replica is killed in the middle of a large release, and a client ends in the middle of the next.
// Run again, it has released what it names and nothing else.
func TestReleaseKilled(t *testing.T) {
	controlplane.TakesLong(t)
	prepare(t)
	victim, err := cluster.StartController(t.Context(), controlplane.ControllerOptions{Name: "victim"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := victim.Stop(); err != nil {
			t.Error(err)
		}
	})
	restPool(t, "large", "10.0.76", "10.0.76.2-10.0.76.251")
	if status, text := rest(t, http.MethodPost, "/v1/pool",
		`{"name":"large","size":250,"preAllocateIP":true}`); status != http.StatusOK {
		t.Fatalf("%d %s", status, text)
	}
	release := func(from, to int) string {
		var asks []string
		for i := from; i <= to; i++ {
			asks = append(asks, fmt.Sprintf(`{"ip":"10.0.76.%d","poolName":"large"}`, i))
		}
		return `{"ips":[` + strings.Join(asks, ",") + `]}`
	}
	kept := func() int { return len(held(t, "poolName=large&size=1000")) }
	controlplane.Eventually(t, func() error {
		if n := kept(); n != 250 {
			return fmt.Errorf("%d addresses are kept", n)
		}
		return nil
	})
	answers(t, http.MethodDelete, "/v1/pool/large", "", http.StatusOK, `{"code":200,"message":""}`) // else it takes others
	const first, last = 2, 201
	halfway := func(url string, below int, end func(cancel context.CancelFunc)) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan error, 1)
		go func() {
			_, _, err := restAt(ctx, url, http.MethodPost, "/v1/ip", release(first, last))
			ended <- err
		}()
		controlplane.Eventually(t, func() error {
			if n := kept(); n >= below {
				return fmt.Errorf("%d addresses are kept", n)
			}
			return nil
		})
		end(cancel)
		t.Logf("it ended with %v, and %d addresses are kept", <-ended, kept())
	}
	halfway(victim.URL, 250, func(context.CancelFunc) {
		if err := victim.Kill(); err != nil {
			t.Error(err)
		}
	})
	if err := victim.Start(t.Context()); err != nil { // it comes again, as a Deployment has it
		t.Fatal(err)
	}
	halfway(victim.URL, max(kept(), 51), func(cancel context.CancelFunc) { cancel() })

	controlplane.Eventually(t, func() error { // what the client asked for may still be on its way
		if status, text := rest(t, http.MethodPost, "/v1/ip", release(first, last)); status != http.StatusOK && kept() != 50 {
			return fmt.Errorf("%d %s", status, text)
		}
		return nil
	})
	all := held(t, "poolName=large&size=1000&sort=ip-numeric")
	for i, line := range all {
		if !strings.HasPrefix(line, fmt.Sprintf("10.0.76.%d ", last+1+i)) {
			t.Errorf("it keeps %s", line)
		}
	}
	if len(all) != 50 {
		t.Errorf("%d addresses are kept, want 50", len(all))
	}
	if status, text := rest(t, http.MethodPost, "/v1/ip", release(last+1, 251)); status != http.StatusOK {
		t.Errorf("%d %s", status, text)
	}
}
