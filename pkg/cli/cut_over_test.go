package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go4.org/netipx"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// ranges returns the addresses of a list.
func ranges(texts []string) *netipx.IPSet {
	var all []netipx.IPRange
	for _, text := range texts {
		if r, err := ipaddr.ParseRange(text); err == nil {
			all = append(all, r)
		}
	}
	return ipaddr.SetOf(all...)
}

// bothSystems is a cluster in which Spiderpool and bcsnet hand out addresses of the same range.
type bothSystems struct {
	*fixture
	*owners
	dynamic    dynamic.Interface
	spider     *spiderpool
	controller string       // its URL
	refused    atomic.Value // the last refusal of bcsnet
	stop       context.CancelFunc
	workers    sync.WaitGroup
}

func haveBothSystems(t *testing.T, crds, objects string) *bothSystems {
	t.Helper()
	f := newFixture(t)
	if err := f.wipe(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.haveObjects(t, crds, objects)
	for name, host := range map[string]string{"node-1": "10.0.0.11", "node-2": "10.0.0.12"} {
		f.haveReadyNode(t, name, host)
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"kubernetes.io/os":"linux"}}}`))
		if err := f.client.Patch(t.Context(), n, patch); err != nil {
			t.Fatal(err)
		}
	}
	c, err := cluster.StartController(t.Context(), controlplane.ControllerOptions{Name: "cut-over"})
	if err != nil {
		t.Fatal(err)
	}
	api, err := dynamic.NewForConfigAndClient(cluster.Config, httpClient(t, cluster.Config))
	if err != nil {
		t.Fatal(err)
	}
	b := &bothSystems{fixture: f, owners: &owners{of: map[string]string{}, given: map[string]int{}},
		dynamic: api, spider: &spiderpool{api: api}, controller: c.URL}
	var ctx context.Context
	ctx, b.stop = context.WithCancel(t.Context())
	b.workers.Go(func() { b.spider.watch(ctx) })
	t.Cleanup(func() {
		b.stop()
		b.workers.Wait()
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
		t.Logf("given: %v; the last refusal: %v", b.given, b.refused.Load())
	})
	return b
}

// runs creates a pod on a node that runs with the address that give returns.
func (b *bothSystems) runs(
	ctx context.Context, name, node string, give func(*corev1.Pod) (string, error),
) (p *corev1.Pod, address string, err error) {
	p = &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name, GenerateName: "app-"},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	if err := b.client.Create(ctx, p); err != nil {
		return p, "", err
	}
	if address, err = give(p); err != nil || address == "" {
		return p, "", err
	}
	host := map[string]string{"node-1": "10.0.0.11", "node-2": "10.0.0.12"}[node]
	p.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, StartTime: new(metav1.Now()), PodIP: address, PodIPs: []corev1.PodIP{{IP: address}},
		HostIP: host, HostIPs: []corev1.HostIP{{IP: host}},
	}
	return p, address, b.client.Status().Update(ctx, p)
}

func (b *bothSystems) bySpider(ctx context.Context) func(*corev1.Pod) (string, error) {
	return b.by("spiderpool", func(p *corev1.Pod) (string, error) { return b.spider.allocate(ctx, p) })
}

// byUs asks bcsnet.
func (b *bothSystems) byUs(ctx context.Context) func(*corev1.Pod) (string, error) {
	return b.by("bcsnet", func(p *corev1.Pod) (string, error) { return b.ask(ctx, http.MethodPost, p.Name) })
}

// by notes who gets which address.
func (b *bothSystems) by(system string, give func(*corev1.Pod) (string, error)) func(*corev1.Pod) (string, error) {
	return func(p *corev1.Pod) (string, error) {
		address, err := give(p)
		if err == nil && address != "" {
			b.got(system, address, p.Name)
		}
		return address, err
	}
}

// giveUp ends a pod of bcsnet.
func (b *bothSystems) giveUp(p *corev1.Pod, _ string) error {
	_, err := b.ask(context.Background(), http.MethodDelete, p.Name)
	return err
}

// handOut waits until both systems have given addresses to more pods.
func (b *bothSystems) handOut(t *testing.T, other string, more int) {
	t.Helper()
	us, them := b.count("bcsnet"), b.count(other)
	controlplane.Until(t, "both systems allocate", func() bool {
		return b.count("bcsnet") >= us+more && b.count(other) >= them+more
	})
}

// ask calls the allocator of bcsnet as a plugin of node-1 does.
func (b *bothSystems) ask(ctx context.Context, method, pod string) (address string, err error) {
	body, err := json.Marshal(map[string]string{
		"host": "10.0.0.11", "containerID": "c-" + pod, "podName": pod, "podNamespace": "default",
	})
	if err != nil {
		return "", err
	}
	r, err := http.NewRequestWithContext(ctx, method, b.controller+"/netservicecontroller/v1/allocator", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	var envelope struct {
		Message string `json:"message"`
		Data    struct {
			IPAddr string `json:"ipAddr"`
		} `json:"data"`
	}
	err = json.NewDecoder(answer.Body).Decode(&envelope)
	if envelope.Data.IPAddr == "" {
		b.refused.Store(envelope.Message)
	}
	return envelope.Data.IPAddr, err
}

// churn starts pods one after the other on a node, and ends each, until the context ends.
func (b *bothSystems) churn(
	t *testing.T, ctx context.Context, name, node string, give func(*corev1.Pod) (string, error),
	take func(p *corev1.Pod, address string) error,
) {
	t.Helper()
	b.workers.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			p, address, err := b.runs(ctx, fmt.Sprintf("%s-%d", name, i), node, give)
			if address != "" {
				b.gone(address)
			}
			err = errors.Join(err, b.client.Delete(context.Background(), p, client.GracePeriodSeconds(0)))
			if address != "" {
				err = errors.Join(err, take(p, address))
			}
			if err != nil && ctx.Err() == nil && !errors.Is(err, errNoneFree) {
				t.Errorf("%s: %v", p.Name, err)
			}
		}
	})
}

// stuckAt runs the program until it sends a request of a method and path, and kills it there.
func (b *bothSystems) stuckAt(t *testing.T, method, path string, then func(), args ...string) {
	t.Helper()
	var once sync.Once
	stuck := make(chan struct{})
	url := proxy(t, func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method == method && strings.Contains(r.URL.Path, path) {
			once.Do(func() { close(stuck) })
			_, _ = io.Copy(io.Discard, r.Body) // only then is it noticed that a client has gone
			<-r.Context().Done()
			return
		}
		next.ServeHTTP(rw, r)
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/spiderreservedips") && then != nil {
			then()
		}
	})
	cmd := b.command(t, append([]string{"--server", url}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // it is killed
	}()
	select {
	case <-stuck:
	case <-ended:
		t.Fatalf("it ended before %s %s:\n%s", method, path, &stderr)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-ended
	t.Logf("killed at %s %s:\n%s", method, path, &stderr)
}

func (b *bothSystems) run(t *testing.T, args ...string) string {
	t.Helper()
	stdout, stderr := b.call(t, append([]string{"--kubeconfig", b.kubeconfigs["ADMIN"]}, args...)...)
	t.Logf("%v:\n%s%s", args, stdout, stderr)
	return stdout + stderr
}

// withdrawn returns what Spiderpool has withdrawn.
func (b *bothSystems) withdrawn(t *testing.T) *netipx.IPSet {
	t.Helper()
	o, err := b.spider.kind("spiderreservedips").Get(t.Context(), "bcsnet-blue", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return ranges(nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	ips, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "ips")
	return ranges(ips)
}

// TestCutOverByNodes: while a node goes from Spiderpool to bcsnet and back, both allocate. Every run is killed half-way
// and continued. A pod keeps its address, and no address has two owners.
func TestCutOverByNodes(t *testing.T) {
	controlplane.TakesLong(t)
	b := haveBothSystems(t, crd("spiderpool.spidernet.io", "v2beta1", "SpiderIPPool", "spiderippools", "Cluster")+
		crd("spiderpool.spidernet.io", "v2beta1", "SpiderReservedIP", "spiderreservedips", "Cluster"), spiderObjects)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	web, kept, err := b.runs(ctx, "web", "node-1", b.bySpider(ctx))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.runs(ctx, "db", "node-2", b.bySpider(ctx)); err != nil {
		t.Fatal(err)
	}
	before, err := b.spider.kind("spiderippools").Get(ctx, "blue", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		b.churn(t, ctx, fmt.Sprintf("theirs-%d", i), "node-2", b.bySpider(ctx),
			func(_ *corev1.Pod, address string) error { return b.spider.release(context.Background(), address) })
	}
	// An agent that has read everything before the withdrawal stores its allocation after it.
	slow, _, err := b.runs(ctx, "slow", "node-2", func(*corev1.Pod) (string, error) { return "", nil })
	if err != nil {
		t.Fatal(err)
	}
	var late atomic.Value
	allocateLate := func() {
		for {
			pool, allocated, _, err := b.spider.free(ctx)
			if err != nil {
				t.Error(err)
				return
			}
			for a := range ipaddr.All(b.withdrawn(t)) {
				if _, taken := allocated[a.String()]; !taken {
					allocated[a.String()] = spiderAllocation{Interface: "eth0", Pod: "default/slow", UID: string(slow.UID)}
					if err = b.spider.store(ctx, pool, allocated); err == nil {
						b.got("spiderpool", a.String(), "slow")
						late.Store(a.String())
						return
					}
					break
				}
			}
			if err != nil && !apierrors.IsConflict(err) {
				t.Error(err)
				return
			}
		}
	}
	there := []string{"import", "spiderpool", "--cut-over", "node-1", "--addresses", "8", "--settle", "3s", "--settle-short", "--yes"}
	out := b.run(t, append(slices.Clone(there), "--dry-run=client", "-o", "json")...)
	contains(t, out, `"ofPods": [`, `"`+kept+`"`, `"kind": "BCSNetPool"`, `"leftThere":`)
	if b.withdrawn(t); len(b.withdrawn(t).Ranges()) > 0 {
		t.Fatal("a dry run withdraws")
	}
	b.stuckAt(t, http.MethodPatch, "/bcsnetpools/blue", allocateLate, there...)
	if a, _ := late.Load().(string); a == "" || b.withdrawn(t).Contains(netip.MustParseAddr(a)) {
		t.Errorf("%q, which an agent gave to a pod after the withdrawal, did not go back", a)
	}
	out = b.run(t, there...)
	contains(t, out, "read back: every address belongs to one system")
	b.run(t, "pool", "uncordon", "blue")

	ours, stopOurs := context.WithCancel(ctx)
	defer stopOurs()
	for i := range 3 {
		b.churn(t, ours, fmt.Sprintf("ours-%d", i), "node-1", b.byUs(ctx), b.giveUp)
	}
	allocated := func(more int) {
		t.Helper()
		b.handOut(t, "spiderpool", more)
	}
	allocated(20)
	there[5] = "12" // the next portion
	contains(t, b.run(t, there...), "read back: every address belongs to one system")
	allocated(20)
	if l := b.addressOf(t, kept); l.Status.Status != v1.IPActive || l.Status.PodName != "web" {
		t.Errorf("the address of the pod that moved is %+v", l.Status)
	}

	back := []string{"import", "revert", "spiderpool", "--cut-over", "node-1", "--addresses", "3", "--yes"}
	b.stuckAt(t, http.MethodPut, "/spiderreservedips/bcsnet-blue", nil, back...)
	allocated(10)
	b.run(t, back...)
	allocated(10)
	if b.withdrawn(t).Contains(netip.MustParseAddr(kept)) {
		t.Errorf("%s of a pod that runs did not go back", kept)
	}
	if l := b.addressOf(t, kept); l.Status.Status != v1.IPReserved {
		t.Errorf("the address that went back is %s here", l.Status.Status)
	}
	// Here again, and all of it back.
	contains(t, b.run(t, there...), "read back: every address belongs to one system")
	if l := b.addressOf(t, kept); l.Status.Status != v1.IPActive || l.Status.PodName != "web" {
		t.Errorf("the address of the pod that moved again is %+v", l.Status)
	}
	stopOurs()
	b.untilFree(t, kept)
	b.run(t, "import", "revert", "spiderpool", "--yes")
	if left := b.withdrawn(t); len(left.Ranges()) > 0 {
		t.Errorf("%s did not go back", ipaddr.FormatSet(left))
	}
	controlplane.Until(t, "the pool is gone", func() bool {
		return apierrors.IsNotFound(b.client.Get(t.Context(), client.ObjectKey{Name: "blue"}, &v1.BCSNetPool{}))
	})
	them := b.count("spiderpool")
	controlplane.Until(t, "the other system goes on", func() bool { return b.count("spiderpool") >= them+20 })
	stop()
	b.stop()
	b.workers.Wait()
	after, err := b.spider.kind("spiderippools").Get(t.Context(), "blue", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if after.GetGeneration() != before.GetGeneration() || len(after.GetAnnotations()) != len(before.GetAnnotations()) {
		t.Errorf("somebody else than its agents changed the pool: %v", after.Object)
	}
	if allocations, _, _ := unstructured.NestedString(after.Object, "status", "allocatedIPs"); !strings.Contains(allocations,
		`"`+kept+`":{"interface":"eth0","pod":"default/web","podUid":"`+string(web.UID)) {
		t.Errorf("%s is not with its pod: %s", kept, allocations)
	}
	if len(b.twice) > 0 {
		t.Errorf("%s", strings.Join(b.twice, "\n"))
	}
}

// untilFree waits until bcsnet has given no address away but some.
func (b *bothSystems) untilFree(t *testing.T, but ...string) {
	t.Helper()
	controlplane.Until(t, "the last pod of bcsnet has ended", func() bool {
		var all v1.BCSNetIPList
		return b.client.List(t.Context(), &all) == nil && !slices.ContainsFunc(all.Items, func(ip v1.BCSNetIP) bool {
			return ip.Status.Status == v1.IPActive && !slices.Contains(but, ip.Name)
		})
	})
}

func (b *bothSystems) addressOf(t *testing.T, name string) v1.BCSNetIP {
	t.Helper()
	var ip v1.BCSNetIP
	if err := b.client.Get(t.Context(), client.ObjectKey{Name: name}, &ip); err != nil {
		t.Fatal(err)
	}
	return ip
}

// TestCutOverRefused: systems that cannot withdraw addresses say what to do instead.
func TestCutOverRefused(t *testing.T) {
	f := newFixture(t)
	for _, system := range []string{"host-local", "galaxy", "hostnic", "crd-ipkeeper", "contiv", "csv"} {
		_, stderr := f.call(t, "import", system, "--cut-over", "node-1")
		contains(t, stderr, "there is no cut-over by nodes", "hint: switch the whole cluster at once", "[exit 2]")
	}
	_, stderr := f.call(t, "import", "revert", "csv", "--cut-over", "node-1")
	contains(t, stderr, "there is no cut-over by nodes")
	_, stderr = f.call(t, "import", "spiderpool", "--cut-over", "nowhere")
	contains(t, stderr, "there is no node nowhere")
	for _, settle := range []string{"0s", "-5m", "1s", "4m29s"} {
		_, stderr = f.call(t, "import", "spiderpool", "--cut-over", "node-1", "--settle", settle)
		contains(t, stderr, "is too short", "hint: 4m30s is the shortest", "[exit 2]")
	}
	for _, args := range [][]string{
		{"spiderpool", "--settle", "10m"}, {"spiderpool", "--addresses", "3"}, {"revert", "spiderpool", "--addresses", "3"},
	} {
		_, stderr = f.call(t, append([]string{"import"}, args...)...)
		contains(t, stderr, "is for a cut-over by nodes", "hint: name the node", "[exit 2]")
	}
}
