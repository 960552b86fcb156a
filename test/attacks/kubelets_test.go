package attacks_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/controller"
	"github.com/bcsnet/bcsnet/test/inprocess"
)

// kubelets are attacks by who may write the status of the pods of a node.
func kubelets() []attack { return []attack{{"pods_that_report_addresses", reportedAddresses}} }

// started starts another replica, with some options changed, until the test ends.
func started(t *testing.T, change func(*controller.Options)) *inprocess.Controller {
	t.Helper()
	cfg, err := shared.cluster.ControllerConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	d, err := newDoors()
	if err != nil {
		t.Fatal(err)
	}
	c, err := inprocess.StartOn(cfg, d, func(o *controller.Options) {
		o.PlainHTTP, o.AdvertiseAddress, o.CertificatesEvery = false, "none", 200*time.Millisecond
		if change != nil {
			change(o)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	shared.doors[c] = d
	t.Cleanup(func() {
		delete(shared.doors, c)
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := c.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

// The attacker's kubelet says that pods have addresses of others' pools, and a controller starts: it takes
// none of them, and the pools hand out.
func reportedAddresses(t *testing.T, w *world) {
	w.create(t, &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}, Spec: v1.BCSNetPoolSpec{
		Net: "10.80.0.0", Mask: 24, Gateway: "10.80.0.1", Hosts: []string{theirs}, Priority: -2,
		AvailableIPs: []string{"10.80.0.20-10.80.0.29"},
	}})
	w.pod(t, shop, "silent-theirs", nodeTheirs, "")
	for name, address := range map[string]string{"liar-of-theirs": "10.80.0.20", "liar-of-shop": "10.78.0.89"} {
		p := w.pod(t, shop, name, nodeMine, "")
		p.Status = corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: address, PodIPs: []corev1.PodIP{{IP: address}},
			HostIP: theirs, HostIPs: []corev1.HostIP{{IP: theirs}},
		}
		if err := shared.admin.Status().Update(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = shared.admin.Delete(context.Background(), p, client.GracePeriodSeconds(0)) })
	}
	c := started(t, nil)
	for _, pool := range []string{"shop", "theirs"} {
		body := w.podWith(t, shop, "asks-of-"+pool, map[string]string{"networkextension.bkbcs.tencent.com/pool": pool})
		h := w.send(t, ask{to: c, token: w.theirNode, method: "POST", path: prefix, body: body})
		h.done(t, "ADD from pool "+pool)
		w.ends(t, body)
	}
	var o v1.BCSNetIP
	if err := shared.admin.Get(t.Context(), client.ObjectKey{Name: "10.80.0.20"}, &o); err != nil {
		t.Fatal(err)
	}
	if o.Status.PodName == "liar-of-theirs" {
		t.Errorf("it took an address of a pool that is not for its node: %+v", o.Status)
	}
}
