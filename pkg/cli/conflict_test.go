package cli

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
)

// interfering is a proxy that changes the pool right before each of the first n changes of the program.
func (f *fixture) interfering(t *testing.T, n int64) (url string, seen *atomic.Int64) {
	t.Helper()
	seen = &atomic.Int64{}
	return proxy(t, func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		if i := seen.Add(1); r.Method != http.MethodPatch {
			seen.Add(-1)
		} else if i <= n {
			var p v1.BCSNetPool
			err := f.client.Get(r.Context(), client.ObjectKey{Name: "blue"}, &p)
			if err == nil {
				p.Spec.Hosts = append(p.Spec.Hosts, fmt.Sprintf("10.0.1.%d", i))
				p.Spec.AvailableIPs = append(p.Spec.AvailableIPs, fmt.Sprintf("10.1.0.%d", 100+i))
				err = f.client.Update(r.Context(), &p)
			}
			if err != nil {
				t.Error(err)
			}
		}
		next.ServeHTTP(rw, r)
	}), seen
}

func TestConflictIsRetried(t *testing.T) {
	f := newFixture(t)
	f.havePool(t)
	url, seen := f.interfering(t, 3)
	_, stderr := f.call(t, "--server", url, "pool", "add-ip", "blue", "10.1.0.200")
	if stderr != "✔ 1 address added to pool blue: 10.1.0.200\n" || seen.Load() != 4 {
		t.Errorf("after %d changes:\n%s", seen.Load(), stderr)
	}
	var p v1.BCSNetPool
	if err := f.client.Get(t.Context(), client.ObjectKey{Name: "blue"}, &p); err != nil {
		t.Fatal(err)
	}
	want := []string{"10.1.0.20-10.1.0.99", "10.1.0.101", "10.1.0.102", "10.1.0.103", "10.1.0.200"}
	if !slices.Equal(p.Spec.AvailableIPs, want) || len(p.Spec.Hosts) != 4 {
		t.Errorf("got %v and %v, want %v and four hosts", p.Spec.AvailableIPs, p.Spec.Hosts, want)
	}
}

func TestConflictsWithoutEnd(t *testing.T) {
	f := newFixture(t)
	f.havePool(t)
	url, _ := f.interfering(t, 1<<32)
	_, stderr := f.call(t, "--server", url, "pool", "add-host", "blue", "10.0.0.12")
	contains(t, stderr, "✗ pool blue was changed by others 12 times in a row", "hint: try again in a moment", "[exit 1]")
}

// TestConcurrentEdits has many processes add to one pool at once: nothing is lost.
func TestConcurrentEdits(t *testing.T) {
	f := newFixture(t)
	f.havePool(t)
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			if _, stderr := f.call(t, "pool", "add-host", "blue", fmt.Sprintf("10.0.2.%d", i)); !strings.HasPrefix(stderr, "✔") {
				t.Error(stderr)
			}
		})
	}
	wg.Wait()
	var p v1.BCSNetPool
	if err := f.client.Get(t.Context(), client.ObjectKey{Name: "blue"}, &p); err != nil {
		t.Fatal(err)
	}
	if len(p.Spec.Hosts) != 7 {
		t.Errorf("the hosts are %v", p.Spec.Hosts)
	}
}
