package cli

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// fixture is the cluster as the tests arrange it.
type fixture struct {
	cluster     *controlplane.ControlPlane
	client      client.Client
	kubernetes  kubernetes.Interface
	kubeconfigs map[string]string
	binaries    string
	controller  *controlplane.Controller
}

// manifests installs CRDs and roles once for all tests.
var manifests = sync.OnceValue(func() error { return cluster.InstallManifests(context.Background()) })

func newFixture(t *testing.T) *fixture {
	t.Helper()
	if err := manifests(); err != nil {
		t.Fatal(err)
	}
	return newFixtureOn(t, cluster)
}

// newFixtureOn makes the fixture of a control plane that has the manifests.
func newFixtureOn(t *testing.T, cluster *controlplane.ControlPlane) *fixture {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	h := httpClient(t, cluster.Config)
	f := &fixture{cluster: cluster, binaries: os.Getenv(controlplane.AssetsEnv)}
	root, err := controlplane.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	if f.binaries == "" {
		f.binaries = filepath.Join(root, "bin", "kube")
	}
	if f.client, err = client.New(cluster.Config, client.Options{Scheme: scheme, HTTPClient: h}); err != nil {
		t.Fatal(err)
	}
	if f.kubernetes, err = kubernetes.NewForConfigAndClient(cluster.Config, h); err != nil {
		t.Fatal(err)
	}
	f.kubeconfigs = f.identities(t)
	// Pods need the account that kube-controller-manager makes elsewhere.
	if _, err := cluster.ServiceAccountConfig(t.Context(), "default", "default"); err != nil {
		t.Fatal(err)
	}
	return f
}

func httpClient(t *testing.T, cfg *rest.Config) *http.Client {
	t.Helper()
	h, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.CloseIdleConnections)
	return h
}

// deleteClaims deletes all claims: those of all namespaces cannot be deleted by one request.
func (f *fixture) deleteClaims(ctx context.Context) error {
	var claims v1.BCSNetIPClaimList
	if err := f.client.List(ctx, &claims); err != nil {
		return err
	}
	for i := range claims.Items {
		if err := f.client.Delete(ctx, &claims.Items[i]); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// wipe removes all pools, addresses, the history, claims, nodes and pods, and the events about them.
func (f *fixture) wipe(ctx context.Context) error {
	for _, kind := range []client.Object{&v1.BCSNetPool{}, &v1.BCSNetIP{}, &v1.BCSNetHistory{}, &corev1.Node{}} {
		if err := f.client.DeleteAllOf(ctx, kind); err != nil {
			return err
		}
	}
	for _, namespace := range []string{metav1.NamespaceDefault, controlplane.SystemNamespace} {
		events := f.kubernetes.EventsV1().Events(namespace)
		if err := events.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
			return err
		}
	}
	if err := f.client.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace("default"),
		client.GracePeriodSeconds(0)); err != nil {
		return err
	}
	if err := f.deleteClaims(ctx); err != nil {
		return err
	}
	return eventually(ctx, func(ctx context.Context) (bool, error) {
		var pools v1.BCSNetPoolList
		var ips v1.BCSNetIPList
		var claims v1.BCSNetIPClaimList
		if err := errors.Join(f.client.List(ctx, &pools), f.client.List(ctx, &ips), f.client.List(ctx, &claims)); err != nil {
			return false, err
		}
		var left []client.Object
		for i := range claims.Items {
			left = append(left, &claims.Items[i])
		}
		for i := range pools.Items {
			left = append(left, &pools.Items[i])
		}
		for i := range ips.Items {
			left = append(left, &ips.Items[i])
		}
		var group errgroup.Group
		group.SetLimit(16)
		for _, o := range left {
			group.Go(func() error {
				o.SetFinalizers(nil)
				if err := f.client.Update(ctx, o); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
					return err
				}
				return nil
			})
		}
		return len(left) == 0, group.Wait()
	})
}

func eventually(ctx context.Context, ok wait.ConditionWithContextFunc) error {
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, ok)
}

// commands returns the commands that scripts have beside those of testscript.
func (f *fixture) commands() map[string]func(*testscript.TestScript, bool, []string) {
	do := func(command func(ctx context.Context, ts *testscript.TestScript, args []string) error) func(*testscript.TestScript, bool, []string) {
		return func(ts *testscript.TestScript, neg bool, args []string) {
			if neg {
				ts.Fatalf("there is no ! for this command")
			}
			ts.Check(command(context.Background(), ts, args))
		}
	}
	return map[string]func(*testscript.TestScript, bool, []string){
		"controller":  do(f.startController),
		"request":     do(f.request),
		"ended":       do(f.ended),
		"get":         do(f.get),
		"settled":     do(f.settled),
		"deleting":    do(f.deleting),
		"lease":       do(f.lease),
		"owned":       do(f.owned),
		"claimed":     do(f.claimed),
		"kept":        do(f.kept),
		"migrating":   do(f.migrating),
		"aged":        do(f.aged),
		"leader":      do(f.leader),
		"outdated":    do(f.outdated),
		"uninstalled": do(f.uninstalled),
		"happened":    do(f.happened),
		"history":     do(f.history),
		"screen":      do(f.screen),
		"picture":     do(f.picture),
		"emptied":     do(func(ctx context.Context, _ *testscript.TestScript, _ []string) error { return f.wipe(ctx) }),
	}
}

// startController runs the controller until the end of the script.
func (f *fixture) startController(ctx context.Context, ts *testscript.TestScript, _ []string) (err error) {
	if f.controller == nil {
		f.controller, err = f.cluster.StartController(ctx, controlplane.ControllerOptions{})
	} else {
		err = f.controller.Start(ctx)
	}
	if err == nil {
		ts.Defer(func() { ts.Check(f.controller.Stop()) })
	}
	return err
}

// settled waits until the status of every pool speaks of the pool and its addresses as they are.
func (f *fixture) settled(ctx context.Context, _ *testscript.TestScript, _ []string) error {
	return eventually(ctx, func(ctx context.Context) (bool, error) {
		var pools v1.BCSNetPoolList
		var ips v1.BCSNetIPList
		if err := errors.Join(f.client.List(ctx, &pools), f.client.List(ctx, &ips)); err != nil {
			return false, err
		}
		for _, p := range pools.Items {
			var active, reserved int64
			for _, ip := range ips.Items {
				switch {
				case ip.Spec.Pool != p.Name:
				case ip.Status.Status == v1.IPActive:
					active++
				case ip.Status.Status == v1.IPReserved:
					reserved++
				}
			}
			s := p.Status
			if s.ObservedGeneration != p.Generation || s.Status == v1.PoolInitializing || s.Active != active ||
				s.Reserved != reserved {
				return false, nil
			}
		}
		return true, nil
	})
}

// deleting POOL waits until somebody has deleted the pool.
func (f *fixture) deleting(ctx context.Context, _ *testscript.TestScript, args []string) error {
	return eventually(ctx, func(ctx context.Context) (bool, error) {
		var p v1.BCSNetPool
		err := f.client.Get(ctx, client.ObjectKey{Name: args[0]}, &p)
		return err == nil && p.DeletionTimestamp != nil, err
	})
}

// happened POOL|NAMESPACE/CLAIM REASON waits until there is an event of the object with that reason.
func (f *fixture) happened(ctx context.Context, _ *testscript.TestScript, args []string) error {
	return eventually(ctx, func(ctx context.Context) (bool, error) {
		var o client.Object = &v1.BCSNetPool{}
		key := client.ObjectKey{Name: args[0]}
		if namespace, name, both := strings.Cut(args[0], "/"); both { // a claim
			o, key = &v1.BCSNetIPClaim{}, client.ObjectKey{Namespace: namespace, Name: name}
		}
		if err := f.client.Get(ctx, key, o); err != nil {
			return false, err
		}
		events, err := f.kubernetes.EventsV1().Events("").List(ctx,
			metav1.ListOptions{FieldSelector: "reason=" + args[1] + ",regarding.uid=" + string(o.GetUID())})
		return err == nil && len(events.Items) > 0, err
	})
}

// lease ADDRESS POOL HOST NAMESPACE/POD, or an owner without a slash, makes an address Active as the
// allocator would; the pod need not exist. A lone "reserved" for the holder sets the address aside;
// of "unknown", nothing but a container is known.
func (f *fixture) lease(ctx context.Context, _ *testscript.TestScript, args []string) error {
	return f.store(ctx, args, func(*lease.Lease) {})
}

// claimed ADDRESS POOL HOST NAMESPACE/POD CLAIM [KEY] is lease of an address that a claim keeps.
func (f *fixture) claimed(ctx context.Context, _ *testscript.TestScript, args []string) error {
	return f.store(ctx, args, func(l *lease.Lease) { l.Retention = stickyOf(args[4:]) })
}

// kept is claimed of a pod that has ended: KEY may be -, and a last argument is until when the address is kept.
func (f *fixture) kept(ctx context.Context, _ *testscript.TestScript, args []string) error {
	return f.store(ctx, args, func(l *lease.Lease) {
		l.Retention = stickyOf(args[4:])
		*l, _ = lease.Release(*l, l.Updated, lease.Change{})
	})
}

// migrating ADDRESS POOL HOST NAMESPACE/POD CLAIM KEY HOST NAMESPACE/POD is claimed of a virtual machine that migrates
// live to another pod.
func (f *fixture) migrating(ctx context.Context, _ *testscript.TestScript, args []string) error {
	to := lease.Lease{Addr: netip.MustParseAddr(args[0])}
	if err := f.hold(ctx, &to, netip.MustParseAddr(args[6]), args[7]); err != nil {
		return err
	}
	to.ContainerID += "-target"
	return f.store(ctx, args, func(l *lease.Lease) { l.Retention, l.Other = stickyOf(args[4:6]), &to.Holder })
}

func stickyOf(args []string) lease.Retention {
	s := lease.Retention{Claim: args[0], Fixed: true}
	if len(args) > 1 && args[1] != "-" {
		s.PodPrimaryKey = args[1]
	}
	if len(args) > 2 {
		s.ExpiredTime = args[2]
	}
	return s
}

// store writes the lease that the arguments of lease describe, with what change makes of it.
func (f *fixture) store(ctx context.Context, args []string, change func(*lease.Lease)) error {
	cfg := rest.CopyConfig(f.cluster.Config)
	leases, err := store.New(cfg, nil, store.NewClock(nil))
	if err != nil {
		return err
	}
	var p v1.BCSNetPool
	if err := f.client.Get(ctx, client.ObjectKey{Name: args[1]}, &p); err != nil {
		return err
	}
	return eventually(ctx, func(ctx context.Context) (bool, error) {
		l, err := leases.Get(ctx, netip.MustParseAddr(args[0]))
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return false, err
		}
		l.Params = store.Pool(&p).Params()
		l.Updated, l.HeldFinalizer = leases.Now(), true
		if err := f.hold(ctx, &l, netip.MustParseAddr(args[2]), args[3]); err != nil {
			return false, err
		}
		change(&l)
		_, err = leases.Write(ctx, l)
		if errors.Is(err, store.ErrConflict) { // the controller has just made the object
			return false, nil
		}
		return err == nil, err
	})
}

// hold enters the holder into a lease.
func (f *fixture) hold(ctx context.Context, l *lease.Lease, host netip.Addr, who string) error {
	l.State = lease.Active
	l.Holder = lease.Holder{Host: host, ContainerID: "c-" + l.Addr.String(), IfName: lease.DefaultIfName}
	namespace, name, isPod := strings.Cut(who, "/")
	switch {
	case who == "reserved":
		l.State, l.Holder = lease.Reserved, lease.Holder{}
		return nil
	case who == "unknown":
		return nil
	case !isPod:
		l.Owner, l.ContainerID = who, ""
		return nil
	}
	l.Namespace, l.PodName = namespace, name
	var pod corev1.Pod
	err := f.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &pod)
	l.PodUID = string(pod.UID)
	return client.IgnoreNotFound(err)
}

// uninstalled removes the CRDs until the end of the script.
func (f *fixture) uninstalled(ctx context.Context, ts *testscript.TestScript, _ []string) error {
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return err
	}
	crds := filepath.Join(root, "config", "crd")
	ts.Defer(func() { ts.Check(f.cluster.InstallCRDs(ctx, crds)) })
	return f.cluster.Kubectl(ctx, "delete", "--wait", "-k", crds).Run()
}

// interrupted runs the program and interrupts it, as Ctrl-C does, when until returns. It requires the exit code of an
// interrupted program, and returns what that wrote.
func (f *fixture) interrupted(t *testing.T, until func(), args ...string) (stdout, stderr string) {
	t.Helper()
	var out, said bytes.Buffer
	cmd := f.command(t, args...)
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	until()
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != app.ExitInterrupted {
		t.Errorf("it ended with %v: %s", err, &said)
	}
	return out.String(), said.String()
}
