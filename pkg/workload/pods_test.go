package workload_test

import (
	"context"
	"errors"
	"flag"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/intercept"
)

var cluster *controlplane.ControlPlane

var update = flag.Bool("update", false, "write the generated parts of the documents")

func TestMain(m *testing.M) {
	flag.Parse()
	if *update || flag.Lookup("test.fuzz").Value.String() != "" { // neither needs a cluster, nor does each fuzz worker
		os.Exit(m.Run())
	}
	os.Exit(controlplane.Main(m, &cluster))
}

var (
	nodeHost  = netip.MustParseAddr("192.0.2.11") // an address of node-1
	otherHost = netip.MustParseAddr("192.0.2.12")
	odd       = netip.MustParseAddr("192.0.2.99") // in a pod's status alone
)

func nodeAddrs(node string) []netip.Addr {
	if node == "node-1" {
		return []netip.Addr{nodeHost}
	}
	return nil
}

// finder is what the controller makes: a cache of trimmed pods, and reads of the API server behind it, as
// its ServiceAccount. The gate holds the cache's watch.
func finder(t *testing.T) (*workload.Pods, *intercept.Tap, *intercept.Gate) {
	t.Helper()
	cfg, err := cluster.ControllerConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tap, gate := &intercept.Tap{}, intercept.NewGate()
	gate.Open()
	tap.On(intercept.Watches, gate.HoldStream)
	cfg.Wrap(tap.Wrap)
	h, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var parts sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		parts.Wait()
		h.CloseIdleConnections()
	})
	cached, live := controlplane.PodReaders(ctx, t, cfg, h, &parts, func(o any) (any, error) {
		if p, ok := o.(*corev1.Pod); ok {
			return workload.Trim(p), nil
		}
		return o, nil
	})
	return &workload.Pods{Cached: cached, Live: live, NodeAddrs: nodeAddrs}, tap, gate
}

func create(t *testing.T, c client.Client, name, node string) *corev1.Pod {
	t.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"a": "b"}},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	if err := c.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	return p
}

func status(t *testing.T, c client.Client, p *corev1.Pod, change func(*corev1.PodStatus)) {
	t.Helper()
	change(&p.Status)
	if err := c.Status().Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, c client.Client, p *corev1.Pod, o ...client.DeleteOption) {
	t.Helper()
	if err := c.Delete(t.Context(), p, o...); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(p), p); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
}

// live matches reads of one pod.
var live = intercept.All(intercept.Method(http.MethodGet),
	func(r *http.Request) bool { return r.URL.Query().Get("resourceVersion") == "" && !intercept.Watches(r) })

// The cache answers where it cannot be mistaken, and one read of the API server everywhere else.
func TestFind(t *testing.T) {
	pods, tap, _ := finder(t)
	c := cluster.AdminFor(t)
	for name, test := range map[string]struct {
		node  string
		after func(p *corev1.Pod)
		// request
		host netip.Addr
		uid  func(p *corev1.Pod) string
		// answer
		want  func(p *corev1.Pod, w *workload.Pod)
		err   error
		reads int
	}{
		"on-the-host": {node: "node-1", host: nodeHost, reads: 0},
		"on-the-host-by-its-status": {
			node: "node-2", host: odd, reads: 0,
			after: func(p *corev1.Pod) {
				status(t, c, p, func(s *corev1.PodStatus) {
					s.HostIP, s.HostIPs = odd.String(), []corev1.HostIP{{IP: odd.String()}}
				})
			},
			want: func(_ *corev1.Pod, w *workload.Pod) { w.HostIPs = []netip.Addr{odd} },
		},
		"on-another-host":     {node: "node-1", host: otherHost, reads: 1},
		"on-an-unknown-node":  {node: "node-2", host: nodeHost, reads: 1},
		"on-no-node":          {host: nodeHost, reads: 1},
		"uid-on-the-host":     {node: "node-1", host: nodeHost, uid: uidOf, reads: 0},
		"uid-on-another-host": {node: "node-1", host: otherHost, uid: uidOf, reads: 0},
		"uid-on-no-node":      {host: nodeHost, uid: uidOf, reads: 0},
		"uid-of-another-pod": {node: "node-1", host: nodeHost, uid: func(*corev1.Pod) string { return "other" },
			err: workload.ErrNotFound, reads: 1},
		"being-deleted": {node: "node-1", host: nodeHost, after: func(p *corev1.Pod) { remove(t, c, p) },
			want: deleting, reads: 1},
		"uid-being-deleted": {node: "node-1", host: nodeHost, uid: uidOf,
			after: func(p *corev1.Pod) { remove(t, c, p) }, want: deleting, reads: 0},
		"succeeded": {node: "node-1", host: nodeHost, after: phase(t, c, corev1.PodSucceeded), want: ended,
			reads: 1},
		"failed": {node: "node-1", host: nodeHost, after: phase(t, c, corev1.PodFailed), want: ended,
			reads: 1},
		"uid-succeeded": {node: "node-1", host: nodeHost, uid: uidOf, after: phase(t, c, corev1.PodSucceeded),
			want: ended, reads: 1},
		"running":         {node: "node-1", host: nodeHost, after: phase(t, c, corev1.PodRunning), reads: 0},
		"host-of-no-node": {node: "node-1", reads: 1},
		"gone": {node: "node-1", host: nodeHost, after: gone(t, c), want: nothing,
			err: workload.ErrNotFound, reads: 1},
		"uid-gone": {node: "node-1", host: nodeHost, uid: uidOf, after: gone(t, c), want: nothing,
			err: workload.ErrNotFound, reads: 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := create(t, c, name, test.node)
			want := workload.Pod{
				Namespace: "default", Name: name, UID: string(p.UID), Node: test.node,
				Created: p.CreationTimestamp.Time,
				Started: p.CreationTimestamp.Time, Termination: lease.UsualTermination,
			}
			if test.after != nil {
				test.after(p)
			}
			if test.want != nil {
				test.want(p, &want)
			}
			controlplane.Until(t, "the cache is up to date", func() bool { return fresh(t, c, pods.Cached, p) })
			var uid string
			if test.uid != nil {
				uid = test.uid(p)
			}
			tap.Forget()
			got, err := pods.Find(t.Context(), "default", name, uid, test.host)
			if !errors.Is(err, test.err) || test.err == nil && err != nil {
				t.Fatalf("%v, want %v", err, test.err)
			}
			want.Version = got.Version // the watch may bring it later
			if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if n := tap.Count(live); n != test.reads {
				t.Errorf("%d reads, want %d", n, test.reads)
			}
			if n := tap.Count(intercept.Writes); n != 0 {
				t.Errorf("%d writes", n)
			}
		})
	}
}

func uidOf(p *corev1.Pod) string { return string(p.UID) }
func deleting(p *corev1.Pod, w *workload.Pod) {
	w.Deleting, w.EndsBy = true, p.DeletionTimestamp.Time
	w.DeletedAt = w.EndsBy.Add(-time.Duration(*p.DeletionGracePeriodSeconds) * time.Second)
}
func ended(_ *corev1.Pod, w *workload.Pod)   { w.Ended = true }
func nothing(_ *corev1.Pod, w *workload.Pod) { *w = workload.Pod{} }
func phase(t *testing.T, c client.Client, to corev1.PodPhase) func(*corev1.Pod) {
	t.Helper()
	return func(p *corev1.Pod) { status(t, c, p, func(s *corev1.PodStatus) { s.Phase = to }) }
}
func gone(t *testing.T, c client.Client) func(*corev1.Pod) {
	t.Helper()
	return func(p *corev1.Pod) { remove(t, c, p, client.GracePeriodSeconds(0)) }
}

// fresh says whether a cache shows a pod as the API server does.
func fresh(t *testing.T, c client.Client, cached client.Reader, p *corev1.Pod) bool {
	t.Helper()
	key := types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
	var there, here corev1.Pod
	if err := c.Get(t.Context(), key, &there); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	err := cached.Get(t.Context(), key, &here)
	return client.IgnoreNotFound(err) == nil && there.ResourceVersion == here.ResourceVersion
}

// A pod that was deleted and made again, on the same host, while the cache lags: the UID of the request
// finds the new one by a read; without it the cache is believed, and the caller mends that later.
func TestFindWhileTheCacheLags(t *testing.T) {
	pods, tap, gate := finder(t)
	c := cluster.AdminFor(t)
	old := create(t, c, "again", "node-1")
	controlplane.Until(t, "the cache is up to date", func() bool { return fresh(t, c, pods.Cached, old) })
	gate.Shut()
	remove(t, c, old, client.GracePeriodSeconds(0))
	anew := create(t, c, "again", "node-1")

	tap.Forget()
	got, err := pods.Find(t.Context(), "default", "again", string(anew.UID), nodeHost)
	if err != nil || got.UID != string(anew.UID) || tap.Count(live) != 1 {
		t.Errorf("by UID: %+v, %v with %d reads; want UID %s with 1", got, err, tap.Count(live), anew.UID)
	}
	tap.Forget()
	got, err = pods.Find(t.Context(), "default", "again", "", nodeHost)
	if err != nil || got.UID != string(old.UID) || tap.Count(live) != 0 {
		t.Errorf("without UID: %+v, %v with %d reads; want UID %s with none", got, err, tap.Count(live), old.UID)
	}
	tap.Forget()
	got, err = pods.FindLive(t.Context(), "default", "again", "")
	if err != nil || got.UID != string(anew.UID) || tap.Count(live) != 1 {
		t.Errorf("live: %+v, %v with %d reads; want UID %s with 1", got, err, tap.Count(live), anew.UID)
	}
	if got, err = pods.FindLive(t.Context(), "default", "again", string(old.UID)); !errors.Is(err,
		workload.ErrNotFound) ||
		got.UID != string(anew.UID) {
		t.Errorf("live by the old UID: %+v, %v; want the new pod with ErrNotFound", got, err)
	}
	gate.Open()
}

// A pod that the cache does not have yet is found by a read.
func TestFindBeforeTheCache(t *testing.T) {
	pods, tap, gate := finder(t)
	gate.Shut()
	p := create(t, cluster.AdminFor(t), "new", "node-1")
	tap.Forget()
	got, err := pods.Find(t.Context(), "default", "new", "", nodeHost)
	if err != nil || got.UID != string(p.UID) || tap.Count(live) != 1 {
		t.Errorf("%+v, %v with %d reads; want UID %s with 1", got, err, tap.Count(live), p.UID)
	}
	gate.Open()
}

// An API server that does not answer is an error of its own kind, not "no such pod".
func TestFindFails(t *testing.T) {
	pods, tap, _ := finder(t)
	tap.On(live, intercept.Answer(http.StatusForbidden, metav1.StatusReasonForbidden, 0))
	if got, err := pods.Find(t.Context(), "default", "any", "", nodeHost); err == nil ||
		errors.Is(err, workload.ErrNotFound) {
		t.Errorf("%+v, %v", got, err)
	}
}

// What the cache keeps of a pod is all that is read of it.
func TestTrim(t *testing.T) {
	at := metav1.NewTime(time.Now().Truncate(time.Second))
	before := metav1.NewTime(at.Add(-time.Hour))
	pod := func(change func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "n", Name: "p", UID: "u", ResourceVersion: "7", CreationTimestamp: before,
				Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"a": "b"},
				ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
			},
			Spec: corev1.PodSpec{NodeName: "node", Containers: []corev1.Container{{Name: "c"}}},
			Status: corev1.PodStatus{
				HostIPs: []corev1.HostIP{{IP: "192.0.2.1"}, {IP: "x"}, {IP: "2001:db8::1"}}, PodIP: "10.0.0.1",
				PodIPs:     []corev1.PodIP{{IP: "10.0.0.1"}, {IP: "x"}},
				Conditions: []corev1.PodCondition{{Type: corev1.PodReady, LastTransitionTime: before}},
				ContainerStatuses: []corev1.ContainerStatus{{
					Name:  "c",
					State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: at}},
				}, {Name: "d"}},
			},
		}
		change(p)
		return p
	}
	base := workload.Pod{
		Termination: lease.UsualTermination,
		Namespace:   "n", Name: "p", Version: 7, UID: "u", Node: "node", Created: before.Time, Started: before.Time,
		HostIPs: []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")},
		Addrs:   []netip.Addr{netip.MustParseAddr("10.0.0.1")}, IfNames: []string{lease.DefaultIfName},
	}
	for name, test := range map[string]struct {
		change func(*corev1.Pod)
		want   func(*workload.Pod)
	}{
		"running": {func(*corev1.Pod) {}, func(*workload.Pod) {}},
		"failed": {func(p *corev1.Pod) {
			p.Status.Phase, p.DeletionTimestamp, p.DeletionGracePeriodSeconds = corev1.PodFailed, &at, new(int64(30))
		},
			func(p *workload.Pod) {
				p.Ended, p.Deleting, p.DeletedAt, p.EndsBy, p.EndedAt = true, true, at.Add(-30*time.Second), at.Time,
					at.Time
			}},
		"takes an hour to end": {func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(3600)) },
			func(p *workload.Pod) { p.Termination = time.Hour }},
		"takes no time to end": {func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(0)) },
			func(p *workload.Pod) { p.Termination = 0 }},
		"deleted with a longer period": {func(p *corev1.Pod) {
			p.Spec.TerminationGracePeriodSeconds, p.DeletionTimestamp, p.DeletionGracePeriodSeconds = new(int64(30)),
				&at, new(int64(90))
		}, func(p *workload.Pod) {
			p.Deleting, p.DeletedAt, p.EndsBy, p.Termination = true, at.Add(-90*time.Second), at.Time, 90*time.Second
		}},
		"started by the kubelet": {func(p *corev1.Pod) { p.Status.StartTime, p.Spec.HostNetwork = &at, true },
			func(p *workload.Pod) { p.Started, p.HostNetwork = at.Time, true }},
		"several networks": {func(p *corev1.Pod) {
			p.Annotations[workload.NetworkStatus] = `[{"name": "a", "ips": ["10.0.0.1"], "default": true}, {"name": "b"}, {"name": "c", "interface": "net1", "ips": ["10.9.0.1", "2001:db8::9"]}]`
		}, func(p *workload.Pod) {
			p.Networks, p.Addrs = true, append(p.Addrs[:1:1], netip.MustParseAddr("10.9.0.1"),
				netip.MustParseAddr("2001:db8::9"))
			p.IfNames = []string{lease.DefaultIfName, "net1", "net1"}
		}},
		"a broken annotation": {func(p *corev1.Pod) { p.Annotations[workload.NetworkStatus] = "[" },
			func(*workload.Pod) {}},
		"an empty annotation": {func(p *corev1.Pod) { p.Annotations[workload.NetworkStatus] = "" },
			func(*workload.Pod) {}},
		"what its policy is from": {func(p *corev1.Pod) {
			p.GenerateName, p.Labels[workload.VMLabel] = "p-", "win"
			p.Annotations["k8s.v1.cni.galaxy.io/release-policy"] = "never"
			p.OwnerReferences = []metav1.OwnerReference{
				{APIVersion: "example.org/v1", Kind: "First", Name: "f", UID: "1"},
				{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs", UID: "2", Controller: new(true)},
			}
		}, func(p *workload.Pod) {
			p.Generated, p.VM = true, "win"
			p.Annotations = map[string]string{"k8s.v1.cni.galaxy.io/release-policy": "never"}
			p.Controller = workload.Owner{Group: "apps", Kind: "ReplicaSet", Name: "rs", UID: "2"}
		}},
		"no networks yet": {func(p *corev1.Pod) { p.Annotations[workload.NetworkStatus] = "[]" },
			func(p *workload.Pod) { p.Networks = true }},
	} {
		t.Run(name, func(t *testing.T) {
			p, want := pod(test.change), base
			test.want(&want)
			trimmed := workload.Trim(p)
			compare := cmp.Comparer(func(a, b netip.Addr) bool { return a == b })
			for what, got := range map[string]workload.Pod{
				"whole": workload.FromObject(p), "trimmed": workload.FromObject(trimmed),
			} {
				if diff := cmp.Diff(want, got, compare); diff != "" {
					t.Errorf("%s: -want +got:\n%s", what, diff)
				}
			}
			if trimmed.ResourceVersion != "7" || trimmed.Labels["a"] != "" || len(trimmed.OwnerReferences) > 1 ||
				len(trimmed.Spec.Containers)+len(trimmed.ManagedFields)+len(trimmed.Status.ContainerStatuses) != 0 {
				t.Errorf("trimmed to %+v", trimmed)
			}
		})
	}
}
