package system

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bcsnet/bcsnet/pkg/importer"
)

func TestGalaxy(t *testing.T) {
	want(t, plan(t, galaxy(), source(t, "galaxy"), nil, running("web", "10.0.70.20"), running("job", "10.0.70.23")), `
pool floatingip-10.0.70.0-24 10.0.70.0/24 [10.0.70.2~10.0.70.241] gw 10.0.70.1 vlan 2 cordoned true nodes false
10.0.70.20 floatingip-10.0.70.0-24 shop/web uid=u-web c= if=eth0
10.0.70.21 floatingip-10.0.70.0-24 galaxy: kept for StatefulSet shop/db (immutable)
10.0.70.22 floatingip-10.0.70.0-24 galaxy: kept for Deployment shop/api (never)
10.0.70.23 floatingip-10.0.70.0-24 shop/job uid=u-job c= if=eth0
10.0.70.24 floatingip-10.0.70.0-24 galaxy: kept for the shared pool blue
10.0.70.25 floatingip-10.0.70.0-24 galaxy: its key "half_deleted" names no pod
conflict FloatingIP not-an-address: "not-an-address" is not an IP address
conflict FloatingIP 10.0.70.25: its key "half_deleted" names no pod
conflict FloatingIP 10.0.99.1: 10.0.99.1 belongs to no pool
`)
}

func TestIPKeeper(t *testing.T) {
	want(t, plan(t, ipkeeper(), source(t, "crd-ipkeeper"), nil, running("web", "172.16.91.142")), `
pool ipkeeper-172-16-91-0-24 172.16.91.0/24 [172.16.91.142 172.16.91.143 172.16.91.144 172.16.91.181] gw 172.16.91.2 default false
172.16.91.142 ipkeeper-172-16-91-0-24 shop/web uid=u-web c= if=eth0
conflict StaticIP shop/damaged: address "172.16.91.182": netip.ParsePrefix("172.16.91.182"): no '/'
conflict StaticIP shop/damaged: address "300.1.1.1/24": netip.ParsePrefix("300.1.1.1/24"): ParseAddr("300.1.1.1"): IPv4 field has value >255
left StaticIP shop/pod-devops: its gateway is 172.16.91.3; pool ipkeeper-172-16-91-0-24 has 172.16.91.2 of another StaticIP
`)
}

func TestHostnic(t *testing.T) {
	want(t, plan(t, hostnicCNI(), source(t, "hostnic"), nil, running("web", "172.16.3.2"), running("job", "172.16.4.1")), `
pool vxnet-a 172.16.3.0/24 [172.16.3.0/24] -[172.16.3.0-172.16.3.1 172.16.3.254-172.16.3.255] gw 172.16.3.254
pool vxnet-a-172-16-3-0-26 172.16.3.0/24 [172.16.3.0/26] gw 172.16.3.254 ns [shop] cordoned true nodes false
pool vxnet-b 172.16.4.0/24 [172.16.4.0/24]
172.16.3.2 vxnet-a-172-16-3-0-26 shop/web uid=u-web c=c0ffee if=eth0
172.16.4.1 vxnet-b shop/job uid=u-job c=beef if=eth0
conflict IPAMBlock 4100-172-16-4-0-26: 172.16.4.2 has attributes 3, which do not exist
left IPPool vxnet-b: it is disabled there: leave the pool cordoned
in no pool: 1
`)
}

func TestContiv(t *testing.T) {
	want(t, plan(t, contiv(), Source{Files: []string{filepath.Join("testdata", "contiv.json")}}, nil,
		running("web", "10.36.0.1", "2001:db8:36::5"), running("job", "10.37.0.2")), `
pool contiv 10.36.0.0/24 [10.36.0.0/24] gw 10.36.0.254 vlan 7 network contiv
pool contiv-v6 2001:db8:36::/64 [2001:db8:36::/64] gw 2001:db8:36::1 vlan 7 network contiv
pool blue-net 10.37.0.0/24 [10.37.0.0/24] gw 10.37.0.254 network blue-net
10.36.0.1 contiv shop/web uid=u-web c=c-web if=eth0
10.37.0.2 blue-net shop/job uid=u-job c=c-job if=eth0
2001:db8:36::5 contiv-v6 shop/web uid=u-web c=c-web if=eth0
conflict endpoint broken: "10.36.0.x" is not an IP address
left network net.blue: tenant blue: bind its namespaces: bcsnetctl pool bind blue-net --namespace NAMESPACE
left object eng:default: it is neither a network nor an endpoint with an address
`)
}

// A file that ends in the middle is an error, and nothing of it is taken over.
func TestContivCut(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "contiv.json"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "state.json")
	if err := os.WriteFile(path, text[:len(text)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = contiv().Read(t.Context(), Source{Files: []string{path}})
	if err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("it was read: %v", err)
	}
}

// A table of 200,000 lines with a mark of the byte order, semicolons and ends of lines of another system is read as it
// is; one in another encoding is refused with the command that converts it.
func TestTablesOfOthers(t *testing.T) {
	const lines = 200_000
	var b strings.Builder
	b.WriteString("\xef\xbb\xbfIP address;Status;Description\r\n")
	for i := range lines {
		fmt.Fprintf(&b, "10.%d.%d.%d/8;active;\"host %d;\"\r\n", 1+i>>16, i>>8&255, i&255, i)
	}
	read := func(text string) (importer.Rows, error) {
		path := filepath.Join(t.TempDir(), "t.csv")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return table().Read(t.Context(), Source{Files: []string{path}})
	}
	rows, err := read(b.String())
	if err != nil || len(rows.Addresses) != lines || len(rows.Conflicts)+len(rows.Left) != 0 {
		t.Fatalf("%d addresses, %d conflicts: %v", len(rows.Addresses), len(rows.Conflicts), err)
	}
	if last := rows.Addresses[lines-1]; last.Addr.String() != "10.4.13.63" || last.Reason != "host 199999;" {
		t.Errorf("the last one is %s, %q", last.Addr, last.Reason)
	}
	for text, want := range map[string]string{
		"\xff\xfea\x00d\x00d\x00r\x00":              "iconv -f UTF-16",
		"ip;description\n10.1.0.1;\xb4\xf2\xd3\xa1": "line 2 is not UTF-8",
		"": "no heading",
	} {
		if _, err := read(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
