package collect_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/controller"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// TestHostIsCutOff: a node that is cut off stays ready for the better part of a minute, and what was force-deleted in
// that time runs on there. Its address is taken back when the host goes on renewing its Lease: one renewal may have
// been under way when it was cut off.
func TestHostIsCutOff(t *testing.T) {
	cfg := account(t)
	node(t, "in-touch", "10.0.0.11", corev1.ConditionTrue, time.Hour)
	silentNode(t, "cut-off", "10.0.0.12", corev1.ConditionTrue, time.Hour)
	l := nodeLease(t, "cut-off")
	silentNode(t, "no-lease", "10.0.0.13", corev1.ConditionTrue, time.Hour)
	hold(t, "10.1.0.70", "10.0.0.12", "cut-off", "u-1", nil)
	hold(t, "10.1.0.73", "10.0.0.13", "no-lease", "u-2", nil)
	start(t, cfg, nil)
	// the later one is seen and taken back when the others were for long enough
	for i, name := range []string{"first", "later"} {
		address := fmt.Sprintf("10.1.0.%d", 71+i)
		hold(t, address, "10.0.0.11", name, "u-"+name, nil)
		wantCollected(t, address, "leak-pod-gone")
		if i == 0 {
			renew(t.Context(), l)
		}
	}
	wantHeld(t, "10.1.0.70", "cut-off")
	wantHeld(t, "10.1.0.73", "no-lease")
	renewing(t, l)
	wantCollected(t, "10.1.0.70", "leak-pod-gone")
	wantCollected(t, "10.1.0.73", "leak-pod-gone") // a node without a Lease that is ready for a minute is there
}

// TestHostIsBack: the kubelet of a host that was cut off learns when it is back which pods are no more, and gives their
// containers their time from then on.
func TestHostIsBack(t *testing.T) {
	const ending = 8 * time.Second
	cfg := account(t)
	node(t, "never-away", "10.0.0.11", corev1.ConditionTrue, time.Hour)
	silentNode(t, "back", "10.0.0.12", corev1.ConditionTrue, time.Hour)
	l := nodeLease(t, "back")
	hold(t, "10.1.0.76", "10.0.0.12", "cut-off-and-back", "u-1", nil)
	start(t, cfg, func(o *controller.Options) { o.CollectAfter = ending })
	hold(t, "10.1.0.77", "10.0.0.11", "later", "u-2", nil)
	wantCollected(t, "10.1.0.77", "leak-pod-gone") // the other one was seen for longer
	wantHeld(t, "10.1.0.76", "cut-off-and-back")
	back := time.Now()
	renewing(t, l)
	wantCollected(t, "10.1.0.76", "leak-pod-gone")
	taken, err := time.Parse(time.RFC3339Nano, stored(t, "10.1.0.76").Status.UpdateTime)
	// the last look before it was back may have been seconds ago
	if early := ending/2 - taken.Sub(back); err != nil || early > 0 {
		t.Errorf("taken back %s after the host was back (%v), although containers have %s to end", taken.Sub(back), err,
			ending)
	}
}

// TestGraceOutlivesAProcess: since when an address waits for a host that is no node's is written down. Each process
// would begin a grace period of its own otherwise.
func TestGraceOutlivesAProcess(t *testing.T) {
	cfg := account(t)
	node(t, "grace", "10.0.0.11", corev1.ConditionTrue, time.Hour)
	waits := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: controlplane.SystemNamespace, Name: controlplane.ControllerName + "-waits",
	}}
	first := func(t *testing.T) {
		t.Helper()
		start(t, cfg, nil)
		hold(t, "10.1.0.80", "10.0.0.99", "second-card", "u-1", nil)
		hold(t, "10.1.0.81", "10.0.0.11", "static", otherStaticUID, nil)
		controlplane.EventuallyWithin(t, patience, func() error {
			if err := admin.Get(t.Context(), client.ObjectKeyFromObject(waits), waits); err != nil {
				return err
			}
			if len(waits.Data) != 2 {
				return fmt.Errorf("it says %v", waits.Data)
			}
			return nil
		})
	}
	keep := []string{"10.1.0.80", "10.1.0.81"}
	versions := map[string]string{}
	t.Run("first", func(t *testing.T) {
		first(t)
		for _, a := range keep {
			versions[a] = stored(t, a).ResourceVersion
		}
	})
	if t.Failed() {
		t.FailNow()
	}
	data := map[string]string{}
	for i, a := range keep { // as they are held again, an hour later
		hold(t, a, []string{"10.0.0.99", "10.0.0.11"}[i], []string{"second-card", "static"}[i],
			[]string{"u-1", otherStaticUID}[i], nil)
		text, version, _ := strings.Cut(waits.Data[a], " ")
		at, err := time.Parse(time.RFC3339Nano, text)
		if err != nil || version != versions[a] {
			t.Fatalf("%s waits since %q: %v", a, waits.Data[a], err)
		}
		data[a] = at.Add(-time.Hour).Format(time.RFC3339Nano) + " " + stored(t, a).ResourceVersion
	}
	controlplane.EventuallyWithin(t, patience, func() error {
		return errors.Join(admin.Get(t.Context(), client.ObjectKeyFromObject(waits), waits), func() error {
			waits.Data = data
			return admin.Update(t.Context(), waits)
		}())
	})
	start(t, cfg, func(o *controller.Options) { o.HostGrace = hostGrace })
	wantCollected(t, "10.1.0.80", "leak-pod-gone")
	wantCollected(t, "10.1.0.81", "leak-pod-gone")
}

// TestAddressMoves: the address of a node that is cut off goes to another node, which is in touch. What the first one
// runs keeps its addresses, also when all replicas are restarted afterwards.
func TestAddressMoves(t *testing.T) {
	cfg := account(t)
	a := silentNode(t, "moves-a", "10.0.0.31", corev1.ConditionTrue, time.Hour)
	waits := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: controlplane.SystemNamespace, Name: controlplane.ControllerName + "-waits",
	}}
	holdIt := func(t *testing.T) { // whoever starts a controller forgets all leases afterwards
		t.Helper()
		hold(t, "10.1.0.201", "10.0.0.31", "moves", "u-1", nil)
	}
	t.Run("seen", func(t *testing.T) {
		holdIt(t)
		start(t, cfg, nil)
		was := a.DeepCopy()
		a.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.32"}}
		if err := admin.Status().Patch(t.Context(), a, client.MergeFrom(was)); err != nil {
			t.Fatal(err)
		}
		setReady(t, a, corev1.ConditionUnknown, time.Minute)
		controlplane.EventuallyWithin(t, patience, func() error {
			if err := admin.Get(t.Context(), client.ObjectKeyFromObject(waits), waits); err != nil {
				return err
			}
			if text := string(waits.BinaryData["former-nodes"]); !strings.HasPrefix(text, "10.0.0.31 moves-a ") {
				return fmt.Errorf("it says %q", text)
			}
			return nil
		})
	})
	if t.Failed() {
		t.FailNow()
	}
	node(t, "moves-b", "10.0.0.31", corev1.ConditionTrue, time.Hour)
	node(t, "stays", "10.0.0.33", corev1.ConditionTrue, time.Hour)
	holdIt(t)
	start(t, cfg, nil)
	// the later one is seen and taken back when the other one was for long enough
	hold(t, "10.1.0.202", "10.0.0.33", "later", "u-2", nil)
	wantCollected(t, "10.1.0.202", "leak-pod-gone")
	wantHeld(t, "10.1.0.201", "moves")
	if err := admin.Delete(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	wantCollected(t, "10.1.0.201", "leak-pod-gone") // its machine is given up
}

// TestUIDs: of a lease whose request named the UID, another UID is proof, on any interface and from the first second.
// One whose UID was looked up may be the pod's own: where the pod reports the address, the lease gets its UID.
func TestUIDs(t *testing.T) {
	cfg := account(t)
	node(t, "uids", "10.0.0.11", corev1.ConditionTrue, time.Hour)
	now := func(ip *v1.BCSNetIP) { ip.Status.UpdateTime = time.Now().UTC().Format(time.RFC3339Nano) }
	named := func(ip *v1.BCSNetIP) { now(ip); ip.Status.PodUIDNamedBy = ip.Status.ContainerID[:12] }
	unsure := pod(t, "looked-up", "uids", nil)
	hold(t, "10.1.0.90", "10.0.0.11", unsure.Name, "u-looked-up", now)
	reports := pod(t, "reports", "uids", func(p *corev1.Pod) {
		p.Status.Phase, p.Status.PodIP, p.Status.PodIPs = corev1.PodRunning, "10.1.0.91", []corev1.PodIP{{IP: "10.1.0.91"}}
	})
	hold(t, "10.1.0.91", "10.0.0.11", reports.Name, "u-before", now)
	quick := pod(t, "quick", "uids", nil)
	hold(t, "10.1.0.92", "10.0.0.11", quick.Name, "u-quick", named)
	hold(t, "10.1.0.93", "10.0.0.11", quick.Name, "u-quick",
		func(ip *v1.BCSNetIP) { named(ip); ip.Status.IfName = "net1" })
	lapsed := pod(t, "lapsed", "uids", nil) // an earlier release gave the address to this one
	hold(t, "10.1.0.94", "10.0.0.11", lapsed.Name, "u-lapsed",
		func(ip *v1.BCSNetIP) { now(ip); ip.Status.PodUIDNamedBy = "another" })
	_, metrics := start(t, cfg, nil)
	wantCollected(t, "10.1.0.92", "leak-pod-replaced")
	wantCollected(t, "10.1.0.93", "leak-pod-replaced")
	controlplane.EventuallyWithin(t, patience, func() error {
		if uid := stored(t, "10.1.0.91").Status.PodUID; uid != string(reports.UID) {
			return fmt.Errorf("the lease names pod %s", uid)
		}
		return nil
	})
	// Galaxy's REST API goes by the same rule.
	body := `{"ips":[{"ip":"10.1.0.90","namespace":"` + namespace + `","podName":"` + unsure.Name + `"}]}`
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, strings.TrimSuffix(metrics, "/metrics")+"/v1/ip",
		strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Close = true
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(text), "10.1.0.90 is not releasable") {
		t.Errorf("%s: %s, %v", resp.Status, text, err)
	}
	wantHeld(t, "10.1.0.90", unsure.Name)
	wantHeld(t, "10.1.0.91", reports.Name)
	wantHeld(t, "10.1.0.94", lapsed.Name)
}
