package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// written is a real IPAM plugin of another system, and what its calls answered.
type written struct {
	f       *fixture
	program string
	// config has the network configurations by name.
	config map[string]string
	// statuses are the networks that each pod reports.
	statuses map[string][]networkStatus
}

type networkStatus struct {
	Name      string   `json:"name"`
	Interface string   `json:"interface"`
	IPs       []string `json:"ips"`
}

// haveWritten finds the plugin; without it the test is skipped.
func (f *fixture) haveWritten(t *testing.T, plugin string) *written {
	t.Helper()
	root, err := controlplane.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	w := &written{
		f: f, program: filepath.Join(root, "bin", "cni", plugin), config: map[string]string{},
		statuses: map[string][]networkStatus{},
	}
	if _, err := os.Stat(w.program); err != nil {
		t.Skipf("skipped: run hack/cni/build.sh first, which builds %s: %v", plugin, err)
	}
	return w
}

// call runs the plugin as a runtime does, for an interface of a pod.
func (w *written) call(t *testing.T, command, network, pod, ifName string) (ips []string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), w.program)
	cmd.Stdin = strings.NewReader(w.config[network])
	cmd.Env = append(os.Environ(), "CNI_COMMAND="+command, "CNI_CONTAINERID=c-"+pod, "CNI_NETNS=/var/run/netns/"+pod,
		"CNI_NETNS_OVERRIDE=1", "CNI_IFNAME="+ifName, "CNI_PATH="+filepath.Dir(w.program),
		"CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME="+pod)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s of %s for %s: %v\n%s%s", command, network, pod, err, out, said.Bytes())
	}
	if command != "ADD" {
		return nil
	}
	var result struct {
		IPs []struct {
			Address netip.Prefix `json:"address"`
		} `json:"ips"`
	}
	if err := json.Unmarshal(out, &result); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, ip := range result.IPs {
		ips = append(ips, ip.Address.Addr().String())
	}
	return ips
}

// add adds an interface of a pod, which reports it.
func (w *written) add(t *testing.T, network, pod, ifName string) {
	t.Helper()
	w.statuses[pod] = append(w.statuses[pod],
		networkStatus{"default/" + network, ifName, w.call(t, "ADD", network, pod, ifName)})
}

// run makes pods that report what the plugin gave them.
func (w *written) run(t *testing.T, pods ...string) {
	t.Helper()
	for _, name := range pods {
		text, err := json.Marshal(w.statuses[name])
		if err != nil {
			t.Fatal(err)
		}
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name,
			Annotations: map[string]string{"k8s.v1.cni.cncf.io/network-status": string(text)}}}
		p.Spec = corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "c", Image: "i"}}}
		if err := w.f.client.Create(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		p.Status = corev1.PodStatus{Phase: corev1.PodRunning, StartTime: new(metav1.Now()), HostIP: "10.0.0.11",
			HostIPs: []corev1.HostIP{{IP: "10.0.0.11"}}}
		if err := w.f.client.Status().Update(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
}

// has fails unless the addresses here are as in lines.
func (w *written) has(t *testing.T, want string) {
	t.Helper()
	var all v1.BCSNetIPList
	if err := w.f.client.List(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, ip := range all.Items {
		s := ip.Status
		line := fmt.Sprintf("%s %s %s", ip.Name, ip.Spec.Pool, s.Status)
		if s.Status == v1.IPActive {
			line += fmt.Sprintf(" %s %s %s host=%s uid=%t", s.PodName, s.ContainerID, s.IfName, s.Host, s.PodUID != "")
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	if diff := cmp.Diff(strings.TrimSpace(want), strings.Join(lines, "\n")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// twice imports, and again: the second time there is nothing to do.
func (w *written) twice(t *testing.T, args ...string) (stderr string) {
	t.Helper()
	_, stderr = w.f.call(t, slices.Concat([]string{"import"}, args, []string{"--yes"})...)
	contains(t, stderr, "read back: ")
	_, again := w.f.call(t, slices.Concat([]string{"import"}, args, []string{"--yes"})...)
	contains(t, again, "nothing to take over")
	return stderr
}

// TestImportOfWhereaboutsObjects: what the real plugin of Whereabouts writes is taken over, for each form in which its
// configuration names ranges, and the pools exclude what it excludes.
func TestImportOfWhereaboutsObjects(t *testing.T) {
	f := newFixture(t)
	w := f.haveWritten(t, "whereabouts")
	if err := f.wipe(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.haveReadyNode(t, "node-1", "10.0.0.11")
	crds, err := controlplane.WhereaboutsCRDs()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	kubeconfig, flat := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "whereabouts.conf")
	if err := controlplane.WriteKubeconfigFor(cluster.Config, kubeconfig); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(flat, fmt.Appendf(nil, `{"kubernetes":{"kubeconfig":%q}}`, kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	var definitions []string
	for name, ipam := range map[string]string{
		"lan": `"range":"10.1.0.0/24","exclude":["10.1.0.1","10.1.0.6/30"],"gateway":"10.1.0.1"`,
		"two": `"ipRanges":[{"range":"10.2.0.5-10.2.0.9/24"},{"range":"fd00:2::/64","exclude":["fd00:2::1/128"]}]`,
		"odd": `"range":"10.3.0.77/26","range_start":"10.3.0.70","range_end":"10.3.0.80"`,
		"own": `"network_name":"own","range":"10.4.0.0/28"`,
	} {
		w.config[name] = fmt.Sprintf(`{"cniVersion":"1.0.0","name":%q,"type":"macvlan","master":"eth1","ipam":{`+
			`"type":"whereabouts","configuration_path":%q,%s}}`, name, flat, ipam)
		definitions = append(definitions, fmt.Sprintf("apiVersion: k8s.cni.cncf.io/v1\nkind: NetworkAttachmentDefinition\n"+
			"metadata: {name: %s, namespace: default}\nspec: {config: '%s'}\n", name, w.config[name]))
	}
	f.haveObjects(t, crds+"\n---\n"+
		crd("k8s.cni.cncf.io", "v1", "NetworkAttachmentDefinition", "network-attachment-definitions", "Namespaced"),
		strings.Join(definitions, "---\n"))
	w.add(t, "lan", "web", "net1")
	w.add(t, "lan", "job", "net1")
	w.add(t, "lan", "db", "net1")
	w.add(t, "lan", "db", "net2")
	w.add(t, "two", "db", "net3")
	w.add(t, "odd", "web", "net2")
	w.add(t, "own", "web", "net3")
	w.add(t, "lan", "gone", "net1")
	w.call(t, "DEL", "lan", "job", "net1")
	w.run(t, "web", "db")

	if stderr := w.twice(t, "whereabouts"); strings.Contains(stderr, "! ") || strings.Contains(stderr, "left: ") {
		t.Errorf("something is not taken over:\n%s", stderr)
	}
	w.has(t, `
10.1.0.10 lan Active gone c-gone net1 host= uid=false
10.1.0.2 lan Active web c-web net1 host=10.0.0.11 uid=true
10.1.0.8 lan Active db c-db net1 host=10.0.0.11 uid=true
10.1.0.9 lan Active db c-db net2 host=10.0.0.11 uid=true
10.2.0.5 two Active db c-db net3 host=10.0.0.11 uid=true
10.3.0.70 odd Active web c-web net2 host=10.0.0.11 uid=true
10.4.0.1 own Active web c-web net3 host=10.0.0.11 uid=true
fd00-0002-0000-0000-0000-0000-0000-0002 two-fd00-2---64 Active db c-db net3 host=10.0.0.11 uid=true
`)
	_, stderr := f.call(t, "import", "nads")
	contains(t, stderr, "default/lan: whereabouts becomes network lan", "default/two: whereabouts becomes network two",
		"default/odd: whereabouts becomes network odd", "default/own: whereabouts becomes network own")
}

// TestImportOfHostLocalFiles: what the real host-local writes on two nodes is taken over. An address of which no
// running pod tells is reserved.
func TestImportOfHostLocalFiles(t *testing.T) {
	f := newFixture(t)
	w := f.haveWritten(t, "host-local")
	f.havePool(t)
	f.haveReadyNode(t, "node-1", "10.0.0.11")
	p := &v1.BCSNetPool{Spec: v1.BCSNetPoolSpec{Net: "fd00:1::", Mask: 64, AvailableIPs: []string{"fd00:1::/64"}}}
	p.Name = "blue-6"
	if err := f.client.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	args := []string{"host-local"}
	for node, ranges := range map[string]string{
		"n1": `[{"subnet":"10.1.0.0/24","rangeStart":"10.1.0.20","rangeEnd":"10.1.0.29"}],[{"subnet":"fd00:1::/64"}]`,
		"n2": `[{"subnet":"10.1.0.0/24","rangeStart":"10.1.0.30","rangeEnd":"10.1.0.39","gateway":"10.1.0.1"}]`,
	} {
		dir := t.TempDir()
		w.config[node] = fmt.Sprintf(`{"cniVersion":"1.0.0","name":"lan","type":"bridge","ipam":{"type":"host-local",`+
			`"dataDir":%q,"ranges":[%s],"routes":[{"dst":"0.0.0.0/0"}]}}`, dir, ranges)
		args = append(args, "--dir", node+"="+filepath.Join(dir, "lan"))
	}
	w.add(t, "n1", "web", "eth0")
	w.add(t, "n1", "job", "eth0")
	w.add(t, "n2", "db", "eth0")
	w.add(t, "n2", "gone", "eth0")
	w.call(t, "DEL", "n1", "job", "eth0")
	w.run(t, "web", "db")

	contains(t, w.twice(t, args...),
		"file 10.1.0.31 of node n2: container c-gone has it there, but no running pod reports it")
	w.has(t, `
10.1.0.20 blue Active web c-web eth0 host=10.0.0.11 uid=true
10.1.0.30 blue Active db c-db eth0 host=10.0.0.11 uid=true
10.1.0.31 blue Reserved
fd00-0001-0000-0000-0000-0000-0000-0002 blue-6 Active web c-web eth0 host=10.0.0.11 uid=true
`)
}
