package storm_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// TestOverload: 2,000 containers ask two replicas at once, and wait for a second and a half, which is less than it
// takes to serve them all. Whoever is refused is told so as the API promises, deletes his container and comes again
// with another one, as kubelets do. All get an address in the end, and what was written for callers who had gone is
// free again.
func TestOverload(t *testing.T) {
	controlplane.TakesLong(t)
	const containers, patience = 2000, 1500 * time.Millisecond
	name := pool(t, "10.5.0.0/20", hosts)
	var refused, again atomic.Int64
	holds := make([]string, containers) // the container that was answered last
	var wg sync.WaitGroup
	for i := range containers {
		wg.Go(func() {
			for try := 0; t.Context().Err() == nil; try++ {
				container := fmt.Sprintf("over-%d-%d", i, try)
				a := overloaded(t, http.MethodPost, i, container, patience)
				if a.refused {
					refused.Add(1)
				}
				if a.done {
					holds[i] = container
					return
				}
				again.Add(1)
				pause(t.Context(), time.Second<<min(try, 3))
				for !overloaded(t, http.MethodDelete, i, container, allowed).done && t.Context().Err() == nil {
					pause(t.Context(), time.Second)
				}
			}
		})
	}
	wg.Wait()
	if refused.Load() == 0 {
		t.Error("nobody was refused: the test is too gentle")
	}
	slices.Sort(holds)
	controlplane.EventuallyWithin(t, time.Minute, func() error {
		var list v1.BCSNetIPList
		if err := admin.List(t.Context(), &list, client.MatchingFields{"spec.pool": name}); err != nil {
			return err
		}
		var stored []string
		for _, ip := range list.Items {
			if ip.Status.Status == v1.IPActive {
				stored = append(stored, ip.Status.ContainerID)
			}
		}
		slices.Sort(stored)
		if !slices.Equal(stored, holds) {
			return fmt.Errorf("%d leases are stored for %d containers that were answered", len(stored), len(holds))
		}
		return nil
	})
	t.Logf("%d containers at once, %d refusals, %d tries again", containers, refused.Load(), again.Load())
	for i := range containers { // owners' leases stay until somebody gives them up
		wg.Go(func() { overloaded(t, http.MethodDelete, i, "", allowed) })
	}
	wg.Wait()
}

// allowed is how long a request may take at most.
const allowed = 15 * time.Second

// told is what became of a request of the overload.
type told struct{ done, refused bool }

// overloaded sends a request of an owner, which tells how long it waits, and checks how it is refused.
func overloaded(t *testing.T, method string, i int, container string, patience time.Duration) (o told) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	body, err := json.Marshal(wire.AllocateRequest{
		Host: host(i % hosts), ContainerID: container, Owner: fmt.Sprint("over-", i),
	})
	if err != nil {
		t.Error(err)
	}
	r, err := http.NewRequestWithContext(ctx, method, replicas[i%len(replicas)]+wire.Prefix, bytes.NewReader(body))
	if err != nil {
		t.Error(err)
		return o
	}
	r.Header.Set("Bcsnet-Timeout-Ms", strconv.FormatInt(patience.Milliseconds(), 10))
	resp, err := caller.Do(r)
	if err != nil {
		return o // it took too long
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	var e wire.Envelope
	switch {
	case err != nil:
		return o
	case json.Unmarshal(text, &e) != nil:
		t.Errorf("%s: %d %s", method, resp.StatusCode, text)
	case e.Code == 0:
		o.done = true
	case e.Reason == ipam.ReasonOverloaded:
		o.refused = true
		seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
		if err != nil || seconds < 1 || resp.StatusCode != http.StatusServiceUnavailable ||
			resp.Header.Get("Bcsnet-Reason") != "Overloaded" {
			t.Errorf("refused with %d and Retry-After %q: %s", resp.StatusCode, resp.Header.Get("Retry-After"), text)
		}
	case resp.StatusCode != http.StatusServiceUnavailable: // out of time: what was begun may have been stored
		t.Errorf("%s: %d %s", method, resp.StatusCode, text)
	}
	return o
}
