package allocator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/gone"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/kubevirt"
	"github.com/bcsnet/bcsnet/pkg/store"
	"github.com/bcsnet/bcsnet/pkg/workload"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/intercept"
)

var cluster *controlplane.ControlPlane

func TestMain(m *testing.M) { os.Exit(controlplane.Main(m, &cluster)) }

// identity is the controller's ServiceAccount with the rights of the manifests.
var identity = sync.OnceValues(func() (*rest.Config, error) { return cluster.ControllerConfig(context.Background()) })

// replica is one controller's share of the work: an index with its feed, and an allocator over it. Every
// request that it sends passes the tap, and the watches of its feed and of its pods gates, which are open
// to begin with.
type replica struct {
	*engine
	*Adder
	*Releaser
	*Repairer
	*Stocker
	*Reporter
	t                testing.TB
	tap              *intercept.Tap
	watch, podsWatch *intercept.Gate
	cached           client.Reader
	stop             func()
	// unaware: another replica does not know of second attachments.
	unaware *atomic.Bool
}

func newReplica(t testing.TB, pools ...*v1.BCSNetPool) *replica {
	t.Helper()
	return newReplicaBy(t, nil, pools...)
}

// newReplicaBy is newReplica on a machine with another clock; nil is the right one.
func newReplicaBy(t testing.TB, clock func() time.Time, pools ...*v1.BCSNetPool) *replica {
	t.Helper()
	cfg, err := identity()
	if err != nil {
		t.Fatal(err)
	}
	cfg = rest.CopyConfig(cfg)
	r := &replica{t: t, tap: &intercept.Tap{}, watch: intercept.NewGate(), podsWatch: intercept.NewGate(),
		unaware: &atomic.Bool{}}
	r.watch.Open()
	r.podsWatch.Open()
	r.tap.On(watches, r.watch.HoldStream)
	r.tap.On(intercept.All(intercept.Watches, intercept.Of("pods")), r.podsWatch.HoldStream)
	cfg.Wrap(r.tap.Wrap)
	h, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	index := index.New()
	leases, err := store.New(cfg, index, store.NewClock(clock))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var parts sync.WaitGroup
	r.stop = sync.OnceFunc(func() {
		cancel()
		parts.Wait()
		h.CloseIdleConnections()
	})
	t.Cleanup(r.stop)
	pods := &workload.Pods{NodeAddrs: nodeAddrs}
	watched, live := controlplane.PodReaders(ctx, t, cfg, h, &parts, nil)
	pods.Cached, pods.Live, r.cached = watched, live, watched
	pods.Endings = workload.NewEndings(leases.Now)
	informer, err := watched.GetInformer(ctx, &corev1.Pod{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := informer.AddEventHandler(pods.Endings); err != nil {
		t.Fatal(err)
	}
	endAtOnce := gone.Rule{} // the containers of a pod that is gone, unless a test says more
	jobs := New(index, leases, pods, terms, endAtOnce, slog.New(slog.DiscardHandler))
	r.Adder, r.Releaser, r.Repairer = jobs.Adder, jobs.Releaser, jobs.Repairer
	r.Stocker, r.Reporter, r.engine = jobs.Stocker, jobs.Reporter, jobs.Adder.engine
	migrations, err := kubevirt.NewMigrations(cfg, h, func() string {
		if r.unaware.Load() {
			return "replica old does not know it"
		}
		return ""
	})
	if err != nil {
		t.Fatal(err)
	}
	r.AdmitMigrations(migrations)
	for _, p := range pools {
		index.Pools.SetPool(poolOf(t, p))
	}
	feed := store.NewFeed(leases)
	parts.Go(func() { feed.Run(ctx) })
	parts.Go(func() {
		if err := r.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	controlplane.Until(t, "the feed has a list and a watch",
		func() bool { return feed.Synced() && r.tap.Count(watches) > 0 })
	<-r.watch.Arrived()
	return r
}

// in is the replica for a subtest.
func (r *replica) in(t testing.TB) *replica {
	t.Helper()
	c := *r
	c.t = t
	return &c
}

func poolOf(t testing.TB, o *v1.BCSNetPool) ipam.Pool {
	t.Helper()
	p := store.Pool(o)
	if p.Problem != "" {
		t.Fatal(p.Problem)
	}
	return p
}

// terms holds the constraints of the tests' pods, by the names of the pods.
var terms = &termsByName{by: map[string]Constraints{}, refusals: map[string]*ipam.Refusal{}}

type termsByName struct {
	mu       sync.Mutex
	by       map[string]Constraints
	refusals map[string]*ipam.Refusal
}

func (t *termsByName) Of(_ context.Context, pod workload.Pod) (Constraints, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if refusal := t.refusals[pod.Name]; refusal != nil {
		return Constraints{}, refusal
	}
	return t.by[pod.Name], nil
}

// refuse has a pod refused from now on.
func (t *termsByName) refuse(pod string, refusal *ipam.Refusal) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refusals[pod] = refusal
}

func (t *termsByName) set(pod string, terms Constraints) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.by[pod] = terms
}

// What the tap of a replica counts and holds.
var (
	watches = intercept.All(intercept.Watches, intercept.Of(v1.IPResource))
	writes  = intercept.All(intercept.Writes, intercept.Of(v1.IPResource))
	reads   = intercept.All(intercept.Method(http.MethodGet), func(r *http.Request) bool { return !intercept.Watches(r) })
	// podReads are reads of one pod.
	podReads = intercept.All(reads, func(r *http.Request) bool { return strings.Contains(r.URL.Path, "/pods/") })
)

// cost checks how many writes and reads a replica has sent since the last call of Forget.
func (r *replica) cost(what string, wantWrites, wantReads int) {
	r.t.Helper()
	if w, n := r.tap.Count(writes), r.tap.Count(reads); w != wantWrites || n != wantReads {
		r.t.Errorf("%s: %d writes and %d reads, want %d and %d", what, w, n, wantWrites, wantReads)
	}
	r.tap.Forget()
}

// site is a pool of a test's own, with a host that draws from it alone.
type site struct {
	host netip.Addr
	addr func(int) netip.Addr
	pool *v1.BCSNetPool
}

var sites atomic.Int64

// newSite makes a /24 with the given addresses: "9", "9-12".
func newSite(addresses ...string) site {
	n := sites.Add(1)
	hi, lo := byte(n>>8), byte(n)
	s := site{
		host: netip.AddrFrom4([4]byte{172, 16 + hi, lo, 1}),
		addr: func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, hi, lo, byte(i)}) },
	}
	s.pool = &v1.BCSNetPool{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pool-%d", n)},
		Spec: v1.BCSNetPoolSpec{
			Net: s.addr(0).String(), Mask: 24, Gateway: s.addr(254).String(),
			Hosts: []string{s.host.String()}, Materialize: v1.MaterializeOnDemand,
		},
	}
	prefix := strings.TrimSuffix(s.addr(0).String(), "0")
	for _, a := range addresses {
		s.pool.Spec.AvailableIPs = append(s.pool.Spec.AvailableIPs, prefix+strings.ReplaceAll(a, "-", "-"+prefix))
	}
	return s
}

// materialize makes the objects of a site's addresses, as the pool's reconciler does.
func (s site) materialize(t testing.TB, r *replica) {
	t.Helper()
	p := poolOf(t, s.pool)
	for _, a := range p.Plan.Addresses(true) {
		if _, err := r.leases.Write(t.Context(), lease.Lease{Addr: a, Params: p.Params()}); err != nil {
			t.Fatal(err)
		}
	}
}

// Nodes are named after their addresses.
func nodeOf(host netip.Addr) string { return "node-" + strings.ReplaceAll(host.String(), ".", "-") }

func nodeAddrs(node string) []netip.Addr {
	a, err := netip.ParseAddr(strings.ReplaceAll(strings.TrimPrefix(node, "node-"), "-", "."))
	if err != nil {
		return nil
	}
	return []netip.Addr{a}
}

func podObject(name string, host netip.Addr) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       corev1.PodSpec{NodeName: nodeOf(host), Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
}

// newPod makes a pod and waits until the replicas' caches have it.
func newPod(t testing.TB, name string, host netip.Addr, rs ...*replica) *corev1.Pod {
	t.Helper()
	p := podObject(name, host)
	if err := cluster.AdminFor(t).Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	for _, r := range rs {
		r.sees(p)
	}
	return p
}

// sees waits until the replica's cache has the pod.
func (r *replica) sees(p *corev1.Pod) {
	r.t.Helper()
	controlplane.Until(r.t, "the cache has the pod", func() bool {
		var o corev1.Pod
		err := r.cached.Get(r.t.Context(), types.NamespacedName{Namespace: p.Namespace, Name: p.Name}, &o)
		if client.IgnoreNotFound(err) != nil {
			r.t.Fatal(err)
		}
		return o.UID == p.UID
	})
}

func removePod(t testing.TB, p *corev1.Pod) {
	t.Helper()
	if err := cluster.AdminFor(t).Delete(t.Context(), p, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
}

// ago is the clock of a host on which it is a minute ago, in seconds from then.
func ago() func(int) time.Time {
	start := time.Now().Add(-time.Minute).Round(0)
	return func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
}

// begun is a moment of which only one time is known.
func begun(at time.Time) moment { return moment{arrived: at} }

// of is the request of a container of a pod.
func (s site) of(p *corev1.Pod, container string) Request {
	return Request{Host: s.host, ContainerID: container, Namespace: p.Namespace, PodName: p.Name}
}

// vm is the request of an owner that is no pod, and of this test alone.
func (s site) vm(name string) Request {
	return Request{Host: s.host, Owner: "vm-" + name + "-" + s.pool.Name}
}

// del is the DEL of a request.
func del(r Request) ReleaseRequest {
	return ReleaseRequest{Host: r.Host, ContainerID: r.ContainerID, IfName: r.IfName, Owner: r.Owner}
}

// add asks for addresses and fails the test if there are none.
func (r *replica) add(req Request) []netip.Addr {
	r.t.Helper()
	got, err := r.Allocate(r.t.Context(), req)
	if err != nil {
		r.t.Fatalf("ADD %s: %v", req.ContainerID, err)
	}
	return addrs(got)
}

// one is add for a request of one address.
func (r *replica) one(req Request) netip.Addr {
	r.t.Helper()
	got := r.add(req)
	if len(got) != 1 {
		r.t.Fatalf("ADD %s: %v, want one address", req.ContainerID, got)
	}
	return got[0]
}

func addrs(as []Address) []netip.Addr {
	var out []netip.Addr
	for _, a := range as {
		out = append(out, a.Addr)
	}
	return out
}

// del releases and fails the test on an error. The answer is what was released.
func (r *replica) del(req ReleaseRequest) []netip.Addr {
	r.t.Helper()
	ls, err := r.Release(r.t.Context(), req)
	if err != nil {
		r.t.Fatalf("DEL %s: %v", req.ContainerID, err)
	}
	var out []netip.Addr
	for _, l := range ls {
		out = append(out, l.Addr)
	}
	return out
}

// refused checks that a request was refused for a reason, in words that hold some others.
func refused(t testing.TB, err error, want ipam.Reason, words ...string) {
	t.Helper()
	r, ok := errors.AsType[*ipam.Refusal](err)
	if !ok || r.Reason != want {
		t.Fatalf("%v, want that it is refused as %s", err, want)
	}
	for _, w := range words {
		if !strings.Contains(r.Message, w) {
			t.Errorf("%s: %s; want %q in it", r.Reason, r.Message, w)
		}
	}
}

// lease reads an address from the API server.
func (r *replica) lease(a netip.Addr) lease.Lease {
	r.t.Helper()
	l, err := r.leases.Get(r.t.Context(), a)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		r.t.Fatal(err)
	}
	return l
}

// held are the Active addresses of a pool on the API server, with their containers.
func (s site) held(t testing.TB) map[netip.Addr]string {
	t.Helper()
	out := map[netip.Addr]string{}
	s.stored(t, func(l lease.Lease) {
		if l.State == lease.Active {
			out[l.Addr] = l.ContainerID
		}
	})
	return out
}

// stored looks at the addresses of a pool on the API server.
func (s site) stored(t testing.TB, look func(lease.Lease)) {
	t.Helper()
	cfg, err := identity()
	if err != nil {
		t.Fatal(err)
	}
	c, err := store.New(cfg, nil, store.NewClock(nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Each(t.Context(), "spec.pool="+s.pool.Name, func(l lease.Lease) error {
		look(l)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// outcome holds the answer to a request that ran in the background.
type outcome struct {
	addrs []netip.Addr
	err   error
}

// adding asks in the background.
func (r *replica) adding(ctx context.Context, req Request) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		got, err := r.Allocate(ctx, req)
		done <- outcome{addrs(got), err}
	}()
	return done
}

// picture waits until a replica's index shows exactly these containers on a site.
func (r *replica) picture(s site, want map[netip.Addr]string) {
	r.t.Helper()
	controlplane.Until(r.t, fmt.Sprintf("the index shows %v", want), func() bool {
		got := map[netip.Addr]string{}
		for _, l := range r.index.Leases.ByPool(s.pool.Name) {
			if l.State == lease.Active {
				got[l.Addr] = l.ContainerID
			}
		}
		return len(got) == len(want) && !slices.ContainsFunc(r.index.Leases.ByPool(s.pool.Name), func(l lease.Lease) bool {
			return l.State == lease.Active && want[l.Addr] != l.ContainerID
		})
	})
}
