package httpapi

import (
	"time"

	"github.com/bcsnet/bcsnet/pkg/replica"
)

// Peers returns the replicas; it is called for every request.
type Peers interface {
	// Self is this replica.
	Self() replica.Identity
	// Leading reports whether this replica leads.
	Leading() bool
	// Leader is who leads by the Lease; false when nobody holds it, or it has run out.
	Leader() (Leader, bool)
	// Replicas are those that have renewed their Lease lately.
	Replicas() []replica.Identity
	// Secret is what this replica shares with the one of an ID and with nobody else; nil where there is no such
	// replica, or one of a release that has none.
	Secret(id string) []byte
}

// Leader is who leads by the Lease, and since when.
type Leader struct {
	replica.Identity
	Since time.Time
}

// Versions is what GET /version answers.
type Versions struct {
	Version string `json:"version"`
	Go      string `json:"go"`
	// Kubernetes is the API server's version; empty when it does not say.
	Kubernetes string `json:"kubernetes,omitempty"`
}

// Info is what GET /info answers.
type Info struct {
	Replica ThisReplica `json:"replica"`
	// Leader is null when nobody is known to lead.
	Leader     *LeaderInfo   `json:"leader"`
	Replicas   []ReplicaInfo `json:"replicas"`
	Forwarding Forwarding    `json:"forwarding"`
	// Store is nil where nothing was read of it yet, and from a release before this one.
	Store *StoreInfo `json:"store,omitempty"`
}

// StoreInfo is what a replica has seen of the API server's store.
type StoreInfo struct {
	// Version is the newest.
	Version uint64 `json:"version,string"`
	// Doubtful: it has noticed within ipam.ReturnTime that the store was put back to an older state, or its watch of
	// the addresses has ended, and it is still to find out.
	Doubtful bool `json:"doubtful"`
	// PutBack is when it was noticed last that the store was put back; nil for never.
	PutBack *time.Time `json:"putBack,omitempty"`
}

// ReplicaInfo is a replica.
type ReplicaInfo struct {
	// ID is what Bcsnet-Answered-By says.
	ID   string `json:"id"`
	Name string `json:"name"`
	URL  string `json:"url,omitempty"`
}

// ThisReplica is the one that answers.
type ThisReplica struct {
	ReplicaInfo
	Leading bool `json:"leading"`
	Ready   bool `json:"ready"`
}

// LeaderInfo is the replica that leads.
type LeaderInfo struct {
	ReplicaInfo
	// Since is when its term began, by its clock, RFC 3339.
	Since string `json:"since,omitempty"`
}

// Forwarding reports whether changes go to the leader, and why not.
type Forwarding struct {
	Active bool   `json:"active"`
	Reason string `json:"reason,omitempty"`
}

func infoOf(i replica.Identity) ReplicaInfo { return ReplicaInfo{ID: i.ID(), Name: i.Name, URL: i.URL} }
