package cni_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
)

// definition makes a NetworkAttachmentDefinition with a text as somebody pasted it.
func (c *crio) definition(namespace, name, config string) {
	c.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
		"metadata": map[string]any{"namespace": namespace, "name": name}, "spec": map[string]any{"config": config},
	}}
	if err := c.Admin.Create(c.Context(), o); err != nil {
		c.Fatal(err)
	}
}

// shownNetwork is what Multus writes about one network of a pod.
type shownNetwork struct {
	Interface string   `json:"interface"`
	Mac       string   `json:"mac"`
	IPs       []string `json:"ips"`
	Gateway   []string `json:"gateway"`
}

// shown returns what Multus wrote about the networks of a pod, by interface.
func (c *crio) shown(p *container) map[string]shownNetwork {
	c.Helper()
	o := &corev1.Pod{}
	if err := c.Admin.Get(c.Context(), client.ObjectKey{Namespace: "default", Name: p.pod}, o); err != nil {
		c.Fatal(err)
	}
	var all []shownNetwork
	if err := json.Unmarshal([]byte(o.Annotations["k8s.v1.cni.cncf.io/network-status"]), &all); err != nil {
		c.Fatal(err)
	}
	by := map[string]shownNetwork{}
	for _, s := range all {
		by[s.Interface] = s
	}
	return by
}

// TestMultusForms has Multus attach pods to networks of ours in each form that people paste, with what a pod can ask
// for there. CRI-O calls CHECK after each ADD.
func TestMultusForms(t *testing.T) {
	t.Parallel()
	n := newCRIO(t)
	// Multus takes the default route off the first network, too, and reads results of up to 1.0.0.
	below := strings.Replace(n.ours(), "1.1.0", "1.0.0", 1)
	n.configured("10-bcsnet.conflist", below)
	n.thin("00-multus.conf", below)
	other := fmt.Sprintf("other-%d", n.ten)
	if err := n.Admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: other}}); err != nil {
		t.Fatal(err)
	}
	blue, red := fmt.Sprintf("blue-%d", n.ten), fmt.Sprintf("red-%d", n.ten)
	n.pool("-pods", func(s *v1.BCSNetPoolSpec) { s.Network = fmt.Sprintf("pods-%d", n.ten) }, 20, 21, 22, 23, 24, 25, 26)
	n.pool("-blue", func(s *v1.BCSNetPoolSpec) { s.Network = blue }, 30, 31, 32, 33, 34, 35, 36, 37, 38)
	n.pool("-red", func(s *v1.BCSNetPoolSpec) { s.Network = red }, 40, 41)
	ours := func(network string) string {
		return fmt.Sprintf(`"type":"bridge","bridge":"cni1","capabilities":{"ips":true,"mac":true},"ipam":{"type":"bcsnet-ipam",`+
			`"network":%q,"routes":[{"dst":"192.0.2.0/24"}]}`, network)
	}
	list := func(name string) string {
		return fmt.Sprintf(`{"cniVersion":"1.0.0","name":%q,"plugins":[{%s},{"type":"bcsnet-announce"}]}`, name, ours(name))
	}
	n.definition("default", "conflist", list(blue))
	n.definition("default", "plain", fmt.Sprintf(`{"cniVersion":"0.3.1","name":%q,%s}`, blue, ours(blue)))
	n.definition("default", "nameless", fmt.Sprintf(`{"cniVersion":"0.3.1",%s}`, ours(blue)))
	n.definition("default", "versionless", fmt.Sprintf(`{"name":%q,%s}`, blue, ours(blue)))
	n.definition("default", "oldest", fmt.Sprintf(`{"cniVersion":"0.1.0",%s}`, ours(blue)))
	n.definition("default", "bare", fmt.Sprintf(`{%s}`, ours(blue)))
	n.definition("default", "red", list(red))
	n.definition(other, "elsewhere", list(blue))
	for name, test := range map[string]struct {
		networks   string
		interfaces []string
		// address, mac and gateway are those of net1, where the pod asks for them.
		address, mac, gateway string
		// unseen: Multus shows no addresses of a network of 0.1.0 or 0.2.0, which one without a version is.
		unseen bool
	}{
		"conflist":          {networks: "conflist", interfaces: []string{"net1"}},
		"one plugin":        {networks: "plain", interfaces: []string{"net1"}},
		"without a name":    {networks: "nameless", interfaces: []string{"net1"}},
		"without a version": {networks: "versionless", interfaces: []string{"net1"}, unseen: true},
		"without either":    {networks: "bare", interfaces: []string{"net1"}, unseen: true},
		"0.1.0":             {networks: "oldest", interfaces: []string{"net1"}, unseen: true},
		"another namespace": {networks: other + "/elsewhere", interfaces: []string{"net1"}},
		"named interface":   {networks: "conflist@lan0", interfaces: []string{"lan0"}},
		"the same twice":    {networks: "conflist,conflist", interfaces: []string{"net1", "net2"}},
		"two pools":         {networks: "conflist,red", interfaces: []string{"net1", "net2"}},
		"three interfaces":  {networks: "conflist, red@x0, default/plain@x1", interfaces: []string{"net1", "x0", "x1"}},
		"address and MAC": {
			networks:   fmt.Sprintf(`[{"name":"conflist","ips":["%s/24"],"mac":"02:00:00:00:00:31"}]`, n.addr(31)),
			interfaces: []string{"net1"}, address: n.addr(31), mac: "02:00:00:00:00:31",
		},
		"default route": {
			networks:   fmt.Sprintf(`[{"name":"conflist","default-route":[%q]}]`, n.addr(254)),
			interfaces: []string{"net1"}, gateway: n.addr(254),
		},
	} {
		t.Run(name, func(t *testing.T) {
			part := *n
			part.node = n.on(t)
			p := part.container(strings.NewReplacer(" ", "-", ".", "-").Replace("form " + strings.ToLower(name)))
			part.annotate(p, test.networks)
			defer func() {
				part.does("del", p)
				if got := part.active()[p.uid]; got > 0 {
					t.Errorf("after DEL the pod has %d addresses", got)
				}
			}()
			wantActive := func(when string) {
				t.Helper()
				if got := part.active()[p.uid]; got != 1+len(test.interfaces) {
					t.Errorf("%s: the pod has %d addresses, want %d", when, got, 1+len(test.interfaces))
				}
			}
			part.does("add", p)
			wantActive("added")
			shown := part.shown(p)
			for _, name := range test.interfaces {
				p.ifName = name
				addrs, routes := p.configured()
				ips := shown[name].IPs
				if len(addrs) != 1 || !test.unseen && (len(ips) != 1 || !strings.HasPrefix(addrs[0], ips[0]+"/")) {
					t.Errorf("%s has %v, and Multus shows %v", name, addrs, ips)
				}
				if want := "192.0.2.0/24 via " + part.addr(254); !slices.Contains(routes, want) && name == test.interfaces[0] {
					t.Errorf("%s has the routes %v, want %s", name, routes, want)
				}
				if slices.Contains(shown[name].Gateway, "<nil>") {
					t.Errorf("Multus shows the gateways %v", shown[name].Gateway)
				}
			}
			if got := shown["net1"]; test.address != "" && (got.IPs[0] != test.address || got.Mac != test.mac) {
				t.Errorf("Multus shows %+v, want %s and %s", got, test.address, test.mac)
			}
			if test.gateway != "" {
				p.ifName = "net1"
				if _, routes := p.configured(); !slices.Contains(routes, "0.0.0.0/0 via "+test.gateway) {
					t.Errorf("routes %v, want a default one via %s", routes, test.gateway)
				}
			}
			part.does("start", p) // CHECK of all interfaces, then GC
			wantActive("CRI-O has started again")
		})
	}
}

// TestBehindTuning has a plugin after ours change what ours set: CRI-O's CHECK goes by the result of the last plugin. A
// pod is no worse while no replica answers.
func TestBehindTuning(t *testing.T) {
	t.Parallel()
	n := newCRIO(t)
	n.pool("", func(s *v1.BCSNetPoolSpec) { s.MTU = 1450 }, 20)
	n.configured("10-bcsnet.conflist", `{"cniVersion":"1.0.0","name":"pods","plugins":[
		{"type":"bridge","bridge":"cni0","ipam":{"type":"bcsnet-ipam"}}, {"type":"bcsnet-announce","mac":true},
		{"type":"tuning","mac":"02:00:00:00:00:77","mtu":1400,"sysctl":{"net.ipv4.conf.IFNAME.arp_notify":"1"}}]}`)
	p := n.container("web")
	n.does("add", p)
	p.netns.Do(t, func() error {
		link, err := netlink.LinkByName("eth0")
		if err == nil && (link.Attrs().MTU != 1400 || link.Attrs().HardwareAddr.String() != "02:00:00:00:00:77") {
			err = fmt.Errorf("eth0 has the MTU %d and the MAC %s", link.Attrs().MTU, link.Attrs().HardwareAddr)
		}
		return err
	})
	n.does("start", p)
	config := n.read("etc/config.json")
	n.configure("cluster", "c1", "host", n.Host, "replicas", []string{"https://127.0.0.1:1"})
	if err := n.call("start", p); err != nil && !strings.Contains(err.Error(), "failed to GC") {
		t.Errorf("a CHECK without a replica: %v", err)
	}
	if lines := n.lines("CHECK"); !slices.Contains(lines, "unanswered") {
		t.Errorf("calls.log has %v of CHECK", lines)
	}
	n.write("etc/config.json", config)
	p.netns.Do(t, func() error {
		link, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		return netlink.LinkSetHardwareAddr(link, []byte{2, 0, 0, 0, 0, 0x78})
	})
	n.wantError(n.call("start", p), "02:00:00:00:00:77", "02:00:00:00:00:78")
	n.does("del", p)
	n.wantFree(n.addr(20))
}

// cnitool runs the CNI project's own tool on the node, for a pod.
func (c *crio) cnitool(verb, network string, p *container) error {
	c.Helper()
	env := []string{
		"PATH=" + os.Getenv("PATH"), "NETCONFPATH=" + c.confs, "CNI_PATH=" + c.bin,
		fmt.Sprintf("CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=%s;K8S_POD_UID=%s", p.pod, p.uid),
	}
	var err error
	c.host.Do(c.T, func() error {
		_, err = c.run(c.Context(), nil, env, filepath.Join(c.bin, "cnitool"), verb, network, p.netns.Path())
		return nil
	})
	return err
}

// TestCnitool has the CNI project's tool do all that it can, in the forms of configuration that libcni reads. It sends
// a GC without a list: we free nothing then, and libcni sends a DEL for whatever the tool attached.
func TestCnitool(t *testing.T) {
	t.Parallel()
	n := newCRIO(t)
	n.before = `mkdir -p "$TEST_DIR/state/libcni" /var/lib/cni/results; mount --bind "$TEST_DIR/state/libcni" /var/lib/cni/results`
	n.pool("", nil, 20)
	plugin := `"type":"bridge","bridge":"cni0","ipam":{"type":"bcsnet-ipam"}`
	chained := `"plugins":[{` + plugin + `},{"type":"bcsnet-announce"}]}`
	checked, former := []string{"add", "check", "del", "del"}, []string{"add", "del", "del"}
	for i, form := range []struct {
		text  string
		verbs []string
	}{
		{`"cniVersion":"1.1.0",` + chained, []string{"status", "add", "check", "gc", "del"}},
		{`"cniVersion":"1.0.0",` + chained, checked},
		{`"cniVersion":"0.4.0",` + chained, checked},
		{`"cniVersion":"0.4.0",` + plugin + "}", checked},
		{`"cniVersion":"0.3.1",` + plugin + "}", former},
		{`"cniVersion":"0.2.0",` + plugin + "}", former},
		{plugin + "}", former},
	} {
		name, file := fmt.Sprintf("form%d", i), "conf"
		if strings.Contains(form.text, "plugins") {
			file = "conflist"
		}
		n.configured(fmt.Sprintf("%d0.%s", i, file), fmt.Sprintf(`{"name":%q,%s`, name, form.text))
		p := n.container(name)
		for _, verb := range form.verbs {
			err := n.cnitool(verb, name, p)
			if verb == "gc" {
				n.wantError(err, "a GC without cni.dev/valid-attachments; nothing is collected")
			} else if err != nil {
				t.Errorf("%s, %s: %v", form.text, verb, err)
			}
			want := 0
			if verb == "add" || verb == "check" {
				want = 1
			}
			if got := n.active()[p.uid]; got != want {
				t.Errorf("%s: after %s the pod has %d addresses, want %d", form.text, verb, got, want)
			}
		}
	}
}
