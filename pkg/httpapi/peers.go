package httpapi

import (
	"net/http"
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
	// Doubtful: it has noticed within ipam.ReturnTime that the store was put back to an older state, or its watch of the
	// addresses has ended, and it is still to find out.
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

func (s *Service) version(w http.ResponseWriter, r *http.Request) {
	page(w, s.Version(r.Context()))
}

func (s *Service) info(w http.ResponseWriter, _ *http.Request) {
	out := Info{
		Replica:  ThisReplica{ReplicaInfo: infoOf(s.Peers.Self()), Leading: s.Peers.Leading(), Ready: s.able() == nil},
		Replicas: []ReplicaInfo{},
	}
	if leader, ok := s.Peers.Leader(); ok {
		out.Leader = &LeaderInfo{ReplicaInfo: infoOf(leader.Identity)}
		if !leader.Since.IsZero() {
			out.Leader.Since = leader.Since.UTC().Format(time.RFC3339)
		}
	}
	for _, i := range s.Peers.Replicas() {
		out.Replicas = append(out.Replicas, infoOf(i))
	}
	_, why := s.Forwarder.target()
	out.Forwarding = Forwarding{Active: why == "", Reason: why}
	if version := s.Index.Seen(); version > 0 {
		out.Store = &StoreInfo{Version: version, Doubtful: s.Index.Returning() || !s.Leases.Follows()}
		if at := s.Leases.Noticed(); !at.IsZero() {
			out.Store.PutBack = &at
		}
	}
	page(w, out)
}

// page answers without the envelope.
func page(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(marshal(v), '\n')) // the client may have gone
}

// answeredBy names the replica on every answer. One that is passed on names the replica that gave it.
func (s *Service) answeredBy(next http.Handler) http.Handler {
	id := s.Peers.Self().ID()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(headerAnsweredBy, id)
		next.ServeHTTP(w, r)
	})
}
