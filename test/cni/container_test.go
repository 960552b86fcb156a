package cni_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/lan"
)

// container is the sandbox of a pod on a node.
type container struct {
	*node
	id, pod, uid, ifName string
	netns                *lan.Host
	capabilities         map[string]any
	args                 [][2]string
}

// container makes a pod and a sandbox for it.
func (n *node) container(pod string) *container {
	n.Helper()
	pod = fmt.Sprintf("%s-%d", pod, n.ten)
	n.BoundPod(pod)
	p := &corev1.Pod{}
	if err := n.Admin.Get(n.Context(), client.ObjectKey{Namespace: "default", Name: pod}, p); err != nil {
		n.Fatal(err)
	}
	return &container{
		node: n, id: strings.ReplaceAll(uuid.NewString(), "-", ""), pod: pod, uid: string(p.UID), ifName: "eth0",
		netns: n.lan.Host(n.T),
	}
}

// runtimeConf returns what kubelet's runtimes say.
func (c *container) runtimeConf() *libcni.RuntimeConf {
	return &libcni.RuntimeConf{
		ContainerID: c.id, NetNS: c.netns.Path(), IfName: c.ifName, CapabilityArgs: c.capabilities,
		Args: append([][2]string{
			{"IgnoreUnknown", "1"},
			{"K8S_POD_NAMESPACE", "default"},
			{"K8S_POD_NAME", c.pod},
			{"K8S_POD_INFRA_CONTAINER_ID", c.id},
			{"K8S_POD_UID", c.uid},
		}, c.args...),
	}
}

// add sends an ADD through libcni.
func (c *container) add(list *libcni.NetworkConfigList) (result *types100.Result, err error) {
	c.Helper()
	c.host.Do(c.T, func() error {
		var r types.Result
		if r, err = c.cni().AddNetworkList(c.Context(), list, c.runtimeConf()); err == nil {
			result, err = types100.NewResultFromResult(r)
		}
		return nil // the error is the test's to judge
	})
	return result, err
}

// added returns the addresses that an ADD gets.
func (c *container) added(list *libcni.NetworkConfigList) (addrs []string) {
	c.Helper()
	result, err := c.add(list)
	if err != nil {
		c.Fatal(err)
	}
	for _, ip := range result.IPs {
		addr, _, _ := strings.Cut(ip.Address.String(), "/")
		addrs = append(addrs, addr)
	}
	return addrs
}

// del sends a DEL through libcni.
func (c *container) del(list *libcni.NetworkConfigList) (err error) {
	c.Helper()
	c.host.Do(c.T, func() error {
		err = c.cni().DelNetworkList(c.Context(), list, c.runtimeConf())
		return nil
	})
	return err
}

// check sends a CHECK through libcni.
func (c *container) check(list *libcni.NetworkConfigList) (err error) {
	c.Helper()
	c.host.Do(c.T, func() error {
		err = c.cni().CheckNetworkList(c.Context(), list, c.runtimeConf())
		return nil
	})
	return err
}

// call runs bcsnet-ipam alone, as a main plugin does, and returns what it writes.
func (c *container) call(command, stdin string, env ...string) (string, error) {
	c.Helper()
	base := []string{
		"CNI_COMMAND=" + command, "CNI_CONTAINERID=" + c.id, "CNI_NETNS=" + c.netns.Path(), "CNI_IFNAME=" + c.ifName,
		"CNI_PATH=" + c.programs, fmt.Sprintf("CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=%s;K8S_POD_UID=%s",
			c.pod, c.uid),
	}
	out, err := "", error(nil)
	c.host.Do(c.T, func() error {
		buffer, runErr := c.run(c.Context(), []byte(stdin), append(base, env...), c.programs+"/bcsnet-ipam")
		out, err = buffer.String(), runErr
		return nil
	})
	return out, err
}

// lease returns the lease of an address as the API server has it.
func (n *node) lease(addr string) v1.BCSNetIPStatus {
	n.Helper()
	o := &v1.BCSNetIP{}
	if err := n.Admin.Get(n.Context(), client.ObjectKey{Name: name(addr)}, o); err != nil {
		n.Fatal(err)
	}
	return o.Status
}

// name returns the name of the object of an address.
func name(addr string) string {
	return strings.ReplaceAll(netip.MustParseAddr(addr).StringExpanded(), ":", "-")
}

// held returns the addresses that a container has.
func (n *node) held(id string) (addrs []string) {
	n.Helper()
	list := &v1.BCSNetIPList{}
	if err := n.Admin.List(n.Context(), list); err != nil {
		n.Fatal(err)
	}
	for _, o := range list.Items {
		if o.Status.ContainerID == id && o.Status.Status == v1.IPActive {
			addrs = append(addrs, o.Name)
		}
	}
	slices.Sort(addrs)
	return addrs
}

// holding returns the one address that a container has.
func (n *node) holding(id string) string {
	n.Helper()
	addrs := n.held(id)
	if len(addrs) != 1 {
		n.Fatalf("container %s has %v", id, addrs)
	}
	return addrs[0]
}

// wantHeld fails unless a container has exactly these addresses at this moment.
func (n *node) wantHeld(id string, want ...string) {
	n.Helper()
	names := make([]string, 0, len(want))
	for _, addr := range want {
		names = append(names, name(addr))
	}
	slices.Sort(names)
	if got := n.held(id); !slices.Equal(got, names) {
		n.Errorf("container %s has %v, want %v", id, got, names)
	}
}

// eventually waits until something is so, for as long as a slow machine may take.
func (n *node) eventually(ok func() bool) {
	n.Helper()
	controlplane.EventuallyWithin(n.T, 6*time.Minute, func() error {
		if !ok() {
			return errors.New("it is not so yet")
		}
		return nil
	})
}

// wantFree fails unless a container has nothing at this moment.
func (n *node) wantFree(addrs ...string) {
	n.Helper()
	for _, addr := range addrs {
		if l := n.lease(addr); l.Status != v1.IPAvailable {
			n.Errorf("%s is %s, of container %s", addr, l.Status, l.ContainerID)
		}
	}
}

// unreachable answers with 503, as a replica that is not ready.
func unreachable(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusServiceUnavailable)
}

var errNone = errors.New("no error")

// wantError fails unless an error has all of the words.
func (n *node) wantError(err error, words ...string) {
	n.Helper()
	if err == nil {
		err = errNone
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			n.Errorf("%v, want %q in it", err, w)
		}
	}
}
