package cni_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/vishvananda/netlink"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

// crio is a node as CRI-O has it: its CNI library calls whatever the network configurations in confs say, and our
// plugins ask the controller over https with a token that is bound to the node.
type crio struct {
	*node
	confs, bin, state string
}

// newCRIO makes a node without a network configuration.
func newCRIO(t *testing.T) *crio {
	t.Helper()
	n := newNode(t)
	c := &crio{node: n, confs: filepath.Join(n.dir, "net.d"), bin: filepath.Join(n.dir, "bin"), state: filepath.Join(n.dir, "state")}
	// The cache of Multus has to be there, or its GC fails until it has attached something.
	for _, dir := range []string{c.confs, c.bin, c.state, filepath.Join(c.state, "multus", "results")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for i, name := range []string{"cni0", "cni1"} { // one that the plugin makes changes its MAC with its ports
		c.host.Do(t, func() error {
			bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: name, HardwareAddr: net.HardwareAddr{2, 0, 0, 0, 0, byte(i)}}}
			return errors.Join(netlink.LinkAdd(bridge), netlink.LinkSetUp(bridge))
		})
	}
	for _, from := range []string{references(t), n.programs} {
		for _, program := range programsOf(t, from) {
			if err := os.Symlink(filepath.Join(from, program), filepath.Join(c.bin, program)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(c.bin, "ocicni")); err != nil {
		t.Skipf("skipped: run hack/cni/build.sh first, which builds CRI-O's CNI library and Multus: %v", err)
	}
	c.overHTTPS()
	return c
}

func programsOf(t *testing.T, dir string) (names []string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !strings.HasPrefix(f.Name(), ".") {
			names = append(names, f.Name())
		}
	}
	return names
}

// rights are what the plugins' and Multus' ServiceAccounts may, once for all tests.
var rights = sync.OnceValue(func() error {
	ctx := context.Background()
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return err
	}
	of := filepath.Join(root, "config", "node")
	out, err := shared.cluster.Kubectl(ctx, "apply", "--server-side", "--filename", filepath.Join(of, "service_account.yaml"),
		"--filename", filepath.Join(of, "role_binding.yaml")).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	if err := shared.cluster.InstallCRDs(ctx, filepath.Join("testdata", "multus")); err != nil {
		return err
	}
	return errors.Join(
		shared.admin.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "multus"}}),
		shared.admin.Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "multus"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "kube-system", Name: "multus"}},
		}))
})

// overHTTPS has the plugins ask as the installer's pod configures them.
func (c *crio) overHTTPS() {
	c.Helper()
	if err := rights(); err != nil {
		c.Fatal(err)
	}
	name := fmt.Sprintf("cri-o-%d", c.ten)
	object := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := c.Admin.Create(c.Context(), object); err != nil {
		c.Fatal(err)
	}
	object.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: c.Host}}
	if err := c.Admin.Status().Update(c.Context(), object); err != nil {
		c.Fatal(err)
	}
	ca := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: controlplane.SystemNamespace, Name: "bcsnet-controller-ca"}
	controlplane.Eventually(c.T, func() error { return c.Admin.Get(c.Context(), key, ca) })
	c.write("etc/ca.crt", ca.Data["ca.crt"])
	c.write("etc/token", c.token(controlplane.SystemNamespace, "bcsnet-node", "bcsnet", name))
	c.configure("cluster", "c1", "node", name, "host", c.Host, "serverName", "bcsnet-controller.bcsnet-system.svc",
		"replicas", []string{"https://" + c.tunnel(strings.TrimPrefix(shared.controller.URL, "http://"))})
}

// token returns a token of a ServiceAccount, bound to a node where one is named.
func (c *crio) token(namespace, account, audience, node string) string {
	c.Helper()
	r := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(3600))}}
	if audience != "" {
		r.Spec.Audiences = []string{audience}
	}
	if node != "" {
		r.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{Kind: "Node", APIVersion: "v1", Name: node}
	}
	of := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}}
	if err := c.Admin.SubResource("token").Create(c.Context(), of, r); err != nil {
		c.Fatal(err)
	}
	return r.Status.Token
}

// tunnel leads from the node to an address of the machine, and returns where the node finds it.
func (c *crio) tunnel(to string) string {
	c.Helper()
	var listener net.Listener
	c.host.Do(c.T, func() (err error) {
		listener, err = net.Listen("tcp", "127.0.0.1:0")
		return err
	})
	var all sync.WaitGroup
	ctx, stop := context.WithCancel(context.Background())
	all.Go(func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() { join(ctx, from, to) })
		}
	})
	c.Cleanup(func() {
		stop()
		_ = listener.Close()
		all.Wait()
	})
	return listener.Addr().String()
}

// join passes on what comes from a connection, and what is answered, until either ends or the context does.
func join(ctx context.Context, from net.Conn, address string) {
	defer from.Close()
	to, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return
	}
	defer to.Close()
	done := make(chan struct{}, 2)
	pass := func(a, b net.Conn) {
		_, _ = io.Copy(a, b)
		done <- struct{}{}
	}
	go pass(from, to)
	go pass(to, from)
	select {
	case <-done:
	case <-ctx.Done():
	}
	_, _ = from.Close(), to.Close()
	<-done
}

// call has CRI-O's library do something for pods: start, add, del or status.
func (c *crio) call(verb string, pods ...*container) error {
	c.Helper()
	type podNetwork struct{ Name, Namespace, ID, UID, NetNS string }
	in := struct {
		Pods []podNetwork `json:"Pods"`
	}{}
	for _, p := range pods {
		in.Pods = append(in.Pods, podNetwork{p.pod, "default", p.id, p.uid, p.netns.Path()})
	}
	text, err := json.Marshal(in) //nolint:musttag // the program of hack/ocicni reads the names of Go
	if err != nil {
		c.Fatal(err)
	}
	c.host.Do(c.T, func() error {
		_, err = c.run(c.Context(), text, []string{"PATH=" + os.Getenv("PATH")}, filepath.Join(c.bin, "ocicni"), verb, c.confs,
			filepath.Join(c.state, "cri-o"), c.bin)
		return nil
	})
	return err
}

// does fails the test unless a call succeeds.
func (c *crio) does(verb string, pods ...*container) {
	c.Helper()
	if err := c.call(verb, pods...); err != nil {
		c.Fatalf("%s: %v\n%s", verb, err, c.read("run/calls.log"))
	}
}

// configured writes a network configuration.
func (c *crio) configured(name, text string) { c.Helper(); c.write(filepath.Join("net.d", name), text) }

// ours is a conflist of ours.
func (c *crio) ours() string {
	return fmt.Sprintf(`{"cniVersion":"1.1.0","name":"pods","plugins":[{"type":"bridge","bridge":"cni0","ipam":{"type":"bcsnet-ipam",
		"network":"pods-%d"}},{"type":"bcsnet-announce"}]}`, c.ten)
}
