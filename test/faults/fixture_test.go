package faults_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go4.org/netipx"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/intercept"
	"github.com/bcsnet/bcsnet/test/plugin"
)

const (
	namespace = "faults"
	hosts     = 6
	rangePool = "range"
	// demandPool has objects for the addresses that are used alone.
	demandPool = "demand"
)

// fixture is a cluster with three replicas, each behind a proxy of its own, that outlives the rounds.
type fixture struct {
	cp       *controlplane.ControlPlane
	admin    client.WithWatch
	leases   *store.Client // reads from the API server itself
	replicas []*replica
	cli      string
	kube     string       // kubeconfig of the administrator
	slots    int          // pods of a host
	hurried  bool         // the collection waits for collectAfter
	cut      atomic.Int64 // one more than the host that is cut off; 0 for none
	trail    *trail
	nodes    nodes
	restores atomic.Int64 // of etcd, that were begun
	// Addresses of the two pools, fewer in all than pods and late releases want at the worst moments: the pools run
	// full. rangeTail is what a shrink takes away and a grow gives back.
	rangeAddrs, demandAddrs, rangeTail string
}

// replica is a process behind a proxy to the API server.
type replica struct {
	*controlplane.Controller
	proxy *intercept.Proxy
	name  string
	// silent: its watches are held for long.
	silent atomic.Bool
}

// build says what the replicas are.
type build struct {
	// faulty is the controller built with the tag faults; all replicas run it when broken names a guard or the
	// collection is hurried, else the last one runs it, with a clock that is two hours ahead.
	faulty, broken string
	// hurried has the collection wait for collectAfter, and take addresses back while a short round goes on.
	hurried bool
}

// collectAfter is for how long a pod must look gone to a collection that is hurried.
const collectAfter = 15 * time.Second

func newFixture(t *testing.T, slots int, b build) *fixture {
	t.Helper()
	f := &fixture{
		cp: controlplane.ForTest(t, controlplane.WithLogDir(keptLogs(t))), slots: slots, hurried: b.hurried,
		rangeAddrs: span("10.1.0.10", 0, 5*slots), rangeTail: span("10.1.0.10", 4*slots, 5*slots),
		demandAddrs: span("10.2.0.10", 0, 5*slots),
	}
	root, err := controlplane.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	f.trail = newTrail(t, f.cp)
	f.cli = filepath.Join(root, "bin", "bcsnetctl")
	if _, err := os.Stat(f.cli); err != nil {
		t.Fatalf("%v: say make build", err) // else no operator would do anything
	}
	f.kube = filepath.Join(t.TempDir(), "kubeconfig")
	scheme := runtime.NewScheme()
	_, err = f.cp.Prepare(t.Context(), "ipamclaims")
	crd, missing := controlplane.IPAMClaimCRD()
	err = errors.Join(err, missing, f.cp.WriteKubeconfig(f.kube), clientgoscheme.AddToScheme(scheme),
		v1.AddToScheme(scheme))
	if err == nil {
		err = f.cp.InstallCRDs(t.Context(), crd)
	}
	if err != nil {
		t.Fatal(err)
	}
	h, err := rest.HTTPClientFor(f.cp.Config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.CloseIdleConnections)
	if f.admin, err = client.NewWithWatch(f.cp.Config, client.Options{Scheme: scheme, HTTPClient: h}); err != nil {
		t.Fatal(err)
	}
	if f.leases, err = store.New(f.cp.Config, nil, store.NewClock(nil)); err != nil {
		t.Fatal(err)
	}
	if err := f.populate(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var kubelets sync.WaitGroup
	kubelets.Go(func() { f.beat(ctx) })
	t.Cleanup(func() { cancel(); kubelets.Wait() })
	for i := range 3 {
		f.replicas = append(f.replicas, f.startReplica(t, i, b))
	}
	return f
}

func (f *fixture) startReplica(t *testing.T, i int, b build) *replica {
	t.Helper()
	cfg, err := f.cp.ServiceAccountConfig(t.Context(), controlplane.SystemNamespace, controlplane.ControllerName)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(cfg.Host)
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := intercept.NewProxy(target.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	cfg = rest.CopyConfig(cfg)
	cfg.Host = "https://" + proxy.Addr()
	r := &replica{proxy: proxy, name: fmt.Sprintf("replica-%d", i)}
	kubeconfig := filepath.Join(t.TempDir(), r.name)
	if err := controlplane.WriteKubeconfigFor(cfg, kubeconfig); err != nil {
		t.Fatal(err)
	}
	o := controlplane.ControllerOptions{Name: r.name, Args: []string{
		"--kubeconfig", kubeconfig, "--ipam-claims",
		"--leader-elect-lease-duration", leaseDuration.String(), "--leader-elect-renew-deadline", "3s", "--leader-elect-retry-period", "500ms",
	}}
	// Over HTTP/1.1 every watch has a connection of its own, which the proxy can hold while requests pass.
	o.Env = append(o.Env, "DISABLE_HTTP2=true")
	if b.hurried {
		o.Binary, o.Env = b.faulty, append(o.Env, "FAULTS_COLLECT="+collectAfter.String())
	}
	switch {
	case b.broken != "":
		o.Binary, o.Env = b.faulty, append(o.Env, "FAULTS_BREAK="+b.broken)
	case i == 2:
		o.Binary, o.Env = b.faulty, append(o.Env, "FAULTS_CLOCK=2h")
	}
	if r.Controller, err = f.cp.StartController(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Kill() }) // before its proxy goes; it may have ended by itself
	return r
}

// populate makes the hosts, which are ready, the namespace and the pools.
func (f *fixture) populate(ctx context.Context) error {
	for _, name := range []string{namespace, crowdNamespace, machines} {
		if err := f.admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return err
		}
	}
	all := []string{movingHost}
	for i := range hosts {
		all = append(all, host(i), secondHost(i))
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node(i)}}
		if err := f.admin.Create(ctx, n); err != nil {
			return err
		}
		if err := f.setReady(ctx, i, corev1.ConditionTrue); err != nil {
			return err
		}
	}
	for _, p := range []v1.BCSNetPool{
		{ObjectMeta: metav1.ObjectMeta{Name: rangePool}, Spec: v1.BCSNetPoolSpec{
			Net: "10.1.0.0", Mask: 16, Gateway: "10.1.0.1", AvailableIPs: []string{f.rangeAddrs}, Priority: 1,
		}},
		{ObjectMeta: metav1.ObjectMeta{Name: demandPool}, Spec: v1.BCSNetPoolSpec{
			Net: "10.2.0.0", Mask: 16, Gateway: "10.2.0.1", AvailableIPs: []string{f.demandAddrs},
			Materialize: v1.MaterializeOnDemand,
		}},
		{ObjectMeta: metav1.ObjectMeta{Name: crowdPool}, Spec: v1.BCSNetPoolSpec{
			Net: "10.3.0.0", Mask: 16, Gateway: "10.3.0.1",
			AvailableIPs: []string{span("10.3.0.10", 0, 2*crowdSize(hosts*f.slots))},
			Materialize:  v1.MaterializeOnDemand, Namespaces: []string{crowdNamespace},
		}},
		{ObjectMeta: metav1.ObjectMeta{Name: tenantPool}, Spec: v1.BCSNetPoolSpec{
			Net: "10.4.0.0", Mask: 16, Gateway: "10.4.0.1", AvailableIPs: []string{"10.4.1.0/24"},
			BlockSize: 28, AutoAssign: true, Default: new(false), Network: tenantPool,
		}},
		{ObjectMeta: metav1.ObjectMeta{Name: machines}, Spec: v1.BCSNetPoolSpec{
			Net: "10.5.0.0", Mask: 16, Gateway: "10.5.0.1", AvailableIPs: []string{"10.5.0.10-10.5.0.19"},
			Namespaces: []string{machines}, Network: machines,
		}},
	} {
		p.Spec.Hosts = all
		if err := f.admin.Create(ctx, &p); err != nil {
			return err
		}
	}
	return nil
}

// inTouch reports whether a host reaches the API server and the replicas.
func (f *fixture) inTouch(h int) bool { return f.cut.Load() != int64(h)+1 }

// place is where a pod starts that belongs on a host: there, or next to it while that is cut off.
func (f *fixture) place(home int) int {
	if !f.inTouch(home) {
		return (home + 1) % hosts
	}
	return home
}

// beat renews the Leases of the hosts, which are in touch with the API server whenever that is there. Kubelets do it
// every ten seconds; a round is too short for that.
func (f *fixture) beat(ctx context.Context) {
	for ; ctx.Err() == nil; pause(ctx, 2*time.Second) {
		for i := range hosts {
			if !f.inTouch(i) {
				continue
			}
			limited, cancel := context.WithTimeout(ctx, plugin.Attempt)
			l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: node(i)}}
			_, err := controllerutil.CreateOrPatch(limited, f.admin, l, func() error {
				l.Spec.RenewTime = new(metav1.NowMicro())
				return nil
			})
			cancel()
			if err != nil {
				break // it may be down
			}
		}
	}
}

// span are the addresses that come so and so many after a first one, without the last.
func span(first string, from, to int) string {
	addr := netip.MustParseAddr(first)
	for range from {
		addr = addr.Next()
	}
	end := addr
	for range to - from - 1 {
		end = end.Next()
	}
	return netipx.IPRangeFrom(addr, end).String()
}

func host(i int) string { return fmt.Sprintf("10.0.0.%d", 11+i) }
func node(i int) string { return fmt.Sprintf("node-%d", i) }

// read is what the API server says of an address, asked until it answers.
func (f *fixture) read(ctx context.Context, a netip.Addr) (lease.Lease, error) {
	for {
		limited, cancel := context.WithTimeout(ctx, plugin.Attempt)
		l, err := f.leases.Get(limited, a)
		cancel()
		switch {
		case err == nil:
			return l, nil
		case errors.Is(err, store.ErrNotFound):
			return lease.Lease{Addr: a}, nil
		case !pause(ctx, 50*time.Millisecond):
			return l, ctx.Err()
		}
	}
}

// active are all leases that somebody holds.
func (f *fixture) active(ctx context.Context) ([]lease.Lease, error) {
	all, err := f.leases.List(ctx, "status.status=Active")
	return all, err
}

// soon is the time for which an operator waits for a command.
const soon = 20 * time.Second

// bcsnetctl runs the command line as the administrator.
func (f *fixture) bcsnetctl(ctx context.Context, limit time.Duration, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, f.cli, append(args, "--kubeconfig", f.kube)...)
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// pause waits, unless the context ends.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
