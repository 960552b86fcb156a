package node

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/bcsnet/bcsnet/pkg/cni/client"
	"github.com/bcsnet/bcsnet/pkg/cni/netconf"
)

// Files that the plugins read in their configuration directory.
const (
	configFile = "config.json"
	caFile     = "ca.crt"
	tokenFile  = "token"
)

// config is config.json, as netconf.ParseNode reads it.
type config struct {
	Cluster    string   `json:"cluster"`
	Node       string   `json:"node"`
	Host       string   `json:"host"`
	Replicas   []string `json:"replicas"`
	ServerName string   `json:"serverName"`
	DataDir    string   `json:"dataDir,omitempty"`
	RunDir     string   `json:"runDir,omitempty"`
}

// errFacts is the error of an installation that waits for data from the cluster.
var errFacts = errors.New("not known yet")

// newConfig returns config.json with the cluster's data. Values that the cluster has not provided yet, and the replicas
// if it names none, stay as they are on the node: old replicas are better than none.
func newConfig(o Options, f facts, now netconf.Node) ([]byte, error) {
	c := config{
		Cluster: cmp.Or(f.cluster, now.Cluster), Node: o.Node, Host: o.Host, ServerName: o.serverName(),
		DataDir: unusual(o.DataDir, netconf.DefaultDataDir), RunDir: unusual(o.RunDir, netconf.DefaultRunDir),
	}
	scheme := "http://"
	if o.secure() {
		scheme = "https://"
	}
	for _, at := range f.endpoints {
		c.Replicas = append(c.Replicas, scheme+at)
	}
	if len(c.Replicas) == 0 && now.Cluster == c.Cluster {
		for _, u := range now.Replicas {
			c.Replicas = append(c.Replicas, scheme+u.Host)
		}
	}
	switch {
	case c.Cluster == "":
		return nil,
			fmt.Errorf("the UID of kube-system is %w: the API server has not answered; hint: see whether this node "+
				"reaches it, and whether the ServiceAccount may get the namespace", errFacts)
	case len(c.Replicas) == 0:
		return nil,
			fmt.Errorf("the replicas of the allocator are %w: no EndpointSlice of the Service %s names one with the "+
				"port %s; hint: see whether pods of bcsnet-controller run", errFacts, o.Service, o.ServicePort)
	}
	text, err := json.Marshal(c)
	return append(text, '\n'), err
}

func unusual(dir, usual string) string {
	if dir == usual {
		return ""
	}
	return dir
}

// readConfig returns the node's config.json; an empty one if there is none or it is damaged.
func readConfig(dir string) (netconf.Node, error) {
	files, err := client.ReadFiles(dir)
	if err != nil {
		return netconf.Node{}, err
	}
	return parseConfig(files.Config), nil
}

func parseConfig(text []byte) netconf.Node {
	n, err := netconf.ParseNode(text)
	if err != nil {
		return netconf.Node{} // it is written again
	}
	return n
}

// maxReplicas bounds the number of replicas for the plugins, which accept no more.
const maxReplicas = 64

// endpointsOf returns the addresses of the replicas, sorted: the ready ones, or all if none is ready, because they may
// become ready before this node learns of it.
func endpointsOf(slicesOf []*discoveryv1.EndpointSlice, portName string) []string {
	var ready, others []netip.AddrPort
	for _, s := range slicesOf {
		port, ok := portOf(s, portName)
		if !ok || s.AddressType == discoveryv1.AddressTypeFQDN {
			continue
		}
		for _, e := range s.Endpoints {
			for _, text := range e.Addresses {
				addr, err := netip.ParseAddr(text)
				if err != nil {
					continue // the API server accepts no such address
				}
				at := netip.AddrPortFrom(addr.Unmap(), port)
				if e.Conditions.Ready == nil || *e.Conditions.Ready {
					ready = append(ready, at)
				} else {
					others = append(others, at)
				}
			}
		}
	}
	if len(ready) == 0 {
		ready = others
	}
	slices.SortFunc(ready, netip.AddrPort.Compare)
	ready = slices.Compact(ready)
	var texts []string
	for _, at := range ready[:min(len(ready), maxReplicas)] {
		texts = append(texts, net.JoinHostPort(at.Addr().String(), strconv.Itoa(int(at.Port()))))
	}
	return texts
}

func portOf(s *discoveryv1.EndpointSlice, name string) (uint16, bool) {
	for _, p := range s.Ports {
		if p.Port != nil && p.Name != nil && *p.Name == name && *p.Port > 0 && *p.Port <= 1<<16-1 {
			return uint16(*p.Port), true
		}
	}
	return 0, false
}
