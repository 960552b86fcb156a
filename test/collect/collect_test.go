package collect_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/controller"
	"github.com/bcsnet/bcsnet/pkg/controller/gc"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/intercept"
)

const staticUID, otherStaticUID = "0123456789abcdef0123456789abcdef", "00000000000000000000000000000000"

// TestCollects: what has gone comes back, what lives stays, and what nobody can know waits.
func TestCollects(t *testing.T) {
	cfg := account(t)
	node(t, "collect-ready", "10.0.0.11", corev1.ConditionTrue, time.Hour)
	returns := silentNode(t, "collect-returns", "10.0.0.12", corev1.ConditionUnknown, 0)
	node(t, "collect-away", "10.0.0.13", corev1.ConditionFalse, 2*hostGrace)
	running := func(address string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.Phase, p.Status.PodIPs = corev1.PodRunning, []corev1.PodIP{{IP: address}}
			p.Status.PodIP = address
		}
	}
	uid := func(p *corev1.Pod) string { return string(p.UID) }

	// Those that stay.
	alive := pod(t, "alive", "collect-ready", running("10.1.0.20"))
	hold(t, "10.1.0.20", "10.0.0.11", "alive", uid(alive), nil)
	pending := pod(t, "pending", "collect-ready", nil)
	hold(t, "10.1.0.21", "10.0.0.11", "pending", uid(pending), nil)
	ending := pod(t, "ending", "collect-ready", func(p *corev1.Pod) { p.Finalizers = []string{"example.com/wait"} })
	hold(t, "10.1.0.22", "10.0.0.11", "ending", uid(ending), nil)
	remove(t, ending)
	t.Cleanup(func() {
		ctx := context.Background()
		_ = admin.Get(ctx, client.ObjectKeyFromObject(ending), ending)
		ending.Finalizers = nil
		_ = admin.Update(ctx, ending)
	})
	hold(t, "10.1.0.23", "10.0.0.11", "", "", func(ip *v1.BCSNetIP) {
		ip.Status.PodNamespace, ip.Status.Owner, ip.Status.ContainerID = "", "vm-1", ""
	})
	hold(t, "10.1.0.24", "10.0.0.11", "gone", otherStaticUID, nil)
	mirror := pod(t, "mirror", "collect-ready", func(p *corev1.Pod) {
		p.Annotations = map[string]string{"kubernetes.io/config.mirror": staticUID, "kubernetes.io/config.hash": staticUID}
	})
	hold(t, "10.1.0.25", "10.0.0.11", mirror.Name, staticUID, nil)
	hold(t, "10.1.0.26", "10.0.0.12", "gone-there", "u-there", nil)
	hold(t, "10.1.0.27", "10.0.0.99", "gone-elsewhere", "u-elsewhere", nil)
	unsure := pod(t, "unsure", "collect-ready", nil)
	hold(t, "10.1.0.28", "10.0.0.11", unsure.Name, "u-unsure", func(ip *v1.BCSNetIP) {
		ip.Status.UpdateTime = time.Now().UTC().Format(time.RFC3339Nano)
	})

	// Those that come back.
	gone := pod(t, "gone", "collect-ready", nil)
	hold(t, "10.1.0.30", "10.0.0.11", "gone", uid(gone), nil)
	ended := pod(t, "ended", "collect-ready", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })
	hold(t, "10.1.0.31", "10.0.0.11", "ended", uid(ended), nil)
	replaced := pod(t, "replaced", "collect-ready", nil)
	hold(t, "10.1.0.32", "10.0.0.11", replaced.Name, "u-old", nil)
	hold(t, "10.1.0.33", "10.0.0.13", "gone-long-ago", "u-long-ago", nil)

	_, metrics := start(t, cfg, nil)
	remove(t, gone)
	wantCollected(t, "10.1.0.30", "leak-pod-gone")
	wantCollected(t, "10.1.0.31", "leak-pod-ended")
	wantCollected(t, "10.1.0.32", "leak-pod-replaced")
	wantCollected(t, "10.1.0.33", "leak-pod-gone")
	for address, name := range map[string]string{
		"10.1.0.20": "alive", "10.1.0.21": "pending", "10.1.0.22": "ending", "10.1.0.23": "", "10.1.0.24": "gone", "10.1.0.25": "mirror",
		"10.1.0.26": "gone-there", "10.1.0.27": "gone-elsewhere", "10.1.0.28": "unsure",
	} {
		wantHeld(t, address, name)
	}
	if n := metric(t, metrics, `bcsnet_collections_total{check="leak-pod-gone"}`); n != "2" {
		t.Errorf("%s collections counted, want 2", n)
	}
	wantEvent(t, "took 10.1.0.32 back: pod collect/replaced is another one now than the holder")
	setReady(t, returns, corev1.ConditionTrue, 0)
	renewing(t, nodeLease(t, returns.Name))
	wantCollected(t, "10.1.0.26", "leak-pod-gone")
}

func wantEvent(t *testing.T, note string) {
	t.Helper()
	controlplane.EventuallyWithin(t, patience, func() error {
		var all eventsv1.EventList
		if err := admin.List(t.Context(), &all); err != nil {
			return err
		}
		for _, e := range all.Items {
			if e.Note == note && e.Reason == v1.ReasonAddressCollected && e.Regarding.Name == pool {
				return nil
			}
		}
		return fmt.Errorf("there is no event that says %q", note)
	})
}

// TestContainersThatTakeLong: a pod that was deleted by force runs for as long as its spec says, whether its lease
// tells so or is of a release that does not write it down.
func TestContainersThatTakeLong(t *testing.T) {
	cfg := account(t)
	node(t, "long", "10.0.0.11", corev1.ConditionTrue, time.Hour)
	takes := func(seconds int64) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = &seconds }
	}
	seen, short := pod(t, "long-seen", "long", takes(3600)), pod(t, "short", "long", takes(30))
	hold(t, "10.1.0.35", "10.0.0.11", "long-told", "u-1",
		func(ip *v1.BCSNetIP) { ip.Status.TerminationGracePeriodSeconds = 3600 })
	hold(t, "10.1.0.36", "10.0.0.11", seen.Name, string(seen.UID), nil)
	hold(t, "10.1.0.37", "10.0.0.11", short.Name, string(short.UID), nil)
	start(t, cfg, nil)
	hold(t, "10.1.0.38", "10.0.0.11", "never-was", "u-2", nil)
	wantCollected(t, "10.1.0.38", "leak-pod-gone") // by now the pods have been seen
	remove(t, seen)
	remove(t, short)
	wantCollected(t, "10.1.0.37", "leak-pod-gone")
	wantHeld(t, "10.1.0.35", "long-told")
	wantHeld(t, "10.1.0.36", seen.Name)
}

// TestOff: nothing is taken back, and galaxy's API can release what the leader has seen to be gone.
func TestOff(t *testing.T) {
	cfg := account(t)
	node(t, "off", "10.0.0.11", corev1.ConditionTrue, time.Hour)
	hold(t, "10.1.0.45", "10.0.0.11", "off", "u-1", nil)
	_, metrics := start(t, cfg, func(o *controller.Options) { o.GarbageCollection = gc.Off })
	body := `{"ips":[{"ip":"10.1.0.45","namespace":"` + namespace + `","podName":"off"}]}`
	controlplane.EventuallyWithin(t, patience, func() error {
		wantHeld(t, "10.1.0.45", "off")
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, strings.TrimSuffix(metrics, "/metrics")+"/v1/ip",
			strings.NewReader(body))
		if err != nil {
			return err
		}
		r.Header.Set("Content-Type", "application/json")
		r.Close = true
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("it is not released: %s", resp.Status)
		}
		return nil
	})
	if ip := stored(t, "10.1.0.45"); ip.Status.Status != v1.IPAvailable {
		t.Errorf("%s is %s", ip.Name, ip.Status.Status)
	}
}

// TestDryRun: nothing is taken back, and the log says what would be.
func TestDryRun(t *testing.T) {
	cfg := account(t)
	node(t, "dry", "10.0.0.11", corev1.ConditionTrue, time.Hour)
	hold(t, "10.1.0.40", "10.0.0.11", "dry", "u-1", nil)
	log, metrics := start(t, cfg, func(o *controller.Options) { o.GarbageCollection = gc.DryRun })
	controlplane.EventuallyWithin(t, patience, func() error {
		if n := strings.Count(log.String(), "would take an address back"); n != 1 {
			return fmt.Errorf("the log tells %d times of it:\n%s", n, log)
		}
		return nil
	})
	// Another one is reported by a later look, which would have taken the first back.
	hold(t, "10.1.0.41", "10.0.0.11", "dry-later", "u-2", nil)
	controlplane.EventuallyWithin(t, patience, func() error {
		if n := strings.Count(log.String(), "would take an address back"); n != 2 {
			return fmt.Errorf("the log tells %d times of it:\n%s", n, log)
		}
		return nil
	})
	wantHeld(t, "10.1.0.40", "dry")
	wantHeld(t, "10.1.0.41", "dry-later")
	if n := metric(t, metrics, "bcsnet_collections_due"); n != "2" {
		t.Errorf("%q are due, want 2", n)
	}
}

// TestLookAgain: a cache that is minutes behind, and an API server that does not let the pod be read, take nothing
// from a pod that lives.
func TestLookAgain(t *testing.T) {
	cfg := account(t)
	node(t, "stale", "10.0.0.11", corev1.ConditionTrue, time.Hour)
	var frozen atomic.Bool
	reads := make(chan string, 1024)
	var api *intercept.API
	api = intercept.NewAPI(t, cfg, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/pods" && r.URL.Query().Get("watch") != "" {
			if r.URL.Query().Has("sendInitialEvents") { // client-go lists instead
				http.Error(w, "no such thing", http.StatusBadRequest)
				return
			}
			frozen.Store(true)
			<-r.Context().Done() // a watch that never says anything
			return
		}
		if name, ok := strings.CutPrefix(r.URL.Path, "/api/v1/namespaces/"+namespace+"/pods/"); ok {
			select {
			case reads <- name:
			default:
			}
		}
		api.Forward.ServeHTTP(w, r)
	}))
	start(t, api.Config(), nil)
	controlplane.EventuallyWithin(t, patience, func() error {
		if !frozen.Load() {
			return errors.New("the pods are not watched")
		}
		return nil
	})
	unseen := pod(t, "unseen", "stale", nil)
	hold(t, "10.1.0.50", "10.0.0.11", unseen.Name, string(unseen.UID), nil)
	hold(t, "10.1.0.51", "10.0.0.11", "never-was", "u-1", nil)
	wantCollected(t, "10.1.0.51", "leak-pod-gone")
	controlplane.EventuallyWithin(t, patience, func() error {
		if ip := stored(t, "10.1.0.50"); ip.Status.Status != v1.IPActive {
			t.Fatalf("%s is %s", ip.Name, ip.Status.Status)
		}
		select {
		case name := <-reads:
			if name == unseen.Name {
				return nil
			}
		default:
		}
		return errors.New("the pod was not read")
	})
	// What is taken back after that would have been taken back with it.
	hold(t, "10.1.0.52", "10.0.0.11", "never-was-either", "u-2", nil)
	wantCollected(t, "10.1.0.52", "leak-pod-gone")
	wantHeld(t, "10.1.0.50", "unseen")
}

// TestForbidden: what cannot be read is not gone.
func TestForbidden(t *testing.T) {
	controlplane.TakesLong(t)
	cfg := account(t)
	node(t, "forbidden", "10.0.0.11", corev1.ConditionTrue, time.Hour)
	hold(t, "10.1.0.60", "10.0.0.11", "forbidden", "u-1", nil)
	var role rbacv1.ClusterRole
	if err := admin.Get(t.Context(), client.ObjectKey{Name: controlplane.ControllerName}, &role); err != nil {
		t.Fatal(err)
	}
	before := role.DeepCopy()
	for i := range role.Rules {
		if role.Rules[i].Resources[0] == "pods" {
			role.Rules[i].Verbs = []string{"list", "watch"}
		}
	}
	if err := admin.Update(t.Context(), &role); err != nil {
		t.Fatal(err)
	}
	restore := func(ctx context.Context) error {
		before.ResourceVersion = role.ResourceVersion
		return admin.Update(ctx, before)
	}
	t.Cleanup(func() { _ = restore(context.Background()) })
	log, _ := start(t, cfg, nil)
	controlplane.EventuallyWithin(t, patience, func() error {
		if !strings.Contains(log.String(), "are not taken back") {
			return errors.New("the log tells nothing")
		}
		return nil
	})
	wantHeld(t, "10.1.0.60", "forbidden")
	if err := restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantCollected(t, "10.1.0.60", "leak-pod-gone")
}

// TestBrake: when many pods are gone at once, and their namespace with them, nothing is taken back before it is
// there again.
func TestBrake(t *testing.T) {
	cfg := account(t)
	node(t, "brake", "10.0.0.11", corev1.ConditionTrue, time.Hour)
	const n = 11
	for i := range n {
		hold(t, fmt.Sprintf("10.1.0.%d", 100+i), "10.0.0.11", fmt.Sprintf("lost-%d", i), fmt.Sprintf("u-%d", i),
			func(ip *v1.BCSNetIP) { ip.Status.PodNamespace = "lost" })
	}
	_, metrics := start(t, cfg, nil)
	controlplane.EventuallyWithin(t, patience, func() error {
		for i := range n {
			if ip := stored(t, fmt.Sprintf("10.1.0.%d", 100+i)); ip.Status.Status != v1.IPActive {
				t.Fatalf("%s is %s", ip.Name, ip.Status.Status)
			}
		}
		if v := metric(t, metrics, "bcsnet_collection_braked"); v != "1" {
			return fmt.Errorf("bcsnet_collection_braked is %q, want 1", v)
		}
		return nil
	})
	wantPaused(t, metav1.ConditionTrue, "11 addresses held", "namespace lost, which does not exist",
		"bcsnetctl doctor --fix --only leaks")
	// What others left is taken back meanwhile, and the condition goes on.
	hold(t, "10.1.0.120", "10.0.0.11", "others", "u-others", nil)
	wantCollected(t, "10.1.0.120", "leak-pod-gone")
	wantPaused(t, metav1.ConditionTrue, "11 addresses held", "namespace lost, which does not exist")
	for i := range n {
		wantHeld(t, fmt.Sprintf("10.1.0.%d", 100+i), fmt.Sprintf("lost-%d", i))
	}
	if err := admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "lost"}}); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		wantCollected(t, fmt.Sprintf("10.1.0.%d", 100+i), "leak-pod-gone")
	}
	wantPaused(t, metav1.ConditionFalse, "are taken back")
	if v := metric(t, metrics, "bcsnet_collection_braked"); v != "0" {
		t.Errorf("bcsnet_collection_braked is %q, want 0", v)
	}
}

func wantPaused(t *testing.T, status metav1.ConditionStatus, words ...string) {
	t.Helper()
	controlplane.EventuallyWithin(t, patience, func() error {
		var p v1.BCSNetPool
		if err := admin.Get(t.Context(), client.ObjectKey{Name: pool}, &p); err != nil {
			return err
		}
		c := meta.FindStatusCondition(p.Status.Conditions, v1.ConditionCollectionPaused)
		if c == nil || c.Status != status {
			return fmt.Errorf("the condition is %+v, want %s", c, status)
		}
		for _, w := range words {
			if !strings.Contains(c.Message, w) {
				return fmt.Errorf("the condition says %q, want %q in it", c.Message, w)
			}
		}
		return nil
	})
}
