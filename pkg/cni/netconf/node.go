package netconf

import (
	"cmp"
	"errors"
	"net/netip"
	"net/url"
)

// Directories of a node, where no configuration names others.
const (
	// DefaultConfigDir has config.json, ca.crt and token. The installer's pod writes them.
	DefaultConfigDir = "/etc/cni/net.d/bcsnet.d"
	// DefaultDataDir has what outlives a boot: the releases that no replica took yet.
	DefaultDataDir = "/var/lib/cni/bcsnet"
	// DefaultRunDir has what does not: attachments, state.json, calls.log.
	DefaultRunDir = "/run/bcsnet"
)

// ConfigDirVariable is the variable of the runtime's environment that names another directory than DefaultConfigDir. No
// network configuration does: whoever may write one would choose whose files the plugins believe.
const ConfigDirVariable = "BCSNET_CONFIG_DIR"

// Node is the node's config.json.
type Node struct {
	// Cluster is the UID of the namespace kube-system.
	Cluster string
	// Name is that of the Node object.
	Name string
	// Host is the address that pools list the node by.
	Host netip.Addr
	// Replicas are the URLs of the allocator.
	Replicas []*url.URL
	// ServerName is the name in the certificates of the replicas.
	ServerName string
	// DataDir and RunDir are directories; empty for the usual ones.
	DataDir, RunDir string
}

// ParseNode reads config.json. Its error joins a Problem for each field that is wrong, or it is ErrNoObject. Fields
// that it does not know are those of a newer release.
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

// Settings are what a call goes by.
type Settings struct {
	Cluster string
	// Host is the conflist's, or else config.json's.
	Host netip.Addr
	// Replicas are config.json's, or else the conflist's.
	Replicas   []*url.URL
	ServerName string
	// ByConflist: the replicas are those of the conflist, which whoever may write one chose.
	ByConflist bool
	// DataDir and RunDir are directories.
	DataDir, RunDir string
}

// Merge returns the settings of a call. A conflist names what is given to the pod, and config.json, which is root's,
// whom the node believes and where its files are.
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

// Complete returns an error unless the settings name what every request needs. Nothing of it is guessed.
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
