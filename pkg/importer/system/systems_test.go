package system

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/importer"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// source returns a source of the objects of a file in testdata. The resource of a kind is its plural in lower case.
// Kinds without objects are not served.
func source(t *testing.T, name string) Source {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	byKind := map[string][]unstructured.Unstructured{}
	for doc := range strings.SplitSeq(string(text), "\n---\n") {
		var o unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(doc), &o.Object); err != nil {
			t.Fatal(err)
		}
		name := strings.ToLower(o.GetKind()) + "s"
		if o.GetKind() == "NetworkAttachmentDefinition" {
			name = "network-attachment-definitions"
		}
		name += "/" + o.GetAPIVersion()
		byKind[name] = append(byKind[name], o)
	}
	get := func(_ context.Context, kind schema.GroupVersionResource, namespace, name string) (
		*unstructured.Unstructured, bool, error,
	) {
		for _, o := range byKind[kind.Resource+"/"+kind.GroupVersion().String()] {
			if o.GetNamespace() == namespace && o.GetName() == name {
				return &o, true, nil
			}
		}
		return nil, false, nil
	}
	return Source{Get: get, Each: func(_ context.Context, kind schema.GroupVersionResource, fn func([]byte) error) (
		served bool, err error,
	) {
		items, served := byKind[kind.Resource+"/"+kind.GroupVersion().String()]
		for _, o := range items {
			text, err := o.MarshalJSON()
			if err == nil {
				err = fn(text)
			}
			clear(text) // nobody may keep it
			if err != nil {
				return true, err
			}
		}
		return served, nil
	}}
}

// read reads a system that has some objects, by their resources.
func read(t *testing.T, of System, kinds map[string][]any) importer.Rows {
	t.Helper()
	rows, err := of.Read(t.Context(), Source{Each: func(
		_ context.Context, kind schema.GroupVersionResource, fn func([]byte) error,
	) (bool, error) {
		for _, o := range kinds[kind.Resource] {
			text, err := json.Marshal(o)
			if err == nil {
				err = fn(text)
			}
			if err != nil {
				return true, err
			}
		}
		_, served := kinds[kind.Resource]
		return served, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func manifests[T any](all []T) (out []any) {
	for _, o := range all {
		out = append(out, o)
	}
	return out
}

// plan reads a system and plans its import beside some pods; it says the plan in lines.
func plan(t *testing.T, of System, from Source, here []v1.BCSNetPool, pods ...workload.Pod) string {
	t.Helper()
	rows, err := of.Read(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	x := index.New()
	if len(here) > 0 {
		importer.Make(importer.Input{Rows: importer.Rows{Pools: here}, Index: x})
	}
	got := importer.Make(importer.Input{
		Rows: rows, Index: x, Pods: pods, Now: time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC), By: "me",
	})
	var lines []string
	for _, p := range got.Pools {
		s := p.Spec
		line := fmt.Sprintf("pool %s %s/%d %v", p.Name, s.Net, s.Mask, s.AvailableIPs)
		for _, field := range []struct {
			name  string
			value any
		}{
			{"-", s.ExcludeIPs}, {"gw ", s.Gateway}, {"vlan ", s.VLAN}, {"mtu ", s.MTU}, {"network ", s.Network},
			{"routes ", s.Routes}, {"ns ", s.Namespaces},
		} {
			if text := fmt.Sprint(field.value); text != "[]" && text != "0" && text != "" {
				line += " " + field.name + text
			}
		}
		if s.Default != nil {
			line += fmt.Sprintf(" default %t", *s.Default)
		}
		if !s.Cordoned || s.HostSelector == nil {
			line += fmt.Sprintf(" cordoned %t nodes %t", s.Cordoned, s.HostSelector != nil)
		}
		lines = append(lines, line)
	}
	for _, l := range got.Leases {
		text := fmt.Sprintf("%s %s %s uid=%s c=%s if=%s", l.Addr, l.Pool, l.Who(), l.PodUID, l.ContainerID, l.IfName)
		if l.State == lease.Reserved {
			last, _ := l.History.Last()
			text = fmt.Sprintf("%s %s %s", l.Addr, l.Pool, last.Reason)
		}
		lines = append(lines, text)
	}
	for _, r := range got.Conflicts {
		lines = append(lines, "conflict "+r.Object+": "+r.Cause)
	}
	for _, r := range got.Left {
		lines = append(lines, "left "+r.Object+": "+r.Cause)
	}
	if got.Elsewhere > 0 {
		lines = append(lines, fmt.Sprintf("in no pool: %d", got.Elsewhere))
	}
	return strings.Join(lines, "\n")
}

func want(t *testing.T, got, want string) {
	t.Helper()
	if diff := cmp.Diff(strings.TrimSpace(want), got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestWhereabouts(t *testing.T) {
	web := running("web", "192.168.0.9", "10.1.0.20", "fd00:2::5")
	got := plan(t, whereabouts(), source(t, "whereabouts"), nil, web, running("db", "10.1.0.25"), running("job", "10.2.0.6"))
	want(t, got, `
pool lan 10.1.0.0/24 [10.1.0.20-10.1.0.40] -[10.1.0.30-10.1.0.31] gw 10.1.0.1 network lan routes [{10.8.0.0/16 }]
pool both 10.2.0.0/24 [10.2.0.5-10.2.0.9] vlan 7 mtu 1400 network both
pool both-fd00-2---64 fd00:2::/64 [fd00:2::/64] vlan 7 mtu 1400 network both
pool whereabouts-10-7-0-0-24 10.7.0.0/24 [10.7.0.0/24] network whereabouts-10-7-0-0-24
10.1.0.20 lan shop/web uid=u-web c=c-web if=net1
10.1.0.21 lan shop/gone uid= c=c-gone if=net1
10.1.0.22 lan whereabouts: shop/db has it there, but reports 10.1.0.25
10.2.0.6 both shop/job uid=u-job c=c-job if=net1
10.7.0.9 whereabouts-10-7-0-0-24 shop/left uid= c=c-left if=eth0
fd00:2::5 both-fd00-2---64 shop/web uid=u-web c=c-web if=net2
conflict NetworkAttachmentDefinition web/wrong: range "10.3.0.0": netip.ParsePrefix("10.3.0.0"): no '/'
conflict IPPool kube-system/10.1.0.0-24: allocation "300" lies outside 10.1.0.0/24
conflict IPPool kube-system/10.1.0.0-24, allocation 22: shop/db has it there, but reports 10.1.0.25
left NetworkAttachmentDefinition shop/again: its range 10.1.0.0/24 is that of NetworkAttachmentDefinition shop/lan, whose settings the pool has
left NetworkAttachmentDefinition web/text: its config cannot be read: invalid character 'y' in literal true (expecting 'r')
left IPPool kube-system/10.7.0.0-24: no NetworkAttachmentDefinition has its range 10.7.0.0/24: gateway, VLAN and routes are not known
`)
}

func TestSpiderpool(t *testing.T) {
	got := plan(t, spiderpool(), source(t, "spiderpool"), nil, running("web", "10.1.0.20"), running("db", "10.1.0.22"))
	want(t, got, `
pool blue 10.1.0.0/24 [10.1.0.20-10.1.0.40] -[10.1.0.30] gw 10.1.0.1 vlan 5 routes [{10.8.0.0/16 10.1.0.2}] ns [shop]
pool red fd00:1::/64 [fd00:1::10-fd00:1::20] default false
10.1.0.20 blue shop/web uid=u-web c= if=eth0
10.1.0.21 blue shop/web uid=u-before c= if=net1
10.1.0.22 blue shop/db uid=u-db c= if=eth0
10.1.0.35 blue spiderpool: SpiderReservedIP printers
10.1.0.36 blue spiderpool: SpiderReservedIP printers
conflict SpiderIPPool red: its allocatedIPs cannot be read: invalid character 'o' in literal null (expecting 'u')
conflict SpiderIPPool wrong: subnet "10.1.0.0": netip.ParsePrefix("10.1.0.0"): no '/'
conflict SpiderReservedIP printers: 10.0.0.0/8 has more than 1024 addresses: exclude them in the pool
conflict SpiderReservedIP printers: "x" is not an address, a range a-b or a CIDR
left SpiderIPPool red: its podAffinity has no equivalent: name the pool in the annotations of those pods
`)
}

func TestCalico(t *testing.T) {
	got := plan(t, calico(), source(t, "calico"), nil, running("web", "10.1.0.1"))
	want(t, got, `
pool default-ipv4 10.1.0.0/24 [10.1.0.0/24]
pool rack 10.2.0.0/24 [10.2.0.0/24] cordoned true nodes false
10.1.0.1 default-ipv4 shop/web uid=u-web c=c-web if=eth0
10.1.0.2 default-ipv4 calico: Calico: vxlan-tunnel-addr-n1
10.1.0.254 default-ipv4 calico: IPReservation gateways
conflict IPAMBlock 10-1-0-0-30: 10.1.0.3 has attributes 7, which do not exist
conflict IPAMBlock short: it has more allocations than 10.1.0.8/31 has addresses
left IPPool rack: its nodeSelector "rack == \"a\"" is not taken over: say which hosts may draw from the pool: bcsnetctl pool edit rack
`)
}

func TestKubeOVN(t *testing.T) {
	got := plan(t, kubeOVN(), source(t, "kube-ovn"), nil, running("web", "10.1.0.20", "fd00:1::20"))
	want(t, got, `
pool lan 10.1.0.0/24 [10.1.0.0/24] -[10.1.0.1 10.1.0.10-10.1.0.12] gw 10.1.0.1 mtu 1400 network lan ns [shop]
pool lan-ipv6 fd00:1::/64 [fd00:1::/64] -[fd00:1::1] gw fd00:1::1 mtu 1400 network lan ns [shop]
10.1.0.2 lan kube-ovn: Kube-OVN: node-n1
10.1.0.20 lan shop/web uid=u-web c=c-web if=eth0
10.1.0.50 lan kube-ovn: Vip shop keepalived
fd00:1::20 lan-ipv6 shop/web uid=u-web c=c-web if=eth0
`)
}

// lan is a pool that is here before the import.
func lan() []v1.BCSNetPool {
	p := importer.Pool("lan")
	p.Spec = v1.BCSNetPoolSpec{Net: "10.1.0.0", Mask: 24, AvailableIPs: []string{"10.1.0.0/24"}}
	return []v1.BCSNetPool{p}
}

func TestHostLocal(t *testing.T) {
	dirs := map[string]string{}
	for path, content := range map[string]string{
		"n1/10.1.0.20": "c-web\r\neth0", "n1/10.1.0.21": "c-gone\r\neth0", "n1/10.1.0.22": "c-old", "n1/last_reserved_ip.0": "10.1.0.22",
		"n1/lock": "", "n1/note": "x", "n1/10.1.0.23": "", "n1/10.1.0.24": "c-a\r\neth0", "n1/10.9.0.1": "c-b\r\neth0",
		"n2/10.1.0.24": "c-b\r\neth0", "n1/10.1.0.25": strings.Repeat("x", 5000),
	} {
		root := t.TempDir()
		node, file, _ := strings.Cut(path, "/")
		if dirs[node] == "" {
			dirs[node] = root
		}
		if err := os.WriteFile(filepath.Join(dirs[node], file), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := plan(t, hostLocal(), Source{Dirs: dirs}, lan(), running("web", "10.1.0.20"), running("old", "10.1.0.22"))
	want(t, got, `
10.1.0.20 lan shop/web uid=u-web c=c-web if=eth0
10.1.0.21 lan host-local: container c-gone has it there, but no running pod reports it
10.1.0.22 lan shop/old uid=u-old c=c-old if=eth0
10.1.0.23 lan host-local: the file is empty
10.1.0.24 lan host-local: file 10.1.0.24 of node n1 has container c-a, and file 10.1.0.24 o…
conflict file 10.1.0.25 of node n1: it is larger than 4096 bytes
conflict file 10.1.0.21 of node n1: container c-gone has it there, but no running pod reports it
conflict file 10.1.0.23 of node n1: the file is empty
conflict file 10.1.0.24 of node n1: file 10.1.0.24 of node n1 has container c-a, and file 10.1.0.24 of node n2 has container c-b
conflict file 10.9.0.1 of node n1: 10.9.0.1 belongs to no pool
left file note of node n1: its name is not an address
`)
}

func TestTable(t *testing.T) {
	write := func(content string) Source {
		path := filepath.Join(t.TempDir(), "t.csv")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return Source{Files: []string{path}}
	}
	for name, tc := range map[string]struct{ content, want string }{
		"NetBox": {
			"\ufeffaddress,status,dns_name,description,tenant\n10.1.0.20/24,active,printer.example,\"Floor 2, left\",IT\n10.1.0.21/24,Deprecated,,,\n\n10.1.0.22/24,dhcp,,,\n",
			"10.1.0.20 lan csv: printer.example IT\n10.1.0.22 lan csv: dhcp\nleft TABLE: 1 row is not in use",
		},
		"phpIPAM, semicolons": {
			"ip address;ip state;description;hostname\n10.1.0.30;Used;a, b;switch-1\nx;Used;;\n10.9.0.1;Used;;\n",
			"10.1.0.30 lan csv: switch-1\nconflict line 3: \"x\" is not an IP address\nin no pool: 1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			from := write(tc.content)
			want(t, strings.ReplaceAll(plan(t, table(), from, lan()), from.Files[0], "TABLE"), tc.want)
		})
	}
	for name, tc := range map[string]struct{ content, want string }{
		"empty":       {"", "it has no heading"},
		"no address":  {"name,status\na,b\n", "line 2 has no address: a column address, ip_address or ip is needed"},
		"Latin-1":     {"address,description\n10.1.0.20,B\xfcro\n", "line 2 is not UTF-8"},
		"stray quote": {"address,description\n10.1.0.20,\"a\nb\n", "quote"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := readTables(t.Context(), write(tc.content)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}

// TestExcluded: what is excluded beyond the subnet is cut to it, and what cannot be read is said.
func TestExcluded(t *testing.T) {
	r := &rows{}
	got := r.excluded("lan", netip.MustParsePrefix("10.1.0.0/24"),
		[]string{"10.1.0.250-10.1.1.9", "10.0.0.0/15", "10.9.0.0/24", "fd00::/64", "10.1.0.7", "x"})
	want(t, strings.Join(got, " "), "10.1.0.250-10.1.0.255 10.1.0.0-10.1.0.255 10.1.0.7")
	want(t, fmt.Sprint(r.Conflicts), `[{lan excluded range "x": "x" is not an address, a range a-b or a CIDR}]`)
}

// TestSystems: each system says what it reads, and one whose kinds the cluster does not serve says so.
func TestSystems(t *testing.T) {
	nothing := Source{
		Each: func(context.Context, schema.GroupVersionResource, func([]byte) error) (bool, error) {
			return false, nil
		},
		Get: func(context.Context, schema.GroupVersionResource, string, string) (*unstructured.Unstructured, bool, error) {
			return nil, false, nil
		},
	}
	for _, of := range All() {
		if of.Title == "" || of.About == "" || of.Example == "" {
			t.Errorf("system %s lacks help", of.Name)
		}
		rows, err := of.Read(t.Context(), nothing)
		if rows.System != of.Name { // it labels what an import makes
			t.Errorf("system %s yields rows of %q", of.Name, rows.System)
		}
		if of.Dirs || of.Files {
			continue
		}
		if err == nil || !strings.Contains(err.Error(), "nothing to take over") {
			t.Errorf("system %s: %v", of.Name, err)
		}
	}
}

// TestPoolsHere: a pool whose addresses a pool here has under another name is left out. Its addresses are taken over
// into that pool.
func TestPoolsHere(t *testing.T) {
	got := plan(t, spiderpool(), source(t, "spiderpool-beside"),
		lan(), running("web", "10.1.0.20"))
	want(t, got, `
10.1.0.20 lan shop/web uid=u-web c= if=eth0
left pool blue: pool lan here has addresses of it
`)
}

// TestOneAddressOfTwo: of two holders of one address the one whose pod reports it has it.
func TestOneAddressOfTwo(t *testing.T) {
	a := netip.MustParseAddr("10.1.0.20")
	held := func(name string) importer.Address {
		return importer.Address{Addr: a, Object: "object of " + name, State: importer.Held,
			Holder: lease.Holder{Namespace: "shop", PodName: name}}
	}
	kept := importer.Address{Addr: a, Object: "kept", State: importer.Kept, Reason: "printer"}
	for name, tc := range map[string]struct {
		rows []importer.Address
		want string
	}{
		"held before kept":     {[]importer.Address{kept, held("web")}, "shop/web"},
		"the reporter":         {[]importer.Address{held("db"), held("web")}, "shop/web"},
		"the reporter, first":  {[]importer.Address{held("web"), held("db"), kept}, "shop/web"},
		"the same twice":       {[]importer.Address{held("db"), held("db")}, "shop/web"},
		"nobody who reports":   {[]importer.Address{held("db"), held("job")}, ""},
		"nobody, but reserved": {[]importer.Address{kept}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			x := index.New()
			got := importer.Make(importer.Input{
				Rows: importer.Rows{System: "s", Pools: lan(), Addresses: tc.rows}, Index: x,
				Pods: []workload.Pod{running("web", "10.1.0.20")}, Now: time.Now(),
			})
			if len(got.Leases) != 1 || got.Leases[0].State == lease.Active && got.Leases[0].Who() != tc.want {
				t.Errorf("planned %+v", got.Leases)
			}
		})
	}
}
