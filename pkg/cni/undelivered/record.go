package undelivered

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"path/filepath"
	"time"

	"github.com/containernetworking/cni/pkg/utils"
)

const (
	// Max is how many records there are at most, about as many pods as a node has in a week of trouble.
	Max = 4096
	// maxSize bounds a record, in octets.
	maxSize = 8 << 10
	// maxID bounds a container ID, so that the name of its file stays below the 255 octets of Linux.
	maxID  = 200
	suffix = ".json"
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
	// StartedAt is when the DEL began.
	StartedAt time.Time `json:"startedAt"`
}

func (r Record) validate() error {
	if err := utils.ValidateContainerID(r.ContainerID); err != nil || len(r.ContainerID) > maxID {
		return fmt.Errorf("container ID %.80q is none", r.ContainerID)
	}
	if err := utils.ValidateInterfaceName(r.IfName); err != nil {
		return fmt.Errorf("interface name %.80q is none", r.IfName)
	}
	if r.StartedAt.IsZero() {
		return errors.New("startedAt is missing")
	}
	return nil
}

// path returns where a record of an attachment is. The names were validated, so it is inside the directory.
func (s Store) path(id, ifName string) string {
	return filepath.Join(string(s), id+"-"+ifName+suffix)
}

func decode(text []byte) (r Record, err error) {
	if len(text) > maxSize {
		return r, fmt.Errorf("it has more than %d octets", maxSize)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	if err := decoder.Decode(&r); err != nil {
		return r, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return r, errors.New("something comes after the object")
	}
	return r, r.validate()
}
