// Package sticky_test checks what becomes of addresses when workloads live on, the table of docs/sticky-addresses.md,
// on a whole control plane. The controller runs as it is shipped, in two replicas; only the kubelets
// are the tests' own, and they are as late and as stubborn as real ones.
package sticky_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

var cluster *controlplane.ControlPlane

func TestMain(m *testing.M) {
	os.Exit(controlplane.Main(m, &cluster, controlplane.WithControllerManager(), controlplane.WithScheduler(),
		// A machine that is busy with the tests is no node that is lost.
		controlplane.WithArgs("kube-controller-manager", "--node-monitor-grace-period=5m")))
}

// seedEnv makes a run begin like an earlier one: the seed is in its log.
const seedEnv = "STICKY_SEED"

// fixture is the cluster with all that acts in it.
type fixture struct {
	admin client.Client
	// seen is what the watches tell: pods, addresses and claims.
	seen     cache.Cache
	kubelet  *kubelet
	fleets   *fleetOperator
	replicas []*controlplane.Controller

	mu  sync.Mutex
	rng *rand.Rand
}

const (
	poolIndex = "spec.pool"
	// hostGrace is the time for which addresses of a node that has gone are left alone: a day as it is shipped.
	hostGrace = "2s"
)

func newFixture(t *testing.T) *fixture {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv(seedEnv); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%s=%d", seedEnv, seed)
	f := &fixture{rng: rand.New(rand.NewPCG(seed, 0)), admin: cluster.AdminFor(t)}
	if err := cluster.InstallManifests(t.Context()); err != nil {
		t.Fatal(err)
	}
	installFleets(t)
	for i := range 2 {
		c, err := cluster.StartController(t.Context(), controlplane.ControllerOptions{
			Name: fmt.Sprintf("replica-%d", i),
			Args: []string{
				"--host-grace", hostGrace,
				"--leader-elect-lease-duration", "4s", "--leader-elect-renew-deadline", "3s", "--leader-elect-retry-period", "1s",
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		f.replicas = append(f.replicas, c)
	}
	f.watch(t)
	return f
}

// watch starts the watches, the kubelets and the operator of fleets, which end with the test.
func (f *fixture) watch(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	scheme, err := controlplane.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	if f.seen, err = cache.New(cluster.Config, cache.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	if err := f.seen.IndexField(ctx, &v1.BCSNetIP{}, poolIndex, func(o client.Object) []string {
		return []string{o.(*v1.BCSNetIP).Spec.Pool}
	}); err != nil {
		t.Fatal(err)
	}
	h := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	f.kubelet = newKubelet(ctx, f, h)
	f.fleets = &fleetOperator{f, t}
	pods, err := f.seen.GetInformer(ctx, &corev1.Pod{}, cache.BlockUntilSynced(false))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pods.AddEventHandler(f.kubelet.handler()); err != nil {
		t.Fatal(err)
	}
	var parts sync.WaitGroup
	parts.Go(func() { _ = f.seen.Start(ctx) }) // it ends with the context
	parts.Go(func() { f.fleets.run(ctx) })
	parts.Go(func() { f.kubelet.beat(ctx) })
	t.Cleanup(func() {
		cancel()
		parts.Wait()
		f.kubelet.wait()
		h.CloseIdleConnections()
		for _, what := range f.kubelet.violations() {
			t.Error(what)
		}
	})
	if !f.seen.WaitForCacheSync(ctx) {
		t.Fatal("the watches do not begin")
	}
}

// chance is true once in n.
func (f *fixture) chance(n int) bool { return f.below(n) == 0 }

func (f *fixture) below(n int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.rng.IntN(n)
}

// site is where a case has its workloads: a namespace with a pool and nodes of its own.
type site struct {
	*fixture
	namespace, pool, nodes string
	block                  int
}

// address is the n-th one of the site's pool, from 1 on.
func (s *site) address(n int) string {
	return fmt.Sprintf("10.%d.%d.%d", 1+s.block/256, s.block%256, n)
}

// net is the address plan: each pool is a part of it.
const (
	plan    = "10.0.0.0"
	mask    = 8
	gateway = "10.255.255.254"
)

// newSite makes a namespace, which alone may use its pool of n addresses; with more, namespaces of these endings may
// use it, too.
func (f *fixture) newSite(t *testing.T, name string, n int, nodes string, more ...string) *site {
	t.Helper()
	block := f.kubelet.number()
	name = fmt.Sprintf("%s-%d", name, block)
	s := &site{fixture: f, namespace: name, pool: name, nodes: nodes, block: block}
	all := []string{name}
	for _, end := range more {
		all = append(all, name+end)
	}
	for _, namespace := range all {
		f.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	}
	f.create(t, &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.BCSNetPoolSpec{
		Net: plan, Mask: mask, Gateway: gateway, HostSubnets: []string{nodeNet}, Namespaces: all,
		AvailableIPs: []string{s.address(1) + "-" + s.address(n)},
	}})
	for _, namespace := range all {
		eventually(t, "its ServiceAccount", func() error {
			return f.admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "default"}, &corev1.ServiceAccount{})
		})
	}
	return s
}

func (f *fixture) create(t *testing.T, o client.Object) {
	t.Helper()
	if err := f.admin.Create(t.Context(), o); err != nil {
		t.Fatalf("%s: %v", o.GetName(), err)
	}
}

// patience is for what must come, however slow the machine is, and however often the controller is killed. Only a test
// that fails waits for so long.
const patience = 5 * time.Minute

// eventually repeats a check until it finds nothing wrong.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	if err := controlplane.WaitFor(t.Context(), patience, check); err != nil {
		t.Fatalf("waiting for %s: %v", what, err)
	}
}

// stays repeats a check for as long as the controller takes to give back what is needed no more.
func stays(t *testing.T, what string, check func() error) {
	t.Helper()
	enough := time.After(settles)
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		if err := check(); err != nil {
			t.Fatalf("%s did not stay: %v", what, err)
		}
		select {
		case <-tick.C:
		case <-enough:
			return
		}
	}
}
