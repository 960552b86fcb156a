package workload

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// watched is a resolver that has been told of some Deployments with their ReplicaSets.
func watched(tb testing.TB, deployments, replicaSetsOfEach int) *Resolver {
	tb.Helper()
	o := &Owners{kinds: map[schema.GroupKind]*kind{}}
	for _, i := range known() {
		o.kinds[schema.GroupKind{Group: i.group, Kind: i.kind}] = &kind{kindInfo: i, namespaced: i.kind != namespaceKind}
	}
	fill := func(group, kind string, n int, document func(i int) string) {
		all := make([]any, n)
		for i := range all {
			m := &metav1.PartialObjectMetadata{}
			if err := json.Unmarshal([]byte(document(i)), m); err != nil {
				tb.Fatal(err)
			}
			all[i] = m
		}
		if err := o.kinds[schema.GroupKind{Group: group, Kind: kind}].objects.Replace(all, ""); err != nil {
			tb.Fatal(err)
		}
	}
	fill("", namespaceKind, 1, func(int) string { return `{"metadata":{"name":"shop","uid":"n"}}` })
	fill(appsGroup, "Deployment", deployments, func(i int) string {
		return fmt.Sprintf(
			`{"metadata":{"namespace":"shop","name":"web-%d","uid":%q,"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"%0900d"}}}`, i, uid("d", i), i)
	})
	fill(appsGroup, "ReplicaSet", deployments*replicaSetsOfEach, func(i int) string {
		return fmt.Sprintf(`{"metadata":{"namespace":"shop","name":"web-%d-5d4f8c7b%d","uid":%q,"ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"web-%d","uid":%q,"controller":true}]}}`,
			i%deployments, i/deployments, uid("r", i), i%deployments, uid("d", i%deployments))
	})
	return &Resolver{
		Owners: o, Namespace: "bcsnet-system", ClaimsFor: func(context.Context, Workload) ([]string, error) { return nil, nil },
	}
}

func uid(kind string, i int) string { return fmt.Sprintf("%s0000000-0000-4000-8000-%012d", kind, i) }

func podOf(i, replicaSet int) *corev1.Pod {
	p := &corev1.Pod{}
	document := fmt.Sprintf(`{"metadata":{"namespace":"shop","name":"web-%d-5d4f8c7b0-%05d","generateName":"web-%d-5d4f8c7b0-","uid":%q,"resourceVersion":"%d","creationTimestamp":"2026-01-01T00:00:00Z",
		"labels":{"app":"web-%d","pod-template-hash":"5d4f8c7b0"},"annotations":{"k8s.v1.cni.galaxy.io/release-policy":"immutable","example.org/config":"%0500d"},
		"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-%d-5d4f8c7b0","uid":%q,"controller":true,"blockOwnerDeletion":true}]},
		"spec":{"nodeName":"node-%d","containers":[{"name":"c","image":"registry.example.org/web:1","env":[{"name":"A","value":"%0200d"}]}]},
		"status":{"phase":"Running","hostIPs":[{"ip":"192.0.2.11"}],"podIPs":[{"ip":"10.0.%d.%d"}],"startTime":"2026-01-01T00:00:01Z",
		"conditions":[{"type":"Ready","status":"True"}],"containerStatuses":[{"name":"c","image":"registry.example.org/web:1"}]}}`,
		replicaSet, i, replicaSet, uid("p", i), i, replicaSet, i, replicaSet, uid("r", replicaSet), i%500, i, i/256%256,
		i%256)
	if err := json.Unmarshal([]byte(document), p); err != nil {
		panic(err)
	}
	return p
}

// 20,000 pods and 5,000 Deployments with three ReplicaSets each are kept in 100 MB.
func TestMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all")
	}
	const pods, deployments = 20_000, 5_000
	heap := func() uint64 {
		runtime.GC()
		runtime.GC() // what the first one made unreachable
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	r := watched(t, deployments, 3)
	workloads := heap() - before
	store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for i := range pods {
		if err := store.Add(Trim(podOf(i, i%deployments))); err != nil {
			t.Fatal(err)
		}
	}
	all := heap() - before
	t.Logf("workloads %d KB, pods %d KB", workloads>>10, (all-workloads)>>10)
	if all > 100<<20 {
		t.Errorf("%d MB", all>>20)
	}
	for _, o := range store.List()[:100] {
		if p, err := r.Resolve(context.Background(), FromObject(o.(*corev1.Pod))); err != nil ||
			p.Release != ReleaseImmutable || p.Workload.Kind != "Deployment" {
			t.Fatalf("%+v, %v", p, err)
		}
	}
	runtime.KeepAlive(store)
}

// A pod without annotations costs some look-ups and no memory.
func TestResolveAllocatesNothing(t *testing.T) {
	r, pod := watched(t, 1, 1), plainPod()
	if n := testing.AllocsPerRun(1000, func() {
		if _, err := r.Resolve(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func plainPod() Pod {
	return Pod{
		Namespace: "shop", Name: "web-0-5d4f8c7b0-x", UID: "p",
		Controller: Owner{appsGroup, "ReplicaSet", "web-0-5d4f8c7b0", uid("r", 0)},
	}
}

func BenchmarkResolve(b *testing.B) {
	r := watched(b, 100, 1)
	plain, sticky := plainPod(), plainPod()
	sticky.Annotations = map[string]string{galaxy: "immutable"}
	for name, pod := range map[string]Pod{"plain": plain, "sticky": sticky} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.Resolve(b.Context(), pod); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	o := podOf(0, 0)
	b.Run("trim", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if Trim(o).UID == types.UID("") {
				b.Fatal()
			}
		}
	})
}
