package cni_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
	"github.com/bcsnet/bcsnet/test/plugin"
)

// leased has a network hold an address for a container.
func (n *node) leased(network, cniNetwork string) *container {
	n.Helper()
	pod := n.container("leased" + uuid.NewString()[:4])
	answer, err := plugin.Ask(n.Context(), n.Caller, http.MethodPost, n.URL, wire.AllocateRequest{
		Host: n.Host, ContainerID: pod.id, PodName: pod.pod, PodNamespace: "default", PodUID: pod.uid, Network: network,
		CNINetwork: cniNetwork,
	})
	if err != nil || answer.Code != 0 {
		n.Fatal(answer, err)
	}
	return pod
}

// leaked has a network hold an address, since ten minutes ago, for a container that the runtime does not know, of a pod
// that is gone.
func (n *node) leaked(network, cniNetwork string) (id string) {
	n.Helper()
	pod := n.leased(network, cniNetwork)
	n.Aged(n.holding(pod.id))
	o := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: pod.pod}}
	if err := n.Admin.Delete(n.Context(), o, client.GracePeriodSeconds(0)); err != nil {
		n.Fatal(err)
	}
	return pod.id
}

// gc sends a GC through libcni with these containers as those that are there.
func (n *node) gc(list *libcni.NetworkConfigList, valid ...*container) (err error) {
	n.Helper()
	args := &libcni.GCArgs{}
	for _, c := range valid {
		args.ValidAttachments = append(args.ValidAttachments, types.GCAttachment{ContainerID: c.id, IfName: c.ifName})
	}
	n.host.Do(n.T, func() error {
		err = n.cni().GCNetworkList(context.Background(), list, args)
		return nil
	})
	return err
}

// wantCollected fails unless GCs of a network free what a container holds, once the controller knows how old it is.
func (n *node) wantCollected(id string, list *libcni.NetworkConfigList, valid ...*container) {
	n.Helper()
	n.eventually(func() bool {
		if err := n.gc(list, valid...); err != nil {
			n.Fatal(err)
		}
		return len(n.held(id)) == 0
	})
}

// TestGC has two networks on one host and a GC of one: what the runtime does not know in this network goes if its pod
// is gone, and nothing else. The bridge plugin passes no GC on, so the chained plugin has it.
func TestGC(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	blue, red := fmt.Sprintf("blue-%d", n.ten), fmt.Sprintf("red-%d", n.ten)
	n.pool("-blue", func(s *v1.BCSNetPoolSpec) { s.Network = blue }, 20, 21, 22)
	n.pool("-red", func(s *v1.BCSNetPoolSpec) { s.Network = red }, 30, 31, 32)
	announce := `{"type":"bcsnet-announce"}`
	lists := map[string]*libcni.NetworkConfigList{
		"blue": conflist(t, "1.1.0", "blue", bridge, fmt.Sprintf(`"network":%q`, blue), announce),
		"red":  conflist(t, "1.1.0", "red", bridge, fmt.Sprintf(`"network":%q`, red), announce),
	}
	pod, other := n.container("web"), n.container("db")
	kept, left := pod.added(lists["blue"]), other.added(lists["red"])
	inBlue, inRed := n.leaked(blue, "blue"), n.leaked(red, "red")
	bound := n.leaked(blue, "") // by who names no network

	n.wantCollected(inBlue, lists["blue"], pod)
	n.wantHeld(pod.id, kept...)
	n.wantHeld(other.id, left...)
	n.holding(inRed)
	n.holding(bound)

	// Its ADD has just ended, maybe after the list was made.
	young := n.container("young")
	young.added(lists["blue"])
	cacheless := *n
	cacheless.dir = t.TempDir() // or libcni would send a DEL for what it knows itself
	for _, dir := range []string{"etc", "var", "run"} {
		copyDir(t, n.dir, cacheless.dir, dir)
	}
	if err := cacheless.gc(lists["blue"], pod); err != nil {
		t.Fatal(err)
	}
	n.holding(young.id)

	cacheless.wantCollected(inRed, lists["red"], other)
	n.holding(other.id) // young, too
}

// TestGCDisabled has a network whose section ipam wants no GC. The chained plugin, which answers it, does not see that
// section.
func TestGCDisabled(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.pool("", nil, 20, 21, 22)
	list := conflist(t, "1.1.0", "lan", bridge, `"disableGC":true`, `{"type":"bcsnet-announce"}`)
	pod := n.container("web")
	addrs := pod.added(list)
	n.Aged(addrs...)
	forgotten, latest := n.leaked("", "lan"), n.leased("", "lan")
	other := *n
	other.dir = t.TempDir() // another runtime, whose list has nothing of this one's
	for _, dir := range []string{"etc", "var", "run"} {
		copyDir(t, n.dir, other.dir, dir)
	}
	other.wantCollected(forgotten, list, latest)
	n.wantHeld(pod.id, addrs...)
	if err := pod.del(list); err != nil {
		t.Error(err)
	}
	n.wantFree(addrs...)
}

// TestGCRefused has lists that are none, and networks that want no GC: nothing is freed.
func TestGCRefused(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.pool("", nil, 20, 21)
	id, latest := n.leaked("", "lan"), n.leased("", "lan")
	pod := n.container("web")
	for name, c := range map[string]struct{ fields, want string }{
		"no list":            {``, "a GC without cni.dev/valid-attachments"},
		"a list of strings":  {`,"cni.dev/valid-attachments":["x"]`, "cni.dev/valid-attachments"},
		"without an ifname":  {`,"cni.dev/valid-attachments":[{"containerID":"x"}]`, "ifname"},
		"disableGC":          {`,"cni.dev/valid-attachments":[],"disableGC":true`, ""},
		"ipam.disableGC":     {`,"cni.dev/valid-attachments":[],"ipam":{"disableGC":true}`, ""},
		"version before 1.1": {`,"cniVersion":"1.0.0","cni.dev/valid-attachments":[]`, "does not allow GC"},
	} {
		t.Run(name, func(t *testing.T) {
			n := n.on(t)
			_, err := pod.call("GC", `{"cniVersion":"1.1.0","name":"lan","type":"bcsnet-ipam"`+c.fields+`}`)
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
			} else {
				n.wantError(err, c.want)
			}
			n.holding(id)
		})
	}
	n.eventually(func() bool {
		_, err := pod.call("GC", fmt.Sprintf(`{"cniVersion":"1.1.0","name":"lan","type":"bcsnet-ipam",
			"cni.dev/valid-attachments":[{"containerID":%q,"ifname":"eth0"}]}`, latest.id))
		if err != nil {
			t.Error(err)
		}
		return len(n.held(id)) == 0
	})
}

// TestGCNeedsConfigJSON has a node that is configured by the section ipam alone. GC arrives by the chained plugin,
// which does not see that section: it fails, and frees nothing, unless it is turned off there.
func TestGCNeedsConfigJSON(t *testing.T) {
	n := newNode(t)
	n.pool("", nil, 20, 21)
	id := n.leaked("", "lan")
	n.configure()
	own := fmt.Sprintf(`"host":%q,"netserviceEndpoint":%q`, n.Host, n.plainRelay().url)
	err := n.gc(conflist(t, "1.1.0", "lan", bridge, own, `{"type":"bcsnet-announce"}`))
	n.wantError(err, "the configuration is wrong; no host")
	n.holding(id)
	if err := n.gc(conflist(t, "1.1.0", "lan", bridge, own, `{"type":"bcsnet-announce","disableGC":true}`)); err != nil {
		t.Error(err)
	}
	n.holding(id)
}
