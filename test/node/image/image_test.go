//go:build linux

package image

import (
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/node/bed"
)

// TestImages has one step after the other, as they are about one installation: from nothing to the first address by the
// three commands of the documentation, bcsnetctl takes the installation over from Helm, and plugins of the released
// system go over to TLS and back.
func TestImages(t *testing.T) {
	s := newSite(t)
	s.imported("bcsnet-controller", "bcsnet-node")
	for _, n := range s.Nodes() {
		s.ctr(n, "tag", bed.Image, "docker.io/library/nginx:1.29") // that of README.md, which nothing here can pull
		if err := n.WriteConflist("", nil); err != nil {
			t.Fatal(err)
		}
	}
	if t.Run("first contact", firstContact) {
		t.Run("bcsnetctl takes over", takenOver)
		t.Run("to TLS and back", toTLSAndBack)
	}
}

// firstContact goes from a cluster without bcsnet to the first pod with an address of it, by the commands on the first
// screen of README.md. How long that takes is logged; images are not pulled here.
func firstContact(t *testing.T) {
	s := newSite(t)
	began := time.Now()
	for _, command := range s.threeCommands() {
		switch command[0] {
		case "helm":
			s.helm(command[1:]...)
		case "bcsnetctl":
			s.bcsnetctl(command[1:]...)
		case "kubectl":
			s.kubectl(command[1:]...)
		default:
			t.Fatalf("README.md has the command %q", command)
		}
	}
	s.kubectl("wait", "--for=condition=Ready", "pod/first", "--timeout=3m")
	t.Logf("helm install to the first pod that is Ready: %.1f s", time.Since(began).Seconds())

	address, err := netip.ParseAddr(s.kubectl("get", "pod", "first", "-o", "jsonpath={.status.podIP}"))
	if err != nil || !netip.MustParsePrefix("192.168.77.0/24").Contains(address) {
		t.Errorf("the pod has %s, %v", address, err)
	}
	s.rolledOut("deployment/bcsnet-controller")
	s.rolledOut("daemonset/bcsnet-node")
	for _, n := range s.Nodes() {
		s.serves(n.Address4.Addr())
		s.runsAs(n, "/bcsnet-controller", 65532)
		s.runsAs(n, "/bcsnet-node", 0) // it writes directories of the node
		dir := filepath.Join(n.EtcCNI(), "net.d", "bcsnet.d")
		for _, name := range []string{"config.json", "ca.crt", "token"} {
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil || name == "config.json" && (!strings.Contains(string(text), `"https://`) || strings.Contains(string(text), `"http://`)) {
				t.Errorf("%s of %s: %s, %v", name, n.Name, text, err)
			}
		}
	}
	// It was asked for by the node's token.
	logs := s.kubectl("-n", controlplane.SystemNamespace, "logs", "--selector", "app.kubernetes.io/name=bcsnet-controller", "--tail", "-1")
	if want := "system:serviceaccount:bcsnet-system:bcsnet-node on n"; !strings.Contains(logs, want) ||
		!strings.Contains(logs, "["+address.String()+"]") {
		t.Errorf("no replica's log has %q and %s:\n%s", want, address, logs)
	}
	s.kubectl("delete", "pod", "first")
}

// threeCommands returns the commands of README.md that go from a cluster to the first address, for the chart of this
// tree and the network of the nodes.
func (s *site) threeCommands() (all [][]string) {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.root, "README.md"))
	if err != nil {
		s.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\n```sh\nhelm install ")
	block, _, _ := strings.Cut("helm install "+rest, "\n```\n")
	for _, here := range []struct{ there, here string }{
		{"oci://ghcr.io/bcsnet/charts/bcsnet", s.chart()}, {"10.0.0.", "192.168.77."},
	} {
		if !strings.Contains(block, here.there) {
			s.t.Fatalf("the commands of README.md have no %s: %s", here.there, block)
		}
		block = strings.ReplaceAll(block, here.there, here.here)
	}
	for line := range strings.Lines(block) {
		all = append(all, strings.Fields(line))
	}
	if len(all) != 3 {
		s.t.Fatalf("the commands of README.md are not three: %s", block)
	}
	return all
}

// takenOver has bcsnetctl install what Helm has installed.
func takenOver(t *testing.T) {
	controlplane.TakesLong(t)
	s := newSite(t)
	said := s.bcsnetctl("install", "--yes", "--wait", "--timeout", "3m")
	for _, want := range []string{"Helm release bcsnet is forgotten", "Deployment bcsnet-controller is ready"} {
		if !strings.Contains(said, want) {
			t.Errorf("bcsnetctl install says %s", said)
		}
	}
	for _, n := range s.Nodes() {
		s.serves(n.Address4.Addr())
	}
}

// serves checks that the controller answers at the node's address, and that it has read the objects.
func (s *site) serves(at netip.Addr) {
	s.t.Helper()
	for port, want := range map[uint16]string{8092: "ok", 8091: "bcsnet_index_addresses 100"} {
		path := map[uint16]string{8092: "/readyz", 8091: "/metrics"}[port]
		status, text, err := s.get(fmt.Sprintf("http://%s%s", netip.AddrPortFrom(at, port), path))
		if err != nil || status != http.StatusOK || !strings.Contains(text, want) {
			s.t.Errorf("%s: %d: %v, want %q", path, status, err, want)
		}
	}
}

func (s *site) get(at string) (status int, text string, err error) {
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, at, http.NoBody)
	if err != nil {
		return 0, "", err
	}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}

// runsAs finds a program among the processes of a node, and checks that it is a user's, without a capability and with
// the runtime's filter of system calls.
func (s *site) runsAs(n *bed.Node, program string, user int) {
	s.t.Helper()
	r, err := n.Run(s.t.Context(), bed.Call{Args: []string{"/bin/sh", "-c",
		`for p in /proc/[0-9]*; do [ "$(tr '\0' ' ' <$p/cmdline 2>/dev/null | cut -d' ' -f1)" = ` + program + ` ] && grep -E '^(Uid|CapEff|Seccomp):' $p/status; done; true`,
	}})
	if err != nil || r.Code != 0 {
		s.t.Fatalf("look for the process: %v: exit code %d: %s", err, r.Code, r.Errors)
	}
	got := strings.Join(strings.Fields(string(r.Output)), " ")
	want := fmt.Sprintf("Uid: %[1]d %[1]d %[1]d %[1]d CapEff: 0000000000000000 Seccomp: 2", user)
	if got != want {
		s.t.Errorf("%s has %q, want %q", program, got, want)
	}
}
