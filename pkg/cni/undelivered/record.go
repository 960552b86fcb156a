package undelivered

import (
	"errors"
	"net/netip"
	"time"

	"github.com/bcsnet/bcsnet/pkg/cni/nodefile"
)

const (
	// Max is how many records there are at most, about as many pods as a node has in a week of trouble.
	Max = 4096
	// maxSize bounds a record, in octets.
	maxSize = 8 << 10
)

// Record is one release.
type Record struct {
	// Cluster is the UID of the cluster that gave the address; empty where nothing named it.
	Cluster string `json:"cluster"`
	// Host is the node's; the zero Addr where nothing named it.
	Host        netip.Addr `json:"host"`
	ContainerID string     `json:"containerID"`
	IfName      string     `json:"ifName"`
	// Pod is namespace/name; empty where the runtime named none.
	Pod    string `json:"pod"`
	PodUID string `json:"podUID"`
	// Replicas are the URLs that the network configuration had, where the node itself knew none: nobody else's are
	// asked.
	Replicas []string `json:"replicas,omitempty"`
	// StartedAt is when the DEL began.
	StartedAt time.Time `json:"startedAt"`
}

// Attachment returns whose it is.
func (r Record) Attachment() (id, ifName string) { return r.ContainerID, r.IfName }

// Validate returns an error that names the first field which cannot be right.
func (r Record) Validate() error {
	if r.StartedAt.IsZero() {
		return errors.New("startedAt is missing")
	}
	return nodefile.ValidNames(r.ContainerID, r.IfName)
}
