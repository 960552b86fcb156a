package view

import (
	"net/netip"

	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/history"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Past is a past or present holder of an address, or an action on it.
type Past struct {
	Addr netip.Addr
	lease.Past
	// Pool is the address's pool; empty if it is unknown.
	Pool string
	// Current: it is the present state and has no end.
	Current bool
}

// What happened to an address, in addition to the verbs of users.
const (
	whatHolds    = "holds"
	whatReserved = "reserved"
	whatRests    = "rests" // in quarantine
	whatKept     = "keeps"
	whatGaveUp   = history.WhatGaveUp
)

// PastOf returns the holders of an address and the actions on it, newest first.
func PastOf(l lease.Lease) (rows []Past) {
	switch l.State {
	case lease.Active:
		for l := range l.Attachments() {
			rows = append(rows, Past{Addr: l.Addr, Pool: l.Pool, Current: true, Past: lease.Past{
				Holder: l.Who(), Host: l.Host, Since: l.Updated, Change: lease.Change{Verb: whatHolds},
			}})
		}
	case lease.Reserved:
		change := l.Reservation()
		if change.Verb = whatReserved; l.IsQuarantined() {
			change = lease.Change{Verb: whatRests, By: l.Conflict.MAC}
		}
		if l.Claim != "" {
			change = lease.Change{Verb: whatKept}
		}
		rows = append(rows, Past{Addr: l.Addr, Pool: l.Pool, Current: true, Past: lease.Past{
			Holder: resource.ClaimHolder(l), Since: l.Updated, Change: change,
		}})
	case lease.Available:
	}
	for _, p := range l.History.Entries() {
		if p.Verb == "" {
			p.Verb = whatGaveUp
		}
		rows = append(rows, Past{Addr: l.Addr, Pool: l.Pool, Past: p})
	}
	return rows
}
