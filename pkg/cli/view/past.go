package view

import (
	"net/netip"

	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/history"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Past is one holder of an address, or one thing that was done to it.
type Past struct {
	Addr netip.Addr
	lease.Past
	// Pool of the address; empty where it is not known.
	Pool string
	// Current: it is so now, and has no end.
	Current bool
}

// What became of an address beside the verbs of people.
const (
	whatHolds    = "holds"
	whatReserved = "reserved"
	whatRests    = "rests" // in quarantine
	whatKept     = "keeps"
	whatGaveUp   = history.WhatGaveUp
)

// PastOf returns the holders of an address and what was done to it, newest first.
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
