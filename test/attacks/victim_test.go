package attacks_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/inprocess"
)

// untouched fails the test unless the victims have their addresses as before, and hear so: the pod of the other node
// and an owner. The pod's repeated ADD has the same address at each replica, its DEL frees it, and the ADD of its next
// container gets it again.
func (w *world) untouched(t *testing.T) {
	t.Helper()
	a, err := ipaddr.ParseAddr(w.address)
	if err != nil {
		t.Fatal(err)
	}
	var o v1.BCSNetIP
	if err := shared.admin.Get(t.Context(), client.ObjectKey{Name: ipaddr.ObjectName(a)}, &o); err != nil {
		t.Fatal(err)
	}
	if s := o.Status; s.Status != v1.IPActive || s.ContainerID != w.victim["containerID"] || s.Host != theirs ||
		s.PodName != "web-theirs" || s.Conflict != nil {
		t.Fatalf("the victim's address was touched: %+v", s)
	}
	for _, to := range w.replicas() {
		w.hears(t, to, w.theirNode, w.victim, w.address)
		w.hears(t, to, w.operator, w.owner, w.ownerAddress)
	}
	h := w.send(t, ask{token: w.theirNode, method: "DELETE", path: prefix, body: w.victim})
	if data := h.done(t, "the victim's DEL"); fmt.Sprint(data["ips"]) != "["+w.address+"]" {
		t.Fatalf("the victim's DEL released %v, want %s", data["ips"], w.address)
	}
	w.victim = with(w.victim, "containerID", uuid.NewString())
	w.hears(t, shared.shipped, w.theirNode, w.victim, w.address)
	w.seen(t)
}

// hears fails the test unless the ADD of a victim gets its address.
func (w *world) hears(t *testing.T, to *inprocess.Controller, token string, body object, address string) {
	t.Helper()
	h := w.send(t, ask{to: to, token: token, method: "POST", path: prefix, body: body})
	if data := h.done(t, "the victim's ADD"); data["ipAddr"] != address {
		t.Fatalf("the victim's ADD gets %v, want %s", data["ipAddr"], address)
	}
}

// eventuallyAdd waits until an ADD is answered, and returns its address: the wanted one, unless that is empty. Replicas
// may not know its pod yet.
func (w *world) eventuallyAdd(t *testing.T, token string, body object, want string) (address string) {
	t.Helper()
	controlplane.Eventually(t, func() error {
		h, err := w.trySend(t.Context(), ask{token: token, method: "POST", path: prefix, body: body})
		if err == nil && h.Code != 0 {
			err = errors.New(h.text)
		}
		if err == nil {
			address = h.Data.(object)["ipAddr"].(string)
		}
		return err
	})
	if want != "" && address != want {
		t.Fatalf("ADD gets %s, want %s", address, want)
	}
	return address
}

// seen waits until the other replica knows of the victim's container.
func (w *world) seen(t *testing.T) {
	t.Helper()
	controlplane.Eventually(t, func() error {
		h, err := w.trySend(t.Context(), ask{
			to: shared.strict, token: w.operator, method: "GET", path: prefix + "/ip/" + w.address,
		})
		if data, ok := h.Data.(object); err == nil && (!ok || data["containerID"] != w.victim["containerID"]) {
			err = errors.New(h.text)
		}
		return err
	})
}

// plugin makes a node with the plugin's pod.
func (w *world) plugin(t *testing.T, node, host, pod string) {
	t.Helper()
	w.makeNode(t, node, host)
	w.pod(t, shop, pod, node, "plugin")
}
