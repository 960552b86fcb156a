//go:build linux

package bed

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"text/template"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

// Image is the image of pods, which every node has: podtool, with the verbs pause, serve, get and arp.
const Image = "bcsnet.test/podtool:1"

// Node is one node. Its files outlive its lives, but for /run.
type Node struct {
	Config
	bed  *Bed
	logs string
	life *life // nil while it is down
}

// Config is a node as its process 1 has to make it.
type Config struct {
	Name   string
	Number byte // the last byte of its addresses
	// Address4 and Address6 are the addresses of its bridge br0, with the length of the network's prefix.
	Address4, Address6 netip.Prefix
	Gateway4, Gateway6 netip.Addr
	Dir                string // its files, in memory
	Bin                string // the binaries
	Cgroup             string
}

//go:embed containerd.toml.tmpl
var containerdConfig string

//go:embed kubelet.yaml.tmpl
var kubeletConfig string

// newNode writes the files of a node.
func (b *Bed) newNode(name string, number byte) (*Node, error) {
	n := &Node{bed: b, logs: b.logs, Config: Config{
		Name: name, Number: number,
		Address4: numbered(network4(), number), Address6: numbered(network6(), number),
		Gateway4: b.Gateway4(), Gateway6: b.Gateway6(),
		Dir: filepath.Join(b.dir, name), Bin: filepath.Join(b.dir, "bin", "node"), Cgroup: b.name + "-" + name,
	}}
	dirs := []string{"opt/cni/bin", "conf", "cni/net.d"}
	for _, network := range b.networks {
		dirs = append(dirs, filepath.Join("cni", network+".d"))
	}
	for _, dir := range dirs {
		if err := os.MkdirAll(filepath.Join(n.Dir, dir), 0o755); err != nil {
			return nil, err
		}
	}
	for file, text := range map[string]string{"containerd.toml": containerdConfig, "kubelet.yaml": kubeletConfig} {
		t, err := template.New(file).Parse(text)
		if err != nil {
			return nil, err
		}
		var out bytes.Buffer
		if err := t.Execute(&out, struct {
			Config
			Image    string
			Networks []string
		}{n.Config, Image, b.networks}); err != nil {
			return nil, err
		}
		if err := os.WriteFile(n.conf(file), out.Bytes(), 0o644); err != nil {
			return nil, err
		}
	}
	identity, err := b.Cluster.NodeConfig(name)
	if err != nil {
		return nil, err
	}
	if err := controlplane.WriteKubeconfigFor(identity, n.conf("kubeconfig")); err != nil {
		return nil, err
	}
	plugins, err := filepath.Glob(filepath.Join(b.dir, "bin", "cni", "[a-z]*"))
	for _, plugin := range plugins {
		err = errors.Join(err, os.Symlink(plugin, filepath.Join(n.Dir, "opt", "cni", "bin", filepath.Base(plugin))))
	}
	return n, err
}

func (n *Node) conf(name string) string { return filepath.Join(n.Dir, "conf", name) }

// EtcCNI returns the directory that the node has as /etc/cni, in the form of paths outside of it.
func (n *Node) EtcCNI() string { return filepath.Join(n.Dir, "cni") }

// InstallPlugin gives the node a copy of a program as a CNI plugin, by rename, in place of one of that name.
func (n *Node) InstallPlugin(name, program string) error {
	text, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	path := filepath.Join(n.Dir, "opt", "cni", "bin", name)
	if err := os.WriteFile(path+".new", text, 0o755); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// WriteConflist gives the node the conflist of a network, by rename, which containerd notices by itself. An empty name
// is the network that pods get by default. Nil data removes the conflist.
func (n *Node) WriteConflist(network string, data []byte) error {
	if network == "" {
		network = "net"
	}
	path := filepath.Join(n.EtcCNI(), network+".d", "10-test.conflist")
	if data == nil {
		if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// Ready returns nil when the API server has the node Ready, as its kubelet has said in this life of the node.
func (n *Node) Ready(ctx context.Context, reader client.Reader) error {
	node := &corev1.Node{}
	if err := reader.Get(ctx, types.NamespacedName{Name: n.Name}, node); err != nil {
		return err
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			if n.life == nil || c.LastHeartbeatTime.Time.Before(n.life.began) {
				break // from an earlier life
			}
			return nil
		}
	}
	return fmt.Errorf("the node %s is not Ready: %+v", n.Name, node.Status.Conditions)
}
