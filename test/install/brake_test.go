package install

import (
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/intercept"
)

// brake stands between bcsnetctl and the API server, and lets so many changes through.
type brake struct {
	kubeconfig string
	mu         sync.Mutex
	let        int
	changes    []string
	// held is closed when a change has come that is not let through.
	held chan struct{}
}

func newBrake(c *clusterOf) *brake {
	c.t.Helper()
	admin, err := c.ServiceAccountConfig(c.t.Context(), "kube-system", "admin")
	if err != nil {
		c.t.Fatal(err)
	}
	c.kubectl("create", "clusterrolebinding", "admin", "--clusterrole=cluster-admin", "--serviceaccount=kube-system:admin")
	b := &brake{kubeconfig: filepath.Join(c.t.TempDir(), "kubeconfig")}
	var api *intercept.API
	api = intercept.NewAPI(c.t, admin, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !b.passes(r) {
			_, _ = io.Copy(io.Discard, r.Body) // only then does the server see that its client is gone
			<-r.Context().Done()
			return
		}
		api.Forward.ServeHTTP(w, r)
	}))
	if err := controlplane.WriteKubeconfigFor(api.Config(), b.kubeconfig); err != nil {
		c.t.Fatal(err)
	}
	return b
}

// passes counts a request that changes something, and reports whether it is let through.
func (b *brake) passes(r *http.Request) bool {
	if !slices.Contains([]string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}, r.Method) ||
		r.URL.Query().Get("dryRun") != "" || strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews") ||
		strings.HasSuffix(r.URL.Path, "/selfsubjectreviews") {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.changes) < b.let {
		b.changes = append(b.changes, r.Method+" "+r.URL.Path)
		return true
	}
	select {
	case <-b.held:
	default:
		close(b.held)
	}
	return false
}

// run runs the program, and kills it when so many changes have been made and it asks for the next one. It returns the
// changes that were made, and whether it was killed.
func (b *brake) run(c *clusterOf, let int, args ...string) (changes []string, killed bool) {
	c.t.Helper()
	held := make(chan struct{})
	b.mu.Lock()
	b.let, b.changes, b.held = let, nil, held
	b.mu.Unlock()
	cmd := exec.CommandContext(c.t.Context(), filepath.Join(c.root, "bin", "bcsnetctl"),
		append([]string{"--kubeconfig", b.kubeconfig}, args...)...)
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		c.t.Fatalf("%v: run `make build` first", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	var err error
	select {
	case err = <-ended:
	case <-held:
		killed = true
		if err := cmd.Process.Kill(); err != nil {
			c.t.Fatal(err)
		}
		if err := <-ended; err == nil {
			c.t.Error("it ended before it was killed")
		}
	}
	if err != nil {
		c.t.Fatalf("bcsnetctl %v: %v: %s", args, err, &said)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.changes), killed
}

// kubectl runs kubectl as the administrator.
func (c *clusterOf) kubectl(args ...string) string {
	c.t.Helper()
	out, err := c.Kubectl(c.t.Context(), args...).CombinedOutput()
	if err != nil {
		c.t.Fatalf("kubectl %v: %v: %s", args, err, out)
	}
	return string(out)
}
