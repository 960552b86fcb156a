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

// Settings are what a call goes by: each field is the conflist's, or else config.json's.
type Settings struct {
	Cluster    string
	Host       netip.Addr
	Replicas   []*url.URL
	ServerName string
	// DataDir, RunDir and LogDir are directories.
	DataDir, RunDir, LogDir string
}

// Merge returns the settings of a call.
func Merge(c Conflist, n Node) Settings {
	s := Settings{
		Cluster: cmp.Or(c.Cluster, n.Cluster), Host: cmp.Or(c.Host, n.Host), Replicas: c.Replicas,
		ServerName: cmp.Or(c.ServerName, n.ServerName), DataDir: cmp.Or(c.DataDir, n.DataDir, DefaultDataDir),
		RunDir: cmp.Or(c.RunDir, n.RunDir, DefaultRunDir),
	}
	s.LogDir = cmp.Or(c.LogDir, s.RunDir)
	if len(s.Replicas) == 0 {
		s.Replicas = n.Replicas
	}
	return s
}

// Complete returns an error unless the settings name what every request needs. Nothing of it is guessed.
func (s Settings) Complete() error {
	switch {
	case !s.Host.IsValid():
		return errors.New("no host: neither ipam.host of the network configuration nor host in config.json says by which " +
			"address pools list this node")
	case len(s.Replicas) == 0:
		return errors.New("no replica: neither ipam.netserviceEndpoint of the network configuration nor replicas in " +
			"config.json says where the allocator is")
	}
	return nil
}
