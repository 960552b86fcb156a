package cni_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
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
	in := struct{ Pods []podNetwork }{}
	for _, p := range pods {
		in.Pods = append(in.Pods, podNetwork{p.pod, "default", p.id, p.uid, p.netns.Path()})
	}
	text, err := json.Marshal(in)
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

// network makes a NetworkAttachmentDefinition of ours, by which Multus attaches a second interface.
func (c *crio) network() string {
	c.Helper()
	name := fmt.Sprintf("second-%d", c.ten)
	config := fmt.Sprintf(`{"cniVersion":"1.0.0","name":%q,"plugins":[{"type":"bridge","bridge":"cni1","ipam":{"type":"bcsnet-ipam",
		"network":%q}},{"type":"bcsnet-announce"}]}`, name, name)
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
		"metadata": map[string]any{"namespace": "default", "name": name}, "spec": map[string]any{"config": config},
	}}
	if err := c.Admin.Create(c.Context(), o); err != nil {
		c.Fatal(err)
	}
	return name
}

// thin writes the configuration of Multus as a program, above a delegate.
func (c *crio) thin(name, delegate string) {
	c.Helper()
	cfg := *shared.cluster.Config
	cfg.Host = "https://" + c.tunnel(strings.TrimPrefix(cfg.Host, "https://"))
	path := filepath.Join(c.state, "multus.kubeconfig")
	if err := controlplane.WriteKubeconfigFor(&cfg, path); err != nil {
		c.Fatal(err)
	}
	c.configured(name, fmt.Sprintf(`{"cniVersion":"1.1.0","name":"multus","type":"multus","kubeconfig":%q,"cniDir":%q,"binDir":%q,
		"confDir":%q,"delegates":[%s]}`, path, filepath.Join(c.state, "multus"), c.bin, c.confs, delegate))
}

// thick starts Multus' daemon, which writes the configuration of its shim, above the first one that it finds. The
// version is the one that its own manifests have: by 1.1.0 STATUS and GC come, too, and the daemon refuses both, as they
// are about no pod.
func (c *crio) thick() {
	c.Helper()
	host, port, err := net.SplitHostPort(c.tunnel(strings.TrimPrefix(shared.cluster.Config.Host, "https://")))
	if err != nil {
		c.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(c.state, "secrets"), 0o700); err != nil {
		c.Fatal(err)
	}
	c.write("state/secrets/token", c.token("kube-system", "multus", "", ""))
	c.write("state/secrets/ca.crt", string(shared.cluster.Config.CAData))
	sockets := filepath.Join(c.state, "sockets")
	c.write("state/daemon.json", fmt.Sprintf(`{"cniVersion":"0.3.1","socketDir":%q,"daemonSocketDir":%q,"cniDir":%q,"binDir":%q,
		"confDir":%q,"cniConfigDir":%q,"multusAutoconfigDir":%q,"multusConfigFile":"auto","logToStderr":true,"logLevel":"verbose"}`,
		sockets, sockets, filepath.Join(c.state, "multus"), c.bin, c.confs, c.confs, c.confs))
	cmd := exec.Command("/bin/sh", "-c", strings.Replace(script, "eval", `mkdir -p /run/secrets/kubernetes.io
ln -s "$TEST_DIR/state/secrets" /run/secrets/kubernetes.io/serviceaccount
eval`, 1), "sh", filepath.Join(c.bin, "multus-daemon"), "-config", filepath.Join(c.state, "daemon.json"))
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "CNI_PATH=" + c.bin, "TEST_DIR=" + c.dir, "TEST_BEFORE=", "USER=root", "HOME=/", "KUBERNETES_SERVICE_HOST=" + host,
		"KUBERNETES_SERVICE_PORT=" + port,
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	var log controlplane.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	c.host.Do(c.T, cmd.Start)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // it is killed
	}()
	c.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		if c.Failed() {
			c.Logf("multus-daemon:\n%s", &log)
		}
	})
	healthy := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(sockets, "multus.sock"))
		},
	}}
	controlplane.Eventually(c.T, func() error {
		select {
		case <-ended:
			c.Fatalf("multus-daemon has ended: %s", &log)
		default:
		}
		r, err := http.NewRequestWithContext(c.Context(), http.MethodGet, "http://multus/healthz", nil)
		if err != nil {
			return err
		}
		resp, err := healthy.Do(r)
		if err != nil {
			return fmt.Errorf("%w\n%s", err, &log)
		}
		_, err = os.Stat(filepath.Join(c.confs, "00-multus.conf"))
		return errors.Join(err, resp.Body.Close())
	})
}

// active counts the addresses that pods have on the node, by the UIDs of the pods.
func (c *crio) active() map[string]int {
	c.Helper()
	list := &v1.BCSNetIPList{}
	if err := c.Admin.List(c.Context(), list); err != nil {
		c.Fatal(err)
	}
	all := map[string]int{}
	for _, o := range list.Items {
		if o.Status.Status == v1.IPActive && o.Status.Host == c.Host {
			all[o.Status.PodUID]++
		}
	}
	return all
}

// wantActive fails unless exactly these pods have so many addresses each.
func (c *crio) wantActive(when string, each int, pods ...*container) {
	c.Helper()
	want := map[string]int{}
	for _, p := range pods {
		want[p.uid] = each
	}
	if got := c.active(); !maps.Equal(got, want) {
		c.Fatalf("%s: pods have %v, want %v\n%s", when, got, want, c.read("run/calls.log"))
	}
}

// old has all leases of the node be bound ten minutes ago, and waits until the controller knows.
func (c *crio) old() {
	c.Helper()
	list := &v1.BCSNetIPList{}
	if err := c.Admin.List(c.Context(), list); err != nil {
		c.Fatal(err)
	}
	var names []string
	for _, o := range list.Items {
		if o.Status.Status == v1.IPActive && o.Status.Host == c.Host {
			names = append(names, o.Name)
		}
	}
	c.Aged(names...)
}

// TestRuntimes has CRI-O start again above each arrangement of our conflist and Multus: what it sends to networks that
// it did not attach frees no pod. Afterwards a pod goes whose DEL is lost, and the rest ends by CRI-O.
func TestRuntimes(t *testing.T) {
	for name, c := range map[string]struct {
		configure func(*crio)
		// second: pods have a second interface, by Multus.
		second, long bool
	}{
		"ours alone":             {configure: func(c *crio) { c.configured("10-bcsnet.conflist", c.ours()) }, long: true},
		"ours above Multus":      {configure: func(c *crio) { c.configured("10-bcsnet.conflist", c.ours()); c.thin("20-multus.conf", c.ours()) }, long: true},
		"ours below thin Multus": {configure: func(c *crio) { c.configured("10-bcsnet.conflist", c.ours()); c.thin("00-multus.conf", c.ours()) }, second: true},
		"ours below thick Multus": {configure: func(c *crio) {
			c.configured("10-bcsnet.conflist", c.ours())
			c.thick()
		}, second: true},
	} {
		t.Run(name, func(t *testing.T) {
			if c.long && testing.Short() {
				t.Skip("skipped: not in the short form")
			}
			t.Parallel()
			n := newCRIO(t)
			n.pool("-pods", func(s *v1.BCSNetPoolSpec) { s.Network = fmt.Sprintf("pods-%d", n.ten) }, 20, 21, 22, 23)
			each := 1
			var network string
			c.configure(n)
			if c.second {
				network, each = n.network(), 2
				n.pool("-second", func(s *v1.BCSNetPoolSpec) { s.Network = network }, 30, 31, 32, 33)
			}
			var pods []*container
			for i := range 3 {
				p := n.container(fmt.Sprint("web", i))
				if c.second {
					n.annotate(p, network)
				}
				n.does("add", p)
				pods = append(pods, p)
			}
			n.wantActive("added", each, pods...)
			n.does("status")
			before := n.held(pods[0].id)
			for range 2 {
				n.old()
				n.does("start", pods...)
				n.wantActive("CRI-O has started again", each, pods...)
			}
			if got := n.held(pods[0].id); !slices.Equal(got, before) {
				t.Errorf("the pod has %v, and had %v", got, before)
			}
			lost := pods[0]
			if err := n.Admin.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: lost.pod}},
				client.GracePeriodSeconds(0)); err != nil {
				t.Fatal(err)
			}
			n.does("start", pods[1:]...)
			for _, p := range pods[1:] {
				if got := n.active()[p.uid]; got != each {
					t.Errorf("a pod that is there has %d addresses, want %d", got, each)
				}
			}
			n.does("del", pods...) // a DEL comes again, and late
			n.wantActive("all have ended", each)
			if files := n.files("run/attach"); len(files) > 0 {
				t.Errorf("files are left: %v", files)
			}
		})
	}
}

// annotate has Multus attach a pod to a network.
func (c *crio) annotate(p *container, network string) {
	c.Helper()
	o := &corev1.Pod{}
	if err := c.Admin.Get(c.Context(), client.ObjectKey{Namespace: "default", Name: p.pod}, o); err != nil {
		c.Fatal(err)
	}
	o.Annotations = map[string]string{"k8s.v1.cni.cncf.io/networks": network}
	if err := c.Admin.Update(c.Context(), o); err != nil {
		c.Fatal(err)
	}
}
