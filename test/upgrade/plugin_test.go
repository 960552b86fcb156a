package upgrade

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	types100 "github.com/containernetworking/cni/pkg/types/100"

	"github.com/bcsnet/bcsnet/test/lan"
)

// network is the configuration that a main plugin hands to bcsnet-ipam.
const network = `{"cniVersion":"1.1.0","name":"lan","ipam":{"type":"bcsnet-ipam"}}`

// collected is what a GC hands to it: nothing of the network is attached any more.
const collected = `{"cniVersion":"1.1.0","name":"lan","ipam":{"type":"bcsnet-ipam"},"cni.dev/valid-attachments":[]}`

// script starts a plugin where its directories are those of the test.
const script = `set -e
for d in /etc /var/lib /run; do mount -t tmpfs tmpfs $d; done
mkdir -p /etc/cni/net.d/bcsnet.d /var/lib/cni/bcsnet /run/bcsnet
mount --bind "$TEST_DIR/etc" /etc/cni/net.d/bcsnet.d
mount --bind "$TEST_DIR/var" /var/lib/cni/bcsnet
mount --bind "$TEST_DIR/run" /run/bcsnet
exec "$@"`

// plugin has the plugin of this release, set up for plain HTTP, do all that runtimes ask of it, whatever release
// answers. Without root that is skipped.
func (s *site) plugin(when string, number int) {
	s.Run(fmt.Sprintf("plugin %d", number), func(t *testing.T) {
		l := lan.New(t)
		name := fmt.Sprintf("plugin-%d", number)
		p := pod("plugin", number, nil)
		s.create(p)
		dir := t.TempDir()
		for _, d := range []string{"etc", "var", "run"} {
			if err := os.Mkdir(filepath.Join(dir, d), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		config, err := json.Marshal(map[string]any{"cluster": "c1", "host": host, "replicas": s.urls()})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "etc", "config.json"), config, 0o600); err != nil {
			t.Fatal(err)
		}
		namespace := l.Host(t).Path()
		call := func(command, stdin string) []byte {
			t.Helper()
			cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", script, "sh", filepath.Join(s.now.Root, "bin", "bcsnet-ipam"))
			cmd.Env = append(os.Environ(), "TEST_DIR="+dir, "CNI_COMMAND="+command, "CNI_CONTAINERID="+name, "CNI_NETNS="+namespace,
				"CNI_IFNAME=eth0", "CNI_PATH="+filepath.Join(s.now.Root, "bin"),
				fmt.Sprintf("CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAMESPACE=plugin;K8S_POD_NAME=%s;K8S_POD_UID=%s", name, p.UID))
			cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
			var out bytes.Buffer
			cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader([]byte(stdin)), &out, &out
			if err := cmd.Run(); err != nil {
				t.Errorf("%s: %s: %v: %s", when, command, err, &out)
			}
			return out.Bytes()
		}
		var added []byte
		addr := func() string {
			t.Helper()
			added = call("ADD", network)
			r, err := types100.NewResult(added)
			if err != nil {
				t.Fatalf("%s: %v", when, err)
			}
			got, err := types100.GetResult(r)
			if err != nil || len(got.IPs) != 1 {
				t.Fatalf("%s: an ADD got %+v: %v", when, got, err)
			}
			addr, _, _ := strings.Cut(got.IPs[0].Address.String(), "/")
			return addr
		}
		first := addr()
		if got := addr(); got != first {
			t.Errorf("%s: it has %s, and was told %s", when, first, got)
		}
		call("CHECK", strings.TrimSuffix(network, "}")+`,"prevResult":`+string(added)+"}")
		call("STATUS", network)
		call("DEL", network)
		call("GC", collected)
		if st := s.status(first); st.Status == "Active" {
			t.Errorf("%s: after a DEL %s is %+v", when, first, st)
		}
	})
}
