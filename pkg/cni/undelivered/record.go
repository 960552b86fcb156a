package undelivered

import (
	"errors"
	"net/netip"
	"time"

	"github.com/bcsnet/bcsnet/pkg/cni/nodefile"
)

const (
	// Max is the largest number of records, about the number of pods that a node has in a week of trouble.
	Max = 4096
	// maxSize bounds a record, in octets.
	maxSize = 8 << 10
)

// Record is one release.
type Record struct {
	// Cluster is the UID of the cluster that gave the address; empty if nothing named it.
	Cluster string `json:"cluster"`
	// Host is the node's address; the zero Addr if nothing named it.
	Host        netip.Addr `json:"host"`
	ContainerID string     `json:"containerID"`
	IfName      string     `json:"ifName"`
	// Pod is namespace/name; empty if the runtime named none.
	Pod    string `json:"pod"`
	PodUID string `json:"podUID"`
	// Replicas are the URLs in the network configuration, if the node itself knew none. Only these are asked.
	Replicas []string `json:"replicas,omitempty"`
	// StartedAt is the time at which the DEL began.
	StartedAt time.Time `json:"startedAt"`
}

// Attachment returns the container's ID and the name of the interface.
func (r Record) Attachment() (id, ifName string) { return r.ContainerID, r.IfName }

// Validate returns an error that names the first invalid field.
func (r Record) Validate() error {
	if r.StartedAt.IsZero() {
		return errors.New("startedAt is missing")
	}
	return nodefile.ValidNames(r.ContainerID, r.IfName)
}
