package ui

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

var cluster *controlplane.ControlPlane

func TestMain(m *testing.M) {
	os.Exit(controlplane.MainWith(m, func(_ context.Context, cp *controlplane.ControlPlane) (func() error, error) {
		cluster = cp
		return func() error { return quit() }, nil
	}))
}

var manifests = sync.OnceValue(func() error { return cluster.InstallManifests(context.Background()) })

// hostile is what fields hold of somebody who wants to be seen as something else: markup, an escape sequence, and signs
// that turn the direction of text.
const hostile = "<img src=x onerror=alert(1)>\"'&\x1b[31mred\u202eright\u200bzero"

// site is a server on a cluster, and a browser that it has let in.
type site struct {
	client.Client
	server   *Local
	at       string // where it serves
	again    chan string
	viewer   *http.Client
	stranger *http.Client
}

// newSite starts the pages for a user: the admin of the cluster, if kubeconfig is empty.
func newSite(t *testing.T, kubeconfig string) *site {
	t.Helper()
	if err := manifests(); err != nil {
		t.Fatal(err)
	}
	if kubeconfig == "" {
		kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
		if err := cluster.WriteKubeconfig(kubeconfig); err != nil {
			t.Fatal(err)
		}
	}
	a := app.New("bcsnetctl", "test", genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: io.Discard})
	*a.Flags.KubeConfig = kubeconfig
	s := &site{Client: cluster.AdminFor(t), again: make(chan string, 1)}
	var err error
	if s.server, err = New(a, func(token string) { s.again <- token }); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.at = "http://" + l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := s.server.Serve(ctx, l); err != nil {
			t.Error(err)
		}
	})
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	s.viewer = &http.Client{Jar: jar, Transport: transport}
	s.stranger = &http.Client{Transport: transport}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		cancel()
		serving.Wait()
	})
	return s
}

// entered is newSite with the browser let in.
func entered(t *testing.T) *site {
	t.Helper()
	s := newSite(t, "")
	if status, text := s.get(t, s.viewer, Link(s.server.Token(), "/")); status != http.StatusOK {
		t.Fatalf("%d: %s", status, text)
	}
	return s
}

// get reads a page.
func (s *site) get(t *testing.T, who *http.Client, path string, change ...func(*http.Request)) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.at+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for _, do := range change {
		do(r)
	}
	answer, err := who.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// make stores objects, and takes them away after the test.
func (s *site) make(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		status := o.DeepCopyObject().(client.Object)
		if err := s.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.drop(t, o) })
		switch o := o.(type) {
		case *v1.BCSNetPool:
			o.Status = status.(*v1.BCSNetPool).Status
		case *corev1.Node:
			o.Status = status.(*corev1.Node).Status
		default:
			continue
		}
		if err := s.Status().Update(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// drop deletes an object, and takes its finalizers off.
func (s *site) drop(t *testing.T, o client.Object) {
	t.Helper()
	ctx := context.Background() // the test is over
	_ = s.Patch(ctx, o, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
	if err := client.IgnoreNotFound(s.Delete(ctx, o)); err != nil {
		t.Error(err)
	}
}

// pool is a pool as a controller has counted it.
func pool(name, network string, mask int32, capacity, active, reserved int64) *v1.BCSNetPool {
	a := netip.MustParseAddr(network)
	p := &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.BCSNetPoolSpec{
		Net: network, Mask: mask, Gateway: a.Next().String(), Hosts: []string{"10.0.0.11", "10.0.0.12"},
		AvailableIPs: []string{fmt.Sprintf("%s/%d", network, mask)},
	}}
	p.Status = v1.BCSNetPoolStatus{
		Status: v1.PoolNormal, ObservedGeneration: 1, Capacity: capacity, Active: active, Reserved: reserved,
		Available: capacity - active - reserved, Hosts: 2,
		Conditions: []metav1.Condition{{
			Type: v1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Ready", LastTransitionTime: metav1.Now(),
		}},
	}
	return p
}

// held is an address of a pool that a pod has on a host.
func held(addr, pool, host, pod string) *v1.BCSNetIP {
	namespace, name, _ := strings.Cut(pod, "/")
	a := netip.MustParseAddr(addr)
	return store.Object(lease.Lease{
		Addr: a, State: lease.Active, Params: lease.Params{Pool: pool, Bits: 24}, Updated: time.Now().Add(-3 * time.Hour),
		Holder: lease.Holder{
			Host: netip.MustParseAddr(host), Namespace: namespace, PodName: name, ContainerID: "4f1c2a77" + name, IfName: "eth0",
			PodUID: "u-" + name,
		},
	})
}

// aside is an address of a pool that somebody has set aside.
func aside(addr, pool, by, reason string) *v1.BCSNetIP {
	l, _ := lease.Reserve(lease.Lease{Addr: netip.MustParseAddr(addr)}, lease.Params{Pool: pool, Bits: 24}, time.Now(),
		lease.Change{Verb: lease.VerbReserve, By: by, Reason: reason})
	return store.Object(l)
}

// node is a Node that is ready.
func node(name, addr string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
		Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: addr}},
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
	}}
}
