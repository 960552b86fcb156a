package node

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

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
