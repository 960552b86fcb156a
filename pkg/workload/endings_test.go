package workload_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bcsnet/bcsnet/pkg/workload"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// What is ending is known from the events of a watch, and a reader without them lists the same pods.
func TestEnding(t *testing.T) {
	pods, _, _ := finder(t)
	c := cluster.AdminFor(t)
	told := workload.Pods{Endings: workload.NewEndings(time.Now)}
	stays, ends := create(t, c, "ending-not", "node-1"), create(t, c, "ending", "node-1")
	remove(t, c, ends, client.GracePeriodSeconds(60))
	for _, p := range []*corev1.Pod{stays, ends} {
		told.Endings.OnAdd(p, false)
		controlplane.Until(t, "the cache is up to date", func() bool { return fresh(t, c, pods.Cached, p) })
	}
	for _, finder := range []*workload.Pods{pods, &told} {
		all, err := finder.Ending(t.Context(), "default", 0, every)
		if err != nil {
			t.Fatal(err)
		}
		// other tests have some
		all = slices.DeleteFunc(all, func(p workload.Pod) bool { return !strings.HasPrefix(p.Name, "ending") })
		if len(all) != 1 || all[0].UID != string(ends.UID) || !all[0].EndsBy.Equal(ends.DeletionTimestamp.Time) {
			t.Errorf("%+v, want %s", all, ends.UID)
		}
		if all, err := finder.Ending(t.Context(), "elsewhere", 0, every); err != nil || len(all) > 0 {
			t.Errorf("of another namespace: %v, %v", all, err)
		}
	}
}

// A pod that has gone is known as one that should have ended then, and forgotten after a while.
func TestEndingsAreForgotten(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	told := workload.Pods{Endings: workload.NewEndings(func() time.Time { return now })}
	known := func(want ...string) {
		t.Helper()
		all, err := told.Ending(t.Context(), "a", 0, every)
		var uids []string
		for _, p := range all {
			uids = append(uids, p.UID)
		}
		if slices.Sort(uids); err != nil || !slices.Equal(uids, want) {
			t.Errorf("%q, %v; want %q", uids, err, want)
		}
	}
	pod := func(uid string, grace time.Duration) *corev1.Pod {
		at := metav1.NewTime(now.Add(grace))
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "a", Name: uid, UID: types.UID(uid), DeletionTimestamp: &at,
		}}
	}
	long, short := pod("long", time.Hour), pod("short", time.Hour)
	told.Endings.OnAdd(long, true)
	told.Endings.OnUpdate(nil, short)
	known("long", "short")
	told.Endings.OnDelete(toolscache.DeletedFinalStateUnknown{Obj: short})
	if all, _ := told.Ending(t.Context(), "a", 0, every); !slices.ContainsFunc(all,
		func(p workload.Pod) bool { return p.UID == "short" && p.EndsBy.Equal(now) }) {
		t.Errorf("%+v; want that one was seen to be gone at %s", all, now)
	}
	static := pod("mirror", 0)
	static.Annotations = map[string]string{
		"kubernetes.io/config.mirror": "h", "kubernetes.io/config.hash": "0123456789abcdef0123456789abcdef",
	}
	told.Endings.OnDelete(static)
	known("long", "short")
	now = now.Add(time.Minute)
	told.Endings.OnDelete(pod("another", 0))
	known("another", "long")
	now = now.Add(2 * time.Hour)
	told.Endings.OnDelete(pod("last", 0))
	known("last")
}

// A request whose pod the watch has not brought yet waits for that: a deletion that came before may not be known
// either.
func TestEndingsAsOfAPod(t *testing.T) {
	told := workload.Pods{Endings: workload.NewEndings(time.Now)}
	at := metav1.NewTime(time.Now().Add(time.Hour))
	earlier := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "a", Name: "earlier", UID: "1", ResourceVersion: "9", DeletionTimestamp: &at,
	}}
	later := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "later", UID: "2", ResourceVersion: "10"}}
	found := make(chan []workload.Pod)
	go func() {
		all, _ := told.Ending(t.Context(), "a", workload.FromObject(later).Version, every)
		found <- all
	}()
	told.Endings.OnUpdate(nil, earlier)
	told.Endings.OnAdd(later, false)
	if all := <-found; len(all) != 1 || all[0].UID != "1" {
		t.Errorf("%+v, want the earlier pod", all)
	}
	// the watch does not come so far
	if all, err := told.Ending(t.Context(), "a", 11, every); err != nil || len(all) != 1 {
		t.Errorf("%+v, %v", all, err)
	}
}

func every(string) bool { return true }

// A request of one app copies none of the pods of others that are ending, however many there are.
func TestEndingsOfOthersCostNothing(t *testing.T) {
	told := workload.Pods{Endings: workload.NewEndings(time.Now)}
	at := metav1.NewTime(time.Now().Add(time.Hour))
	for i := range 1000 {
		uid := fmt.Sprintf("uid-%d", i)
		told.Endings.OnAdd(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "a", Name: uid, UID: types.UID(uid), DeletionTimestamp: &at,
		}}, false)
	}
	mine := func(uid string) bool { return uid == "uid-7" }
	if all, err := told.Ending(t.Context(), "a", 0, mine); err != nil || len(all) != 1 || all[0].UID != "uid-7" {
		t.Fatalf("%+v, %v", all, err)
	}
	if n := testing.AllocsPerRun(100, func() { _, _ = told.Ending(t.Context(), "a", 0, mine) }); n > 8 {
		t.Errorf("%.0f allocations for one pod of 1,000", n)
	}
}
