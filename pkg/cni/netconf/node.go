package netconf

import (
	"cmp"
	"errors"
	"net/netip"
	"net/url"
)

// Default directories of a node.
const (
	// DefaultConfigDir contains config.json, ca.crt and token, which the installer's pod writes.
	DefaultConfigDir = "/etc/cni/net.d/bcsnet.d"
	// DefaultDataDir contains files that survive a reboot: the undelivered releases.
	DefaultDataDir = "/var/lib/cni/bcsnet"
	// DefaultRunDir contains files that do not survive a reboot: attachments, state.json, calls.log.
	DefaultRunDir = "/run/bcsnet"
)

// ConfigDirVariable is the variable in the runtime's environment that replaces DefaultConfigDir. A network
// configuration cannot set it, because its author would choose which files the plugins trust.
const ConfigDirVariable = "BCSNET_CONFIG_DIR"

// Node is the content of the node's config.json.
type Node struct {
	// Cluster is the UID of the namespace kube-system.
	Cluster string
	// Name is the name of the Node object.
	Name string
	// Host is the node's address as listed in pools.
	Host netip.Addr
	// Replicas are the URLs of the allocator.
	Replicas []*url.URL
	// ServerName is the name in the certificates of the replicas.
	ServerName string
	// DataDir and RunDir are directories; empty for the default ones.
	DataDir, RunDir string
}

// ParseNode parses config.json. The error is ErrNoObject, or joins a Problem for each invalid field. Unknown fields
// belong to a newer release and are ignored.
func ParseNode(text []byte) (n Node, err error) {
	var p problems
	if len(text) == 0 {
		return n, ErrNoObject
	}
	o, err := newObject("", text, &p)
	if err != nil {
		return n, err
	}
	n.Cluster, n.Name, n.ServerName = readName(o, "cluster"), readName(o, "node"), readName(o, "serverName")
	n.Host = parseHost(o, "host")
	n.Replicas = parseEndpoints(o, "replicas")
	n.DataDir, n.RunDir = readDir(o, "dataDir"), readDir(o, "runDir")
	return n, p.err()
}

// Settings are the settings of a call.
type Settings struct {
	Cluster string
	// Host is the address in the conflist, or else in config.json.
	Host netip.Addr
	// Replicas are the URLs in config.json, or else in the conflist.
	Replicas   []*url.URL
	ServerName string
	// ByConflist reports whether the replicas come from the conflist, whose author need not be root.
	ByConflist bool
	// DataDir and RunDir are directories.
	DataDir, RunDir string
}

// Merge returns the settings of a call. The conflist selects what the pod gets. config.json, which belongs to root,
// names the trusted replicas and the directories.
func Merge(c Conflist, n Node) Settings {
	s := Settings{
		Cluster: n.Cluster, Host: cmp.Or(c.Host, n.Host), Replicas: n.Replicas, ServerName: n.ServerName,
		DataDir: cmp.Or(n.DataDir, DefaultDataDir), RunDir: cmp.Or(n.RunDir, DefaultRunDir),
	}
	if len(s.Replicas) == 0 {
		s.Replicas, s.ByConflist = c.Replicas, len(c.Replicas) > 0
	}
	return s
}

// Complete returns an error unless the settings have all that every request needs. Nothing is guessed.
func (s Settings) Complete() error {
	switch {
	case !s.Host.IsValid():
		return errors.New("no host: neither ipam.host of the network configuration nor host in config.json says by " +
			"which address pools list this node")
	case len(s.Replicas) == 0:
		return errors.New("no replica: neither replicas in config.json nor ipam.netserviceEndpoint of the network " +
			"configuration says where the allocator is")
	}
	return nil
}
