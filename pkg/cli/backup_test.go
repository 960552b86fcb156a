package cli

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
)

// haveBackup makes a pool with eight leases of machines and a claim's address, saves it, and empties the cluster.
func (f *fixture) haveBackup(t *testing.T) (file string) {
	t.Helper()
	f.havePool(t)
	for i := range 8 {
		f.haveLease(t, fmt.Sprintf("10.1.0.%d", 30+i), "10.0.0.11", fmt.Sprintf("vm-%d", i))
	}
	c := &v1.BCSNetIPClaim{Spec: v1.BCSNetIPClaimSpec{Replicas: new(int32(1)), ReleasePolicy: v1.ReleaseNever}}
	c.Namespace, c.Name = "default", "db"
	if err := f.client.Create(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := f.kept(t.Context(), nil, []string{"10.1.0.50", "blue", "10.0.0.11", "default/db-0", "default/db"}); err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "backup")
	_, stderr := f.call(t, "backup", file)
	contains(t, stderr, "saved: 1 pool, 1 claim, 9 addresses")
	if err := f.wipe(t.Context()); err != nil {
		t.Fatal(err)
	}
	return file
}

// isRestored fails unless everything is as in the backup.
func (f *fixture) isRestored(t *testing.T, file string) {
	t.Helper()
	again := filepath.Join(t.TempDir(), "again")
	f.call(t, "backup", again)
	var texts [2]string
	for i, name := range []string{file, again} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = string(text)
	}
	if texts[0] != texts[1] {
		t.Errorf("restored\n%s\nwant\n%s", texts[1], texts[0])
	}
}

// TestRestoreKilled: killed before any of its writes, a restore leaves a pool that gives nobody an address of the
// backup, and the next one does the rest.
func TestRestoreKilled(t *testing.T) {
	f := newFixture(t)
	const writes = 1 + 1 + 9 + 1 // pool, claim, addresses, uncordon
	for _, at := range []int32{1, 2, 3, 7, writes - 1, writes} {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			file := f.haveBackup(t)
			var seen atomic.Int32
			stuck := make(chan struct{})
			url := proxy(t, func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
				if r.Method != http.MethodGet && strings.Contains(r.URL.Path, v1.GroupVersion.Group) {
					if n := seen.Add(1); n >= at {
						if n == at {
							close(stuck)
						}
						_, _ = io.Copy(io.Discard, r.Body) // only then is it noticed that a client has gone
						<-r.Context().Done()
						return
					}
				}
				next.ServeHTTP(rw, r)
			})
			cmd := f.command(t, "--server", url, "restore", file, "--yes")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			<-stuck
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // it was killed
			if at > 1 {
				_, stderr := f.call(t, "ip", "allocate", "--pool", "blue", "--for", "thief")
				contains(t, stderr, "cordoned")
			}
			_, stderr := f.call(t, "restore", file, "--yes")
			if strings.Contains(stderr, "✗") {
				t.Errorf("%s", stderr)
			}
			f.isRestored(t, file)
			_, stderr = f.call(t, "restore", file)
			contains(t, stderr, "nothing to restore", "9 addresses are here already")
			stdout, _ := f.call(t, "ip", "allocate", "--pool", "blue", "--for", "newcomer", "-o", "name")
			contains(t, stdout, "bcsnetip")
		})
	}
}

// Two restores at once make everything once, and neither fails.
func TestTwoRestores(t *testing.T) {
	f := newFixture(t)
	file := f.haveBackup(t)
	var both sync.WaitGroup
	var said [2]string
	for i := range said {
		both.Go(func() { _, said[i] = f.call(t, "restore", file, "--yes") })
	}
	both.Wait()
	f.isRestored(t, file)
	var p v1.BCSNetPool
	if err := f.client.Get(t.Context(), client.ObjectKey{Name: "blue"}, &p); err != nil {
		t.Fatal(err)
	}
	if p.Spec.Cordoned || p.Annotations[v1.RestoringAnnotation] != "" {
		t.Errorf("cordoned %t, %v\n%s\n%s", p.Spec.Cordoned, p.Annotations, said[0], said[1])
	}
}
