package history

import (
	"cmp"
	"net/netip"
	"strings"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// What happened, where no verb of lease.Change says it.
const (
	// WhatGaveUp: the holder gave the address up.
	WhatGaveUp = "gave up"
	// WhatMoved: another container of the same pod has the address now, or the pod has another UID.
	WhatMoved = "moved"
	// WhatTaken: another holder has the address now, and nobody said that the first one lost it.
	WhatTaken = "passed on"
	// WhatLost: the object of an address that somebody had has gone.
	WhatLost = "lost"
	// WhatEnded: a claim keeps the address no more.
	WhatEnded = "no longer kept"
	// WhatCreated, WhatChanged, WhatDeleting and WhatDeleted are about pools. A pool is deleting from the request to
	// delete it until none of its addresses is held.
	WhatCreated  = "created"
	WhatChanged  = "changed"
	WhatDeleting = "deleting"
	WhatDeleted  = "deleted"
	// WhatGap: changes between Since and Time may be missing.
	WhatGap = "gap"
)

// Record is one thing that happened: an address that somebody lost, a change of an address by hand, a change of a pool,
// or a gap.
type Record struct {
	// Time is the time of the event, Since the beginning of the holding that it ended; both in whole seconds.
	Time  time.Time `json:"time"`
	Since time.Time `json:"since,omitzero"`
	What  string    `json:"what"`
	// IP is the address; invalid for pools and gaps.
	IP netip.Addr `json:"ip,omitzero"`
	// Pool is the pool, or that of the address.
	Pool string `json:"pool,omitempty"`
	// Namespace and Pod name a pod that held the address, Owner a holder that is not a pod. Claim is namespace/name of
	// the claim that the address belonged to.
	Namespace string `json:"namespace,omitempty"`
	Pod       string `json:"pod,omitempty"`
	Owner     string `json:"owner,omitempty"`
	Claim     string `json:"claim,omitempty"`
	// Host is the holder's host.
	Host netip.Addr `json:"host,omitzero"`
	// By is the user who did it. Program is what the client called itself, where the user is not known.
	By      string `json:"by,omitempty"`
	Program string `json:"program,omitempty"`
	Reason  string `json:"reason,omitempty"`
	// Generation of the pool that the change led to.
	Generation int64 `json:"generation,omitempty"`
	// Changes are the fields of the pool that changed.
	Changes []FieldChange `json:"changes,omitempty"`
}

// FieldChange is one field of a pool before and after a change. Of a long list it has what went and what came.
type FieldChange struct {
	Field string `json:"field"`
	Old   string `json:"old,omitempty"`
	New   string `json:"new,omitempty"`
}

// Holder names who had the address: namespace/pod, the owner, or the claim; empty when nobody had it.
func (r Record) Holder() string {
	switch {
	case r.Owner != "":
		return r.Owner
	case r.Pod != "":
		return r.Namespace + "/" + r.Pod
	case r.Claim != "":
		return "claim " + r.Claim
	}
	return ""
}

// Compare orders records by their time, then by what they are about.
func (r Record) Compare(o Record) int {
	return cmp.Or(r.Time.Compare(o.Time), r.IP.Compare(o.IP), cmp.Compare(r.Pool, o.Pool),
		cmp.Compare(r.Generation, o.Generation), r.Since.Compare(o.Since), cmp.Compare(r.Holder(), o.Holder()),
		cmp.Compare(r.What, o.What))
}

// held returns the record of a holding that ends: of the attachment that the lease is seen from, or of the claim that
// keeps the address.
func held(l lease.Lease, what string, at time.Time) Record {
	r := Record{
		Time: second(at), Since: second(l.Updated), What: what, IP: l.Addr, Pool: l.Pool, Namespace: l.Namespace,
		Pod: l.PodName, Owner: l.Owner, Claim: l.Claim, Host: l.Host,
	}
	if r.Holder() == "" || l.State == lease.Active && l.PodName == "" {
		r.Owner = l.Who()
	}
	return r
}

// remembered returns the record of an entry that an address remembers. Its holder may be cut.
func remembered(l lease.Lease, p lease.Past) Record {
	r := Record{
		Time: p.Until, Since: p.Since, What: cmp.Or(p.Verb, WhatGaveUp), IP: l.Addr, Pool: l.Pool, Host: p.Host,
		By: p.By, Reason: p.Reason,
	}
	if r.Namespace, r.Pod = PodOf(p.Holder); r.Pod == "" {
		r.Owner = p.Holder
	}
	return r
}

// PodOf reads namespace/pod, as an address remembers its holder; empty for any other holder.
func PodOf(holder string) (namespace, pod string) {
	namespace, pod, ok := strings.Cut(holder, "/")
	if !ok || strings.Contains(pod, "/") || strings.Contains(namespace, " ") {
		return "", ""
	}
	return namespace, pod
}

// second cuts a time to the second, as what addresses remember.
func second(t time.Time) time.Time { return t.Truncate(time.Second).UTC() }
