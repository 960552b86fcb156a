package floatingip_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/bcsnet/bcsnet/test/controlplane"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
	"github.com/bcsnet/bcsnet/test/plugin"
)

const (
	wantedHost = "10.0.0.11"
	wanted     = "10.0.74.5"
)

// TestWantedTwice: a bare pod and a Deployment want one address. Who asks first has it, the other is told that it is
// not free, and gets it when the first has gone: a Deployment with all that it keeps.
func TestWantedTwice(t *testing.T) {
	controlplane.TakesLong(t)
	t.Parallel() // with the other that waits
	prepare(t)
	restPool(t, "wanted", "10.0.74", "10.0.74.2-10.0.74.9")
	wants := map[string]string{"networkextension.bkbcs.tencent.com/ip": wanted}
	answer := func(pod string, is func(plugin.Answer) bool) (a plugin.Answer) {
		t.Helper()
		controlplane.Eventually(t, func() error {
			if a = ask(t, http.MethodPost, wantedHost, pod); !is(a) {
				return fmt.Errorf("pod %s: %+v", pod, a)
			}
			return nil
		})
		return a
	}
	gets := func(pod string) {
		t.Helper()
		answer(pod, func(a plugin.Answer) bool { return a.Code == 0 && a.Address.IPAddr == wanted })
	}
	refused := func(pod, why string) {
		t.Helper()
		a := ask(t, http.MethodPost, wantedHost, pod)
		if a.Reason != ipam.ReasonPoolExhausted || !strings.Contains(a.Message, "address "+wanted+" of pool wanted is "+why) {
			t.Errorf("pod %s, while another has %s: %+v", pod, wanted, a)
		}
	}

	bare(t, "lone", wants)
	gets("lone")
	labels := map[string]string{"app": "both"}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "both"},
		Spec: appsv1.DeploymentSpec{Replicas: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{
					"networkextension.bkbcs.tencent.com/ip": wanted, "networkextension.bkbcs.tencent.com/release-policy": "immutable",
				}},
				Spec: corev1.PodSpec{SchedulerName: "nobody", Containers: []corev1.Container{{Name: "c", Image: "c"}}},
			}},
	}
	if err := admin.Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admin.Delete(context.Background(), d) })
	first := podOf(t, "both", "")
	refused(first, "held by default/lone")
	endPod(t, "lone")
	gets(first)

	// The other way round: the Deployment has it, and its next pod has it before a bare pod that has waited for it.
	bare(t, "late", wants)
	refused("late", "held by default/"+first)
	endPod(t, first)
	second := podOf(t, "both", first)
	refused("late", "kept for claim default/deploy-both") // nobody has it
	gets(second)
	refused("late", "held by default/"+second)

	// The Deployment goes, and what it kept with it.
	kubectl(t, "delete", "deployment/both", "--cascade=foreground", "--wait=false")
	ask(t, http.MethodDelete, wantedHost, second)
	gets("late")
	endPod(t, "late")
}

// bare makes a pod without a workload, on no node.
func bare(t *testing.T, name string, annotations map[string]string) {
	t.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Annotations: annotations},
		Spec:       corev1.PodSpec{SchedulerName: "nobody", Containers: []corev1.Container{{Name: "c", Image: "c"}}},
	}
	controlplane.Eventually(t, func() error { return admin.Create(t.Context(), p) }) // its ServiceAccount comes by itself
	t.Cleanup(func() { _ = admin.Delete(context.Background(), p, client.GracePeriodSeconds(0)) })
}

// podOf waits for a pod of an app other than one that there was.
func podOf(t *testing.T, app, other string) (name string) {
	t.Helper()
	controlplane.Eventually(t, func() error {
		var all corev1.PodList
		if err := admin.List(t.Context(), &all, client.InNamespace("default"),
			client.MatchingLabels{"app": app}); err != nil {
			return err
		}
		for i := range all.Items {
			if p := &all.Items[i]; p.Name != other && p.DeletionTimestamp == nil {
				name = p.Name
				return nil
			}
		}
		return errors.New("there is no such pod of " + app)
	})
	return name
}

// TestTakenForNoClaim: addresses that somebody took ahead for a claim that is no more go back. Those that a pod has had
// stay, as those that are old: the claim may have been lost, and is made again. So do those of a claim that there is.
func TestTakenForNoClaim(t *testing.T) {
	controlplane.TakesLong(t)
	t.Parallel()
	prepare(t)
	restPool(t, "ahead", "10.0.75", "10.0.75.2-10.0.75.9")
	there := &v1.BCSNetIPClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "there"},
		Spec:       v1.BCSNetIPClaimSpec{ReleasePolicy: v1.ReleaseNever},
	}
	if err := admin.Create(t.Context(), there); err != nil {
		t.Fatal(err)
	}
	leases, err := store.New(cluster.Config, nil, store.NewClock(nil))
	if err != nil {
		t.Fatal(err)
	}
	keep := func(address, claim, pod string, ago time.Duration) {
		t.Helper()
		controlplane.Eventually(t, func() error {
			l, err := leases.Get(t.Context(), netip.MustParseAddr(address))
			if err != nil {
				return err
			}
			l.State, l.Retention, l.Updated = lease.Reserved, lease.Retention{Claim: claim, Fixed: true}, time.Now().Add(-ago)
			if pod != "" {
				l.Namespace, l.PodName = "default", pod
			}
			_, err = leases.Write(t.Context(), l)
			return err
		})
	}
	keep("10.0.75.2", "default/nobody", "", 0)
	keep("10.0.75.3", "default/nobody", "had-it", 0)
	keep("10.0.75.4", "default/long-ago", "", time.Hour)
	keep("10.0.75.5", "default/there", "", 0)
	keep("10.0.75.6", "default/nobody", "", 0)
	controlplane.Eventually(t, func() error {
		for address, want := range map[string]lease.State{
			"10.0.75.2": lease.Available, "10.0.75.3": lease.Reserved, "10.0.75.4": lease.Reserved, "10.0.75.5": lease.Reserved, "10.0.75.6": lease.Available,
		} {
			l, err := leases.Get(t.Context(), netip.MustParseAddr(address))
			if err == nil && l.State != want {
				err = fmt.Errorf("%s of claim %s is %s, want %s", address, l.Claim, l.State, want)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	kubectl(t, "delete", "bcsnetipclaim/there", "--timeout=60s")
	for _, a := range []string{"10.0.75.3", "10.0.75.4"} {
		controlplane.Eventually(t, func() error {
			l, err := leases.Get(t.Context(), netip.MustParseAddr(a))
			if err != nil {
				return err
			}
			free, _ := lease.Free(l, time.Now(), lease.Change{})
			_, err = leases.Write(t.Context(), free)
			return err
		})
	}
}
