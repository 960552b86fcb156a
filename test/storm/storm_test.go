// Package storm_test lets many callers loose on the controller as it is shipped, two replicas of it, and
// judges the history: no address has two holders at any time, and nothing stays behind.
package storm_test

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/plugin"
)

const (
	callers   = 64
	hosts     = 4
	namespace = "storm"
	// longEnv has the tests take as long as they were made for: make test-storm.
	longEnv = "STORM_LONG"
)

// long returns how much of something a test does: all in the long form, else what fits beside the other tests.
func long(all, short int) int {
	if os.Getenv(longEnv) != "" {
		return all
	}
	return short
}

var (
	cluster  *controlplane.ControlPlane
	admin    client.Client
	replicas []string // their URLs
	metrics  []string // and those of their metrics
	caller   = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: callers}}
)

func TestMain(m *testing.M) { os.Exit(controlplane.Main(m, &cluster)) }

var prepared = sync.OnceValue(func() error { return prepare(context.Background()) })

func prepare(ctx context.Context) (err error) {
	if admin, err = cluster.Prepare(ctx); err != nil {
		return err
	}
	for i := range 2 {
		c, err := cluster.StartController(ctx, controlplane.ControllerOptions{Name: fmt.Sprintf("replica-%d", i)})
		if err != nil {
			return err
		}
		replicas, metrics = append(replicas, c.URL), append(metrics, c.MetricsURL+"/metrics")
	}
	if err := admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return err
	}
	for i := range hosts {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", i)}}
		if err := admin.Create(ctx, n); err != nil {
			return err
		}
		n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: host(i)}}
		if err := admin.Status().Update(ctx, n); err != nil {
			return err
		}
	}
	for i := range callers {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: podName(i)},
			Spec: corev1.PodSpec{
				NodeName: fmt.Sprintf("node-%d", i%hosts), Containers: []corev1.Container{{Name: "c", Image: "c"}},
			},
		}
		if err := admin.Create(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

func host(i int) string    { return fmt.Sprintf("10.0.0.%d", 11+i) }
func podName(i int) string { return fmt.Sprintf("storm-%d", i) }

// pool makes a pool for so many hosts that every replica knows, returns its name, and takes it away after
// the test.
func pool(t *testing.T, cidr string, hosts int) string {
	t.Helper()
	if err := prepared(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(caller.CloseIdleConnections)
	p := &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{GenerateName: "storm-"}, Spec: v1.BCSNetPoolSpec{
		Net: "10.0.0.0", Mask: 8, Gateway: "10.255.255.254", AvailableIPs: []string{cidr},
	}}
	for i := range hosts {
		p.Spec.Hosts = append(p.Spec.Hosts, host(i))
	}
	if err := admin.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := admin.Delete(context.Background(), p); err != nil {
			t.Error(err)
		}
	})
	for _, url := range metrics {
		controlplane.Until(t, "replicas know the pool", func() bool { return served(t, url, p.Name) })
	}
	return p.Name
}

// served says whether a replica counts a pool among those that it knows.
func served(t *testing.T, url, pool string) bool {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := caller.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(text), fmt.Sprintf("pool=%q", pool))
}

// send is one request to one replica.
func send(ctx context.Context, url, method string, i int, container, ifName string) (plugin.Answer, error) {
	return plugin.Ask(ctx, caller, method, url, wire.AllocateRequest{
		Host: host(i % hosts), ContainerID: container, IfName: ifName, PodName: podName(i), PodNamespace: namespace,
	})
}

// active are the addresses that somebody holds, as the API server has them.
func active(t *testing.T, pool string) []string {
	t.Helper()
	var list v1.BCSNetIPList
	if err := admin.List(t.Context(), &list, client.MatchingFields{"spec.pool": pool}); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, ip := range list.Items {
		if ip.Status.Status == v1.IPActive {
			out = append(out, ip.Name)
		}
	}
	return out
}

// register is one address: at any time it has one holder or none.
var register = porcupine.Model{
	Partition: plugin.ByAddress(func(input any) string { return input.(change).addr }),
	Init:      func() any { return "" },
	Step: func(state, input, _ any) (bool, any) {
		c := input.(change)
		if c.take {
			return state == "" || state == c.who, c.who
		}
		return state == c.who, ""
	},
	DescribeOperation: func(input, _ any) string { return fmt.Sprintf("%+v", input) },
}

// illegal writes out the history of the first address whose history is not that of a register.
func illegal(history []porcupine.Operation) string {
	for _, ops := range register.Partition(history) {
		if porcupine.CheckOperationsTimeout(register, ops, time.Minute) == porcupine.Ok {
			continue
		}
		slices.SortFunc(ops, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
		var out strings.Builder
		for _, op := range ops {
			fmt.Fprintf(&out, "%9d to %9d µs: %+v\n", op.Call/1000, op.Return/1000, op.Input)
		}
		return out.String()
	}
	return ""
}

// change is one operation of the history: who took or released which address.
type change struct {
	addr, who string
	take      bool
}

// TestNoAddressTwice: 64 callers, each with up to eight interfaces, on one pool of 256 through two
// replicas, with repeated requests; the pool runs full again and again.
func TestNoAddressTwice(t *testing.T) {
	operations := long(8000, 2000)
	pool(t, "10.1.0.0-10.1.0.255", hosts)
	var (
		mu        sync.Mutex
		history   []porcupine.Operation
		exhausted atomic.Int64
		left      atomic.Int64
		wg        sync.WaitGroup
	)
	left.Store(int64(operations))
	began := time.Now()
	record := func(i int, c change, call, end int64) {
		mu.Lock()
		defer mu.Unlock()
		history = append(history, porcupine.Operation{ClientId: i, Input: c, Call: call, Return: end})
	}
	for i := range callers {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(i)))
			type holding struct{ addr, container string }
			held := map[string]holding{} // by interface
			for n := 0; left.Add(-1) >= 0 && !t.Failed(); n++ {
				ifName := fmt.Sprintf("eth%d", rng.IntN(8))
				has := held[ifName].addr != ""
				container, addr, method := held[ifName].container, held[ifName].addr, http.MethodPost
				if !has {
					container = fmt.Sprintf("c-%d-%d", i, n) // a container ID is never used again after its DEL
				}
				who, url := container+"/"+ifName, replicas[rng.IntN(len(replicas))]
				if has && rng.IntN(4) > 0 {
					method = http.MethodDelete
				}
				call := time.Since(began).Nanoseconds()
				a, err := send(t.Context(), url, method, i, container, ifName)
				for err == nil && a.Reason == "Unavailable" && time.Since(began) < 5*time.Minute { // as a plugin does
					a, err = send(t.Context(), url, method, i, container, ifName)
				}
				end, got := time.Since(began).Nanoseconds(), a.Address.IPAddr
				switch {
				case err != nil:
					t.Errorf("%s %s: %v", method, who, err)
					return
				case a.Reason == "PoolExhausted" && method == http.MethodPost && !has:
					exhausted.Add(1)
					continue
				case a.Code != 0:
					t.Errorf("%s %s: %s: %s", method, who, a.Reason, a.Message)
					return
				case method == http.MethodPost && has && got != addr:
					t.Errorf("%s holds %s and was told %s", who, addr, got)
				}
				if method == http.MethodPost {
					addr, held[ifName] = got, holding{got, container}
				} else {
					delete(held, ifName)
				}
				record(i, change{addr, who, method == http.MethodPost}, call, end)
			}
			for ifName, h := range held {
				call := time.Since(began).Nanoseconds()
				if a, err := send(t.Context(), replicas[0], http.MethodDelete, i, h.container, ifName); err != nil || a.Code != 0 {
					t.Errorf("the last DEL: %+v, %v", a, err)
				}
				record(i, change{h.addr, h.container + "/" + ifName, false}, call, time.Since(began).Nanoseconds())
			}
		})
	}
	wg.Wait()
	if result := porcupine.CheckOperationsTimeout(register, history, time.Minute); result != porcupine.Ok {
		t.Errorf("the history of %d operations is %s: an address had two holders\n%s", len(history), result, illegal(history))
	}
	if exhausted.Load() == 0 {
		t.Error("the pool was never exhausted: the test is too gentle")
	}
	t.Logf("%d operations, %d refusals of an exhausted pool, %s", len(history), exhausted.Load(),
		time.Since(began).Round(time.Millisecond))
}

// TestCyclesLeaveNothing: ADD and DEL without a pause, as fast as they go, the DEL at the other replica.
// The system that bcsnet takes over from leaks the address in every second such cycle.
func TestCyclesLeaveNothing(t *testing.T) {
	const at = 16
	cycles := long(10000, 500)
	name := pool(t, "10.2.0.0/22", hosts)
	var left atomic.Int64
	var wg sync.WaitGroup
	left.Store(int64(cycles))
	began := time.Now()
	for i := range at {
		wg.Go(func() {
			for n := 0; left.Add(-1) >= 0 && !t.Failed(); n++ {
				container := fmt.Sprintf("cycle-%d-%d", i, n)
				for step, method := range []string{http.MethodPost, http.MethodDelete} {
					// Mostly the same replica, and the other for every eighth DEL.
					url := replicas[(i+step*(n%8/7))%len(replicas)]
					a, err := send(t.Context(), url, method, i, container, "eth0")
					if err != nil || a.Code != 0 {
						t.Errorf("%s %s: %+v, %v", method, container, a, err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d cycles in %s", cycles, time.Since(began).Round(time.Millisecond))
	// A DEL at a replica that had not seen its ADD yet is done when that replica's watch delivers it.
	controlplane.Eventually(t, func() error {
		if rest := active(t, name); len(rest) > 0 {
			return fmt.Errorf("%d addresses are still Active: %v", len(rest), rest[:min(5, len(rest))])
		}
		return nil
	})
}
