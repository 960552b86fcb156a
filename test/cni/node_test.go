package cni_test

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/invoke"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/containernetworking/cni/pkg/version"
	"github.com/vishvananda/netlink"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/lan"
	"github.com/bcsnet/bcsnet/test/site"
)

// node is a node of a test's own: a network namespace, the plugins' directories, and a way to the controller.
type node struct {
	*site.Site
	lan  *lan.LAN
	host *lan.Host
	// dir has what the plugins find as /etc/cni/net.d/bcsnet.d (etc), /var/lib/cni/bcsnet (var) and /run/bcsnet (run).
	dir string
	// relay leads from the node to the controller.
	relay *relay
	// token is that of the node side's pod.
	token string
	// programs is where our plugins are.
	programs string
	// before runs in the shell that starts a plugin, once the directories are there.
	before string
	// env goes to the plugins, too.
	env []string
	// ten is the second octet of the node's addresses.
	ten int32
}

// newNode makes a node that is configured as by the installer's pod: it asks over https with a token of its own.
func newNode(t *testing.T) *node {
	t.Helper()
	l := lan.New(t)
	ten := number.Add(1)
	n := &node{
		Site: &site.Site{
			T: t, Admin: shared.admin, Host: fmt.Sprintf("10.%d.255.1", ten), URL: shared.controller.URL, Caller: shared.caller,
		},
		lan: l, host: l.Host(t), dir: t.TempDir(), programs: shared.programs, ten: ten,
	}
	n.host.Do(t, func() error {
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		return netlink.LinkSetUp(lo)
	})
	for _, dir := range []string{"etc", "var", "run"} {
		if err := os.Mkdir(filepath.Join(n.dir, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	n.relay, n.token = n.newRelay(), n.identify()
	n.write("etc/token", n.token)
	n.write("etc/ca.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: n.relay.server.Certificate().Raw})))
	n.configure("cluster", "c1", "host", n.Host, "replicas", []string{n.relay.url})
	return n
}

// on returns the node for a part of a test.
func (n *node) on(t *testing.T) *node {
	t.Helper()
	part, s := *n, *n.Site
	s.T = t
	part.Site = &s
	return &part
}

// configure writes config.json; fields come in pairs.
func (n *node) configure(fields ...any) {
	n.Helper()
	config := map[string]any{"serverName": "example.com"} // that of the relay's certificate
	for i := 0; i < len(fields); i += 2 {
		config[fields[i].(string)] = fields[i+1]
	}
	text, err := json.Marshal(config)
	if err != nil {
		n.Fatal(err)
	}
	n.write("etc/config.json", string(text))
}

func (n *node) write(name, text string) {
	n.Helper()
	if err := os.WriteFile(filepath.Join(n.dir, name), []byte(text), 0o600); err != nil {
		n.Fatal(err)
	}
}

func (n *node) remove(name string) {
	n.Helper()
	if err := os.Remove(filepath.Join(n.dir, name)); err != nil {
		n.Fatal(err)
	}
}

// read returns a file of the node; empty where there is none.
func (n *node) read(name string) string {
	n.Helper()
	text, err := os.ReadFile(filepath.Join(n.dir, name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		n.Fatal(err)
	}
	return string(text)
}

// files returns the names in a directory of the node.
func (n *node) files(name string) (names []string) {
	n.Helper()
	entries, err := os.ReadDir(filepath.Join(n.dir, name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		n.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// addr returns an address of the node's pools.
func (n *node) addr(last int) string { return fmt.Sprintf("10.%d.0.%d", n.ten, last) }

// addr6 returns one of the second family.
func (n *node) addr6(last int) string { return fmt.Sprintf("fd77:%x::%x", n.ten, last) }

// pool makes a pool of addresses with these last octets.
func (n *node) pool(name string, change func(*v1.BCSNetPoolSpec), last ...int) *v1.BCSNetPool {
	n.Helper()
	texts := make([]string, 0, len(last))
	for _, l := range last {
		texts = append(texts, n.addr(l))
	}
	p := n.NewPool(fmt.Sprintf("cni-%d%s", n.ten, name), func(s *v1.BCSNetPoolSpec) {
		s.Net, s.Mask, s.Gateway = fmt.Sprintf("10.%d.0.0", n.ten), 24, n.addr(254)
		if change != nil {
			change(s)
		}
	}, texts...)
	n.WantReady(p)
	return p
}

// script starts a plugin where the plugins' directories are those of the test.
const script = `set -e
for d in /etc /var/lib /run; do mount -t tmpfs tmpfs $d; done
mkdir -p /etc/cni/net.d/bcsnet.d /var/lib/cni/bcsnet /run/bcsnet
mount --bind "$TEST_DIR/etc" /etc/cni/net.d/bcsnet.d
mount --bind "$TEST_DIR/var" /var/lib/cni/bcsnet
mount --bind "$TEST_DIR/run" /run/bcsnet
eval "$TEST_BEFORE"
exec "$@"`

// run runs a program on the node.
func (n *node) run(ctx context.Context, stdin []byte, env []string, program string, args ...string) (*bytes.Buffer, error) {
	cmd := exec.CommandContext(ctx, "/bin/sh", append([]string{"-c", script, "sh", program}, args...)...)
	cmd.Env = append(append(env, n.env...), "TEST_DIR="+n.dir, "TEST_BEFORE="+n.before)
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), &stdout, &stderr
	err := cmd.Run()
	if err != nil {
		err = fmt.Errorf("%w: %s%s", err, stdout.String(), stderr.String())
	}
	return &stdout, err
}

// within is how libcni runs plugins on the node.
type within struct {
	*node
	version.PluginDecoder
}

// ExecPlugin implements invoke.Exec.
func (w *within) ExecPlugin(ctx context.Context, path string, stdin []byte, environ []string) ([]byte, error) {
	out, err := w.run(ctx, stdin, environ, path)
	if err == nil {
		return out.Bytes(), nil
	}
	var coded types.Error
	if json.Unmarshal(out.Bytes(), &coded) == nil && coded.Msg != "" {
		return nil, &coded
	}
	return nil, err
}

// FindInPath implements invoke.Exec.
func (w *within) FindInPath(plugin string, paths []string) (string, error) {
	return invoke.FindInPath(plugin, paths)
}

// cni returns libcni as a runtime on the node has it.
func (n *node) cni() *libcni.CNIConfig {
	n.Helper()
	return libcni.NewCNIConfigWithCacheDir([]string{n.programs, references(n.T)}, filepath.Join(n.dir, "cache"), &within{node: n})
}

// conflist returns a network of a main plugin, whose IPAM is ours, and of plugins after it.
func conflist(t *testing.T, version, name, main, ipam string, chained ...string) *libcni.NetworkConfigList {
	t.Helper()
	if main != "" {
		main += ","
	}
	if ipam != "" {
		ipam = "," + ipam
	}
	plugins := append([]string{fmt.Sprintf(`{%s"ipam":{"type":"bcsnet-ipam"%s}}`, main, ipam)}, chained...)
	list, err := libcni.NetworkConfFromBytes(fmt.Appendf(nil, `{"cniVersion":%q,"name":%q,"plugins":[%s]}`, version, name,
		strings.Join(plugins, ",")))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// bridge is the main plugin that most tests use.
const bridge = `"type":"bridge","bridge":"cni0"`

// copyDir copies one of the plugins' directories to another node's.
func copyDir(t *testing.T, from, to, dir string) {
	t.Helper()
	if err := os.CopyFS(filepath.Join(to, dir), os.DirFS(filepath.Join(from, dir))); err != nil {
		t.Fatal(err)
	}
}
