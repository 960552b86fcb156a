package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"syscall"
	"time"

	"github.com/bcsnet/bcsnet/pkg/recovery"
	"github.com/bcsnet/bcsnet/pkg/replica"
)

// Peers provides the replicas. Its methods are called for every request.
type Peers interface {
	// Self returns this replica.
	Self() replica.Identity
	// Leading reports whether this replica leads.
	Leading() bool
	// Leader returns the leader by the Lease; false if nobody holds it or it has expired.
	Leader() (Leader, bool)
	// Replicas returns the replicas that have recently renewed their Lease.
	Replicas() []replica.Identity
	// Secret returns the secret that only this replica and the one with an ID share; nil if there is no such replica,
	// or its release has no secrets.
	Secret(id string) []byte
}

// Leader is the leader by the Lease, and the beginning of its term.
type Leader struct {
	replica.Identity
	Since time.Time
}

// Versions is the answer to GET /version.
type Versions struct {
	Version string `json:"version"`
	Go      string `json:"go"`
	// Kubernetes is the API server's version; empty if it does not provide one.
	Kubernetes string `json:"kubernetes,omitempty"`
}

// Info is the answer to GET /info.
type Info struct {
	Replica ThisReplica `json:"replica"`
	// Leader is null if no leader is known.
	Leader     *LeaderInfo   `json:"leader"`
	Replicas   []ReplicaInfo `json:"replicas"`
	Forwarding Forwarding    `json:"forwarding"`
	// Store is nil if nothing was read from it yet, and in answers of a release before this one.
	Store *StoreInfo `json:"store,omitempty"`
}

// StoreInfo has a replica's observations of the API server's store.
type StoreInfo struct {
	// Version is the newest version that was seen.
	Version uint64 `json:"version,string"`
	// Doubtful reports whether the replica has noticed a restore of the store within ipam.ReturnTime, or its watch of
	// addresses has ended and it does not know yet whether there was one.
	Doubtful bool `json:"doubtful"`
	// PutBack is the time at which a restore of the store was last noticed; nil for never.
	PutBack *time.Time `json:"putBack,omitempty"`
}

// ReplicaInfo describes a replica.
type ReplicaInfo struct {
	// ID is the value of Bcsnet-Answered-By.
	ID   string `json:"id"`
	Name string `json:"name"`
	URL  string `json:"url,omitempty"`
}

// ThisReplica describes the answering replica.
type ThisReplica struct {
	ReplicaInfo
	Leading bool `json:"leading"`
	Ready   bool `json:"ready"`
}

// LeaderInfo describes the leader.
type LeaderInfo struct {
	ReplicaInfo
	// Since is the beginning of its term, by its clock, RFC 3339.
	Since string `json:"since,omitempty"`
}

// Forwarding says whether changes are forwarded to the leader, and if not, why.
type Forwarding struct {
	Active bool   `json:"active"`
	Reason string `json:"reason,omitempty"`
}

func infoOf(i replica.Identity) ReplicaInfo { return ReplicaInfo{ID: i.ID(), Name: i.Name, URL: i.URL} }

// AskStore asks the replica at a URL which versions of the store it has seen. seen is false if no replica there can
// have seen any: nothing listens, or the answer comes from another program or an earlier release. The error says why a
// replica that may exist did not answer.
func (f *Forwarder) AskStore(ctx context.Context, url string) (w recovery.Witness, seen bool, err error) {
	u, err := replica.ParseURL(url)
	if err != nil || u.Scheme == "http" && !replica.Loopback(u) {
		return w, false, nil // no replica of this release is called by it
	}
	out, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/info", http.NoBody)
	if err != nil {
		return w, false, err
	}
	resp, err := f.signs.RoundTrip(out)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return w, false, nil
	case err != nil:
		return w, false, fmt.Errorf("ask %s: %w", url, err)
	}
	defer resp.Body.Close()
	var info Info
	err = json.NewDecoder(io.LimitReader(resp.Body, maxReply)).Decode(&info)
	switch {
	case ctx.Err() != nil:
		return w, false, fmt.Errorf("ask %s: %w", url, err)
	case err != nil || resp.StatusCode != http.StatusOK || resp.Header.Get(headerAnsweredBy) == "" || info.Store == nil:
		return w, false, nil // another program answered
	}
	w = recovery.Witness{Version: info.Store.Version, Doubtful: info.Store.Doubtful}
	if at := info.Store.PutBack; at != nil {
		w.PutBack = *at
	}
	return w, true, nil
}
