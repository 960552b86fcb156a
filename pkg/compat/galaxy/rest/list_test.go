package rest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/gone"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// cached are objects as a watch cache has them.
type cached struct {
	client.Reader
	pods   map[types.NamespacedName]*corev1.Pod
	claims map[types.NamespacedName]*v1.BCSNetIPClaim
}

func (c cached) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	switch o := o.(type) {
	case *corev1.Pod:
		if p := c.pods[key]; p != nil {
			*o = *p
			return nil
		}
	case *v1.BCSNetIPClaim:
		if p := c.claims[key]; p != nil {
			*o = *p
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

// unresolved knows no policy.
type unresolved struct{}

func (unresolved) Resolve(context.Context, workload.Pod) (workload.Policy, error) {
	return workload.Policy{}, workload.ErrNotFound
}

func newService(t testing.TB, c cached) *Service {
	t.Helper()
	owners, err := workload.NewOwners(&rest.Config{Host: "127.0.0.1:1"}, nil, time.Now, nil)
	if err != nil {
		t.Fatal(err)
	}
	index := index.New()
	return &Service{
		Index: index, Cached: c, Owners: owners, Policies: unresolved{}, Namespace: "bcsnet-system", Gone: goneFor(c, index),
	}
}

// goneFor decides by the pods of a test, whose hosts are in touch, and as one who has looked before.
func goneFor(c cached, index *index.Index) func(context.Context, lease.Lease, bool) (gone.Decision, error) {
	return func(ctx context.Context, l lease.Lease, _ bool) (gone.Decision, error) {
		now := time.Now()
		e := gone.Evidence{
			Lease: l, Live: true, Others: gone.Indexed(index.Leases), Host: gone.Host{Ready: true, Renewal: gone.Since},
			Now: now, Since: now.Add(-time.Minute), For: time.Minute,
		}
		var o corev1.Pod
		if err := c.Get(ctx, types.NamespacedName{Namespace: l.Namespace, Name: l.PodName}, &o); err == nil {
			pod := workload.FromObject(&o)
			e.Pod = &pod
		} else if !apierrors.IsNotFound(err) {
			return gone.Decision{}, err
		}
		return gone.Default().Decide(e), nil
	}
}

func claimOf(kind, name string, p v1.ReleasePolicy) *v1.BCSNetIPClaim {
	o := &v1.BCSNetIPClaim{Spec: v1.BCSNetIPClaimSpec{
		ReleasePolicy: p, Owner: &v1.ClaimOwner{APIVersion: "apps/v1", Kind: kind, Name: name},
	}}
	o.Namespace, o.Name = "shop", name
	return o
}

func TestList(t *testing.T) {
	at := time.Date(2019, 10, 10, 8, 37, 13, 498446133, time.UTC)
	running := &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	running.Namespace, running.Name, running.UID = "shop", "web-abc-x", "u1"
	running.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-abc", UID: "r", Controller: new(true),
	}}
	failed := &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed}}
	failed.Namespace, failed.Name, failed.UID = "shop", "db-0", "u2"
	waiting := &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodPending}}
	waiting.Namespace, waiting.Name, waiting.UID = "shop", "db-1", "u3"
	moved := running.DeepCopy()
	moved.Name, moved.UID = "db-2", "u4"
	pool := &v1.BCSNetIPClaim{Spec: v1.BCSNetIPClaimSpec{SharedName: "蓝", ReleasePolicy: v1.ReleaseNever}}
	c := cached{pods: map[types.NamespacedName]*corev1.Pod{}, claims: map[types.NamespacedName]*v1.BCSNetIPClaim{
		{Namespace: "shop", Name: "web"}: claimOf("Deployment", "web", v1.ReleaseTimed), {Namespace: "shop", Name: "db"}: claimOf("StatefulSet", "db", v1.ReleaseNever),
		{Namespace: "bcsnet-system", Name: "pool-x"}: pool,
	}}
	for _, p := range []*corev1.Pod{running, failed, waiting, moved} {
		c.pods[client.ObjectKeyFromObject(p)] = p
	}
	s := newService(t, c)
	leased := func(last byte, state lease.State, claim, key, pod, uid string) lease.Lease {
		l := lease.Lease{
			Addr: netip.AddrFrom4([4]byte{10, 0, 70, last}), Version: uint64(last), State: state,
			Params: lease.Params{Pool: "p"}, Updated: at,
			Holder:    lease.Holder{PodName: pod, PodUID: uid, IfName: "eth0"},
			Retention: lease.Retention{Claim: claim, PodPrimaryKey: key, Fixed: claim != ""},
		}
		if pod != "" {
			l.Namespace = "shop"
		}
		return l
	}
	replaced := leased(14, lease.Active, "", "", "web-abc-x", "u0") // whose request named the UID
	replaced.UIDNamed = true
	vm := leased(9, lease.Active, "", "", "", "")
	vm.Owner = "vm"
	for _, l := range []lease.Lease{
		leased(1, lease.Active, "shop/web", "", "web-abc-x", "u1"),
		leased(2, lease.Active, "", "", "web-abc-x", "u1"),                  // without a claim
		leased(3, lease.Reserved, "shop/db", "db-0", "db-0", ""),            // its pod failed
		leased(4, lease.Reserved, "shop/db", "db-1", "db-1", ""),            // its pod is there again and has none yet
		leased(5, lease.Reserved, "shop/db", "db-2", "db-2", ""),            // its pod has another
		leased(6, lease.Active, "shop/db", "db-2", "db-2", "u4"),            // which is this
		leased(7, lease.Reserved, "bcsnet-system/pool-x", "", "", ""),       // taken beforehand
		leased(8, lease.Reserved, "bcsnet-system/pool-gone", "", "old", ""), // whose claim is gone
		vm,
		leased(10, lease.Reserved, "", "", "", ""), // set aside
		leased(11, lease.Available, "", "", "", ""),
		leased(12, lease.Active, "", "", "lost", "u9"),                                 // whose pod is gone
		leased(13, lease.Active, "", "", "static", "0123456789abcdef0123456789abcdef"), // whose mirror is gone; it may run
		replaced,
		leased(15, lease.Active, "", "", "web-abc-x", "u0"), // the UID may be an older one of the pod that has it
	} {
		s.Index.Feed.Wrote(l)
	}
	out, err := s.ListIPs(t.Context(), "sort=ip-numeric&size=20")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range out.Content {
		if f.UpdateTime != "2019-10-10T08:37:13.498446133Z" {
			t.Errorf("%s changed at %s", f.IP, f.UpdateTime)
		}
		f.UpdateTime = ""
		text, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(text))
	}
	want := []string{
		`{"ip":"10.0.70.1","namespace":"shop","appName":"web","podName":"web-abc-x","policy":1,"isDeployment":true,"appType":"deployment","status":"Running","releasable":false}`,
		`{"ip":"10.0.70.2","namespace":"shop","appName":"web-abc","podName":"web-abc-x","policy":0,"appType":"replicaset","status":"Running","releasable":false}`,
		`{"ip":"10.0.70.3","namespace":"shop","appName":"db","podName":"db-0","policy":2,"appType":"statefulset","status":"Failed","releasable":true}`,
		`{"ip":"10.0.70.4","namespace":"shop","appName":"db","podName":"db-1","policy":2,"appType":"statefulset","status":"Pending","releasable":false}`,
		`{"ip":"10.0.70.5","namespace":"shop","appName":"db","podName":"db-2","policy":2,"appType":"statefulset","status":"Running","releasable":true}`,
		`{"ip":"10.0.70.6","namespace":"shop","appName":"db","podName":"db-2","policy":2,"appType":"statefulset","status":"Running","releasable":false}`,
		`{"ip":"10.0.70.7","poolName":"蓝","policy":2,"releasable":true}`,
		`{"ip":"10.0.70.8","namespace":"shop","podName":"old","poolName":"gone","policy":2,"status":"Deleted","releasable":true}`,
		`{"ip":"10.0.70.9","policy":0,"releasable":false}`,
		`{"ip":"10.0.70.10","policy":2,"releasable":false}`,
		`{"ip":"10.0.70.12","namespace":"shop","podName":"lost","policy":0,"status":"Deleted","releasable":true}`,
		`{"ip":"10.0.70.13","namespace":"shop","podName":"static","policy":0,"status":"Deleted","releasable":false}`,
		`{"ip":"10.0.70.14","namespace":"shop","podName":"web-abc-x","policy":0,"status":"Deleted","releasable":true}`,
		`{"ip":"10.0.70.15","namespace":"shop","podName":"web-abc-x","policy":0,"status":"Running","releasable":false}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for query, n := range map[string]int{
		"appType=statefulset": 4, "isDeployment=true": 1, "keyword=vm": 1, "keyword=shop/db": 4, "poolName=%E8%93%9D": 1, "namespace=shop": 11,
	} {
		if out, err := s.ListIPs(t.Context(), query); err != nil || out.TotalElements != n {
			t.Errorf("%s: %d, %v; want %d", query, out.TotalElements, err, n)
		}
	}
}

// TestPagesOfAList: the pages of a list follow one another as all rows stand when they are sorted at once.
func TestPagesOfAList(t *testing.T) {
	c := cached{claims: map[types.NamespacedName]*v1.BCSNetIPClaim{{Namespace: "shop", Name: "db"}: claimOf("StatefulSet",
		"db", v1.ReleaseNever)}}
	s := newService(t, c)
	for i := range 150 {
		l := lease.Lease{
			Addr: netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}), Version: uint64(i + 1), State: lease.State(i % 3),
			Params: lease.Params{Pool: "p"},
			Holder: lease.Holder{Namespace: fmt.Sprint("ns-", i%7), PodName: fmt.Sprint("pod-", i*31%60), IfName: "eth0"},
		}
		if i%2 == 0 {
			l.Claim, l.Fixed = "shop/db", true
		}
		s.Index.Feed.Wrote(l)
	}
	for _, filter := range []string{"", "&namespace=ns-3", "&keyword=pod-1"} {
		for _, sort := range []string{
			"ip", "ip+desc", "ip-numeric", "ip-numeric+desc", "namespace", "podname+desc", "policy", "policy+desc",
		} {
			whole, err := s.ListIPs(t.Context(), "size=9999&sort="+sort+filter)
			if err != nil {
				t.Fatal(err)
			}
			rows := make([]*key, len(whole.Content))
			for i, f := range whole.Content {
				rows[i] = new((&row{FloatingIP: f, addr: netip.MustParseAddr(f.IP)}).key(index.Entry{}))
			}
			o := order{strings.TrimSuffix(sort, "+desc"), strings.HasSuffix(sort, "+desc")}
			if !slices.IsSortedFunc(rows, o.compare) || len(rows) != whole.TotalElements || len(rows) == 0 {
				t.Fatalf("%s%s: %d of %d are not in order", sort, filter, len(rows), whole.TotalElements)
			}
			for _, size := range []int{7, 40} {
				var got []FloatingIP
				for page := 0; ; page++ {
					out, err := s.ListIPs(t.Context(), fmt.Sprintf("size=%d&page=%d&sort=%s%s", size, page, sort, filter))
					if err != nil || out.TotalElements != whole.TotalElements {
						t.Fatalf("%d of %d, %v", out.TotalElements, whole.TotalElements, err)
					}
					if got = append(got, out.Content...); out.Last {
						break
					}
				}
				if diff := cmp.Diff(whole.Content, got); diff != "" {
					t.Fatalf("%s%s by %d (-want +got):\n%s", sort, filter, size, diff)
				}
			}
		}
	}
}

// TestMemoryOfAList: of the addresses that are not on the page nothing is kept. What is made on the way to look at each
// of them is a third of the rows of all.
func TestMemoryOfAList(t *testing.T) {
	s := newService(t, cached{})
	const n = 16384
	const most = n * 400
	for i := range n {
		s.Index.Feed.Wrote(lease.Lease{
			Addr: netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}), Version: uint64(i + 1), State: lease.Active,
			Params: lease.Params{Pool: "p"},
			Holder: lease.Holder{
				Namespace: "shop", PodName: fmt.Sprint("pod-", i), PodUID: fmt.Sprintf("00000000-0000-4000-8000-%012x", i),
				ContainerID: fmt.Sprintf("%064x", i),
			},
		})
	}
	took := uint64(most + 1)
	var before, after runtime.MemStats
	for try := 0; try < 5 && took > most; try++ { // others may allocate meanwhile
		runtime.ReadMemStats(&before)
		out, err := s.ListIPs(t.Context(), "")
		runtime.ReadMemStats(&after)
		if took = after.TotalAlloc - before.TotalAlloc; err != nil || out.TotalElements != n ||
			len(out.Content) != DefaultSize {
			t.Fatalf("%d of %d, %v", len(out.Content), out.TotalElements, err)
		}
	}
	if took > most {
		t.Errorf("a page of %d takes %d bytes", DefaultSize, took)
	}
}

// BenchmarkList is the largest page of a full pool of 65,536, by what costs least and most.
func BenchmarkList(b *testing.B) {
	c := cached{pods: map[types.NamespacedName]*corev1.Pod{}, claims: map[types.NamespacedName]*v1.BCSNetIPClaim{}}
	s := newService(b, c)
	for i := range 65536 {
		app, name := fmt.Sprintf("app-%d", i/13), fmt.Sprintf("app-%d-%d", i/13, i%13)
		l := lease.Lease{
			Addr: netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}), Version: uint64(i + 1), State: lease.Active,
			Params: lease.Params{Pool: "p"}, Updated: time.Now(),
			Holder: lease.Holder{
				Namespace: "shop", PodName: name, PodUID: fmt.Sprintf("00000000-0000-4000-8000-%012x", i),
				ContainerID: fmt.Sprintf("%064x", i), IfName: "eth0",
			},
		}
		if i%2 == 0 {
			l.Retention = lease.Retention{Claim: "shop/" + app, PodPrimaryKey: name, Fixed: true}
			c.claims[types.NamespacedName{Namespace: "shop", Name: app}] = claimOf("StatefulSet", app, v1.ReleaseNever)
		}
		p := &corev1.Pod{}
		p.Namespace, p.Name, p.UID, p.Status.Phase = "shop", name, types.UID(l.PodUID), corev1.PodRunning
		p.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "apps/v1", Kind: "StatefulSet", Name: app, UID: "u", Controller: new(true),
		}}
		c.pods[client.ObjectKeyFromObject(p)] = p
		s.Index.Feed.Wrote(l)
	}
	for _, query := range []string{"", "size=9999", "keyword=app-77&sort=podname&size=9999"} {
		b.Run(query, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if out, err := s.ListIPs(b.Context(), query); err != nil || out.TotalElements == 0 {
					b.Fatal(err)
				}
			}
		})
	}
}
