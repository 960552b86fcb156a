package cli

import (
	"bufio"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// largeEnv runs the tests that take minutes.
const largeEnv = "BCSNETCTL_TEST_LARGE"

// TestLargeList measures lists of 65,536 addresses beside kubectl's of the same objects.
func TestLargeList(t *testing.T) {
	w := newLargeWorld(t)
	for range 2 { // the first is a warm-up
		theirs := w.measure(t, filepath.Join(w.binaries, "kubectl"), "get", "bcsnetips", "--no-headers")
		for _, args := range [][]string{
			{"ip", "list", "--no-headers"}, {"ip", "list", "--no-headers", "--pool", "blue"}, {"lease", "list", "--no-headers"},
			{"ip", "list", "-o", "name"}, {"ip", "list", "--no-headers", "--sort-by", ".status.podName"}, {"ip", "list", "-o", "json"},
		} {
			ours := w.measure(t, "bcsnetctl", args...)
			if args[0] == "ip" && args[len(args)-1] == "--no-headers" && (ours.lines != theirs.lines || ours.rss > 150<<20) {
				t.Errorf("%v: %v; kubectl: %v", args, ours, theirs)
			}
		}
	}
}

// TestLargeDoctor measures the checks over 65,536 addresses and 20,000 pods.
func TestLargeDoctor(t *testing.T) {
	w := newLargeWorld(t)
	w.havePods(t, 20_000)
	for range 3 {
		if m := w.measure(t, "bcsnetctl", "doctor", "--skip", "install", "-o", "name"); m.lines < 65536/2-20_000 {
			t.Errorf("%d findings", m.lines)
		}
	}
}

// newLargeWorld has a pool of 65,536 addresses, half of them in use.
func newLargeWorld(t *testing.T) *world {
	t.Helper()
	if os.Getenv(largeEnv) == "" {
		t.Skip("it takes minutes: set " + largeEnv + "=1")
	}
	w := newWorld(t)
	if err := w.wipe(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := &v1.BCSNetPool{Spec: v1.BCSNetPoolSpec{
		Net: "10.20.0.0", Mask: 16, Gateway: "10.20.0.1", Hosts: []string{"10.0.0.11"}, AvailableIPs: []string{"10.20.0.0/16"},
	}}
	p.Name = "blue"
	if err := w.client.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	w.haveAddresses(t, netip.MustParsePrefix("10.20.0.0/16"))
	return w
}

// havePods makes pods that hold addresses by their names.
func (w *world) havePods(t *testing.T, n int) {
	t.Helper()
	var group errgroup.Group
	group.SetLimit(store.MaxWrites)
	for i := range n {
		group.Go(func() error {
			p := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
			p.Namespace, p.Name = metav1.NamespaceDefault, fmt.Sprintf("web-%d-7c9d", 2*i)
			return client.IgnoreAlreadyExists(w.client.Create(t.Context(), p))
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

// measured is how long a list took.
type measured struct {
	first, total time.Duration
	lines        int
	rss          int64 // bytes
}

// measure runs a command that lists addresses.
func (w *world) measure(t *testing.T, name string, args ...string) (m measured) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+w.kubeconfigs["OPERATOR"], rawEnv+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); m.lines++ {
		if m.lines == 0 {
			m.first = time.Since(began)
		}
	}
	if err := cmd.Wait(); err != nil && cmd.ProcessState.ExitCode() != exitFindings {
		t.Fatal(err)
	}
	m.total = time.Since(began)
	m.rss = cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
	t.Logf("%-60s first line %6v, all %6v, %d lines, %d MB", filepath.Base(name)+" "+strings.Join(args, " "),
		m.first.Round(time.Millisecond), m.total.Round(time.Millisecond), m.lines, m.rss>>20)
	return m
}

// haveAddresses makes all addresses of a subnet, every other one in use.
func (w *world) haveAddresses(t *testing.T, subnet netip.Prefix) {
	t.Helper()
	leases, err := store.New(cluster.Config, nil, store.NewClock(nil))
	if err != nil {
		t.Fatal(err)
	}
	var group errgroup.Group
	group.SetLimit(store.MaxWrites)
	for i, a := range every([]netip.Prefix{subnet}) {
		group.Go(func() error {
			l := ipam.Lease{Addr: a, Params: ipam.Params{Pool: "blue", Bits: 16, Gateway: netip.MustParseAddr("10.20.0.1")}}
			if i%2 == 0 {
				l.State, l.Updated, l.HeldFinalizer = ipam.Active, leases.Now(), true
				l.Holder = ipam.Holder{
					Host: netip.MustParseAddr("10.0.0.11"), ContainerID: fmt.Sprintf("%064d", i), IfName: ipam.DefaultIfName,
					Namespace: metav1.NamespaceDefault, PodName: fmt.Sprintf("web-%d-7c9d", i), PodUID: fmt.Sprintf("00000000-0000-0000-0000-%012d", i),
				}
			}
			_, err := leases.Write(t.Context(), l)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}
