package store

import (
	"context"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/intercept"
)

var cluster *controlplane.ControlPlane

func TestMain(m *testing.M) { os.Exit(controlplane.Main(m, &cluster)) }

// identity is the controller's ServiceAccount with the rights of the manifests.
var identity = sync.OnceValues(func() (*rest.Config, error) { return cluster.ControllerConfig(context.Background()) })

// config is the identity with a tap; nil for none.
func config(t testing.TB, tap *intercept.Tap) *rest.Config {
	t.Helper()
	cfg, err := identity()
	if err != nil {
		t.Fatal(err)
	}
	cfg = rest.CopyConfig(cfg)
	if tap != nil {
		cfg.Wrap(tap.Wrap)
	}
	return cfg
}

// connect makes a client without an index.
func connect(t testing.TB, tap *intercept.Tap) *Client {
	t.Helper()
	return connectTo(t, config(t, tap), nil)
}

func connectTo(t testing.TB, cfg *rest.Config, index *index.Index) *Client {
	t.Helper()
	c, err := New(cfg, index, NewClock(nil))
	if err != nil {
		t.Fatal(err)
	}
	if h := c.rest.(*rest.RESTClient).Client; h != nil {
		t.Cleanup(h.CloseIdleConnections)
	}
	return c
}

// objects are the BCSNetIPs as the administrator sees them.
func objects(t testing.TB) dynamic.ResourceInterface {
	t.Helper()
	if _, err := identity(); err != nil {
		t.Fatal(err)
	}
	h, err := rest.HTTPClientFor(cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.CloseIdleConnections)
	d, err := dynamic.NewForConfigAndClient(cluster.Config, h)
	if err != nil {
		t.Fatal(err)
	}
	return d.Resource(v1.GroupVersion.WithResource(v1.IPResource))
}

// patch changes an object behind the store's back, by a merge patch.
func patch(t testing.TB, a netip.Addr, body string) {
	t.Helper()
	if _, err := objects(t).Patch(t.Context(), ipaddr.ObjectName(a), "application/merge-patch+json", []byte(body),
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

func stored(t testing.TB, a netip.Addr) *unstructured.Unstructured {
	t.Helper()
	o, err := objects(t).Get(t.Context(), ipaddr.ObjectName(a), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

var (
	subnetMu sync.Mutex
	subnets  int
)

// subnet hands out a /24 that no other test has; addr counts in it.
func subnet() (addr func(n int) netip.Addr) {
	subnetMu.Lock()
	defer subnetMu.Unlock()
	subnets++
	n := subnets
	return func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, byte(n >> 8), byte(n), byte(i)}) }
}

var params = lease.Params{Pool: "p", Bits: 24, Gateway: netip.MustParseAddr("10.255.255.1")}

// available is an address without an object.
func available(a netip.Addr) lease.Lease { return lease.Lease{Addr: a, Params: params} }

// active is a lease of an address for a container.
func active(t testing.TB, l lease.Lease, container string) lease.Lease {
	t.Helper()
	next, ok := lease.Bind(l, params, lease.Holder{
		Host: netip.MustParseAddr("192.0.2.11"), ContainerID: container, IfName: "eth0",
		Namespace: "default", PodName: "web", PodUID: "uid-" + container, StartedAt: now(),
	}, lease.Retention{}, now())
	if !ok {
		t.Fatalf("%s cannot be bound: %+v", l.Addr, l)
	}
	return next
}

// now has no monotonic part, as a time that was stored and read has none.
func now() time.Time { return time.Now().UTC().Round(0) }

func write(t testing.TB, c *Client, l lease.Lease) lease.Lease {
	t.Helper()
	l, err := c.Write(t.Context(), l)
	if err != nil {
		t.Fatalf("writing %s: %v", l.Addr, err)
	}
	return l
}

func read(t testing.TB, c *Client, a netip.Addr) lease.Lease {
	t.Helper()
	l, err := c.Get(t.Context(), a)
	if err != nil {
		t.Fatalf("reading %s: %v", a, err)
	}
	return l
}

// feeding runs the feed of a new client until the test ends.
func feeding(t testing.TB, tap *intercept.Tap) (*Client, *Feed) {
	t.Helper()
	cfg := config(t, tap)
	cfg.Wrap(NewRestores().Wrap)
	c := connectTo(t, cfg, index.New())
	f := NewFeed(c)
	start(t, f)
	return c, f
}

// start runs a feed until the test ends or stop is called.
func start(t testing.TB, f *Feed) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f.Run(ctx)
	}()
	stop = func() { cancel(); <-ended }
	t.Cleanup(stop)
	return stop
}

func has(index *index.Index, a netip.Addr, version uint64) func() bool {
	return func() bool {
		l, ok := index.Leases.Get(a)
		return ok && l.Version == version
	}
}

// versionOf is what the list or watch of a request starts from.
func versionOf(r *http.Request) string { return r.URL.Query().Get("resourceVersion") }

var (
	// lists are not the looks before watches, which are for one object.
	lists = intercept.All(intercept.Method(http.MethodGet), func(r *http.Request) bool {
		return !intercept.Watches(r) && strings.HasSuffix(r.URL.Path, "/"+v1.IPResource) && r.URL.Query().Get("limit") != "1"
	})
	watches = intercept.All(intercept.Watches, intercept.Of(v1.IPResource))
)
