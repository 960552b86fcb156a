package faults_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// trail is every version of every address as the API server told of it, in a file beside the logs of the replicas: a
// failure is understood from both.
type trail struct {
	mu  sync.Mutex
	out *bufio.Writer
}

// newTrail begins leases.log among the logs of a control plane.
func newTrail(t *testing.T, cp *controlplane.ControlPlane) *trail {
	t.Helper()
	f, err := os.Create(filepath.Join(cp.LogDir, "leases.log"))
	if err != nil {
		t.Fatal(err)
	}
	l := &trail{out: bufio.NewWriter(f)}
	t.Cleanup(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		_ = l.out.Flush() // a trail that is cut short is better than none
		_ = f.Close()
	})
	return l
}

// add notes a version of an address.
func (l *trail) add(now lease.Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.out, "%s %s version %d bound %d %s container %.8s of %s (%s) updated %s\n",
		store.FormatTime(time.Now()),
		now.Addr, now.Version, now.Bound(), now.State, now.ContainerID, now.Who(), now.PodUID,
		store.FormatTime(now.Updated))
}

// keptLogs is a directory for the logs of a test, which stays and is named when the test fails.
func keptLogs(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "faults-logs-") //nolint:usetesting // it outlives a test that failed
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the logs of the control plane, and what became of every address, are in %s", dir)
			return
		}
		_ = os.RemoveAll(dir) // a leftover in the temporary directory is no reason to fail
	})
	return dir
}
