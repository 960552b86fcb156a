// Package collect_test checks the garbage collection on a real API server: what it takes back, and above all what
// it leaves alone.
package collect_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/controller"
	"github.com/bcsnet/bcsnet/pkg/store"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/inprocess"
)

var (
	cluster *controlplane.ControlPlane
	admin   client.Client
)

func TestMain(m *testing.M) {
	os.Exit(controlplane.Main(m, &cluster))
}

const (
	namespace = "collect"
	pool      = "collect"
	hostGrace = 30 * time.Minute
)

var prepared = sync.OnceValue(func() error {
	ctx := context.Background()
	if err := cluster.InstallManifests(ctx); err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	err := errors.Join(clientgoscheme.AddToScheme(scheme), v1.AddToScheme(scheme))
	if err != nil {
		return err
	}
	if admin, err = client.New(cluster.Config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	return errors.Join(
		admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}),
		admin.Create(ctx, &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: pool}, Spec: v1.BCSNetPoolSpec{
			Net: "10.0.0.0", Mask: 8, Gateway: "10.255.255.254", AvailableIPs: []string{"10.1.0.0/24"},
			Hosts: []string{"10.0.0.11"},
		}}))
})

// patience is for what must come, however slow the machine is.
const patience = 5 * time.Minute

// start runs a controller as cfg for one test and returns its log and its metrics' URL when it is ready. All leases
// go when it has ended: one that runs restores those of pods that live.
func start(
	t *testing.T, cfg *rest.Config, change func(*controller.Options),
) (log *controlplane.Buffer, metrics string) {
	t.Helper()
	t.Cleanup(func() {
		if err := forget(context.Background()); err != nil {
			t.Error(err)
		}
	})
	c := inprocess.ForTest(t, cfg, func(o *controller.Options) {
		o.HostGrace, o.LeaderElect = hostGrace, false
		o.CollectEvery, o.CollectAfter = time.Second, 2*time.Second // as it is shipped, each test would take a minute
		if change != nil {
			change(o)
		}
	})
	return c.Log, c.URL + "/metrics"
}

// forget removes all leases.
func forget(ctx context.Context) error {
	var all v1.BCSNetIPList
	err := admin.List(ctx, &all)
	for i := range all.Items {
		ip := &all.Items[i]
		ip.Finalizers = nil
		err = errors.Join(err, admin.Update(ctx, ip), admin.Delete(ctx, ip))
	}
	return err
}

// account is the identity that the controller has.
func account(t *testing.T) *rest.Config {
	t.Helper()
	if err := prepared(); err != nil {
		t.Fatal(err)
	}
	cfg, err := cluster.ServiceAccountConfig(t.Context(), controlplane.SystemNamespace, controlplane.ControllerName)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// node makes a node with one address, ready or not since some time ago. While it is ready its Lease is renewed.
func node(t *testing.T, name, address string, ready corev1.ConditionStatus, since time.Duration) *corev1.Node {
	t.Helper()
	n := silentNode(t, name, address, ready, since)
	l := nodeLease(t, name)
	if ready == corev1.ConditionTrue {
		renewing(t, l)
	}
	return n
}

// nodeLease makes the Lease of a node, as its kubelet does.
func nodeLease(t *testing.T, name string) *coordinationv1.Lease {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: corev1.NamespaceNodeLease}}
	if err := admin.Create(t.Context(), namespace); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: name}}
	l.Spec.RenewTime = new(metav1.NowMicro())
	if err := admin.Create(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admin.Delete(context.Background(), l) })
	return l
}

// renewing renews a Lease until the test ends.
func renewing(t *testing.T, l *coordinationv1.Lease) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var kubelet sync.WaitGroup
	kubelet.Go(func() {
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			renew(ctx, l)
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	})
	t.Cleanup(func() { cancel(); kubelet.Wait() })
}

// renew renews a Lease once. It may fail: the next one counts.
func renew(ctx context.Context, l *coordinationv1.Lease) {
	before := l.DeepCopy()
	l.Spec.RenewTime = new(metav1.NowMicro())
	_ = admin.Patch(ctx, l, client.MergeFrom(before))
}

// silentNode makes a node that has no Lease.
func silentNode(t *testing.T, name, address string, ready corev1.ConditionStatus, since time.Duration) *corev1.Node {
	t.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := admin.Create(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admin.Delete(context.Background(), n) })
	before := n.DeepCopy()
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}
	if err := admin.Status().Patch(t.Context(), n, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	setReady(t, n, ready, since)
	return n
}

// setReady patches, as a kubelet does: the controller writes to the node, too.
func setReady(t *testing.T, n *corev1.Node, ready corev1.ConditionStatus, since time.Duration) {
	t.Helper()
	before := n.DeepCopy()
	n.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: ready, LastTransitionTime: metav1.NewTime(time.Now().Add(-since)),
	}}
	if err := admin.Status().Patch(t.Context(), n, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// pod makes a pod on a node; change may be nil.
func pod(t *testing.T, name, node string, change func(*corev1.Pod)) *corev1.Pod {
	t.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "c"}}},
	}
	if change != nil {
		change(p)
	}
	status := p.Status
	if err := admin.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admin.Delete(context.Background(), p, client.GracePeriodSeconds(0)) })
	if p.Status = status; status.Phase != "" {
		if err := admin.Status().Update(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// remove deletes a pod as a kubelet does at the end.
func remove(t *testing.T, p *corev1.Pod) {
	t.Helper()
	if err := admin.Delete(t.Context(), p, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
}

// hold writes a lease as an earlier allocation would have left it, of a pod of that name and UID; change may be nil.
func hold(t *testing.T, address, host, podName, uid string, change func(*v1.BCSNetIP)) {
	t.Helper()
	ip := &v1.BCSNetIP{
		ObjectMeta: metav1.ObjectMeta{Name: address, Finalizers: []string{v1.HeldFinalizer}},
		Spec:       v1.BCSNetIPSpec{Pool: pool, Mask: 8, Gateway: "10.255.255.254"},
		Status: v1.BCSNetIPStatus{
			Status: v1.IPActive, Host: host, ContainerID: uuid.NewString(), IfName: "eth0",
			PodNamespace: namespace, PodName: podName, PodUID: uid,
			UpdateTime: store.FormatTime(time.Now().Add(-time.Hour)),
		},
	}
	if change != nil {
		change(ip)
	}
	controlplane.EventuallyWithin(t, patience, func() error { // the controller makes free ones meanwhile
		_ = admin.Delete(t.Context(), &v1.BCSNetIP{ObjectMeta: metav1.ObjectMeta{Name: address}})
		return admin.Create(t.Context(), ip)
	})
}

func stored(t *testing.T, address string) *v1.BCSNetIP {
	t.Helper()
	var ip v1.BCSNetIP
	if err := admin.Get(t.Context(), client.ObjectKey{Name: address}, &ip); err != nil {
		t.Fatal(err)
	}
	return &ip
}

// wantCollected waits until an address is free again, and looks at what its history says.
func wantCollected(t *testing.T, address, check string) {
	t.Helper()
	controlplane.EventuallyWithin(t, patience, func() error {
		ip := stored(t, address)
		if ip.Status.Status != v1.IPAvailable {
			return fmt.Errorf("%s is still %s for %s", address, ip.Status.Status, ip.Status.PodName)
		}
		if h := ip.Status.History; len(h) != 1 || h[0].Verb != "collect" || h[0].Reason != check ||
			h[0].By != "bcsnet-controller" {
			t.Fatalf("the history of %s is %+v", address, h)
		}
		return nil
	})
}

// wantHeld looks whether an address is still held for a pod.
func wantHeld(t *testing.T, address, podName string) {
	t.Helper()
	if ip := stored(t, address); ip.Status.Status != v1.IPActive || ip.Status.PodName != podName {
		t.Errorf("%s is %s for %q, want Active for %s", address, ip.Status.Status, ip.Status.PodName, podName)
	}
}

// metric reads one line of the metrics.
func metric(t *testing.T, url, name string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Close = true
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}
