package resource

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Words for the status of an address that lists show beside the states of its object. Each belongs to some addresses
// of one state; those that drain are Active or Reserved.
const (
	// StatusRetained is Reserved: a claim keeps the address, and nobody set it aside by hand.
	StatusRetained = "Kept"
	// StatusQuarantined is Reserved: somebody else answered for the address.
	StatusQuarantined = "Quarantined"
	// StatusCooling is Available: the address rests for the cooldown of its pool.
	StatusCooling = "Cooling"
	// StatusDraining is in use or reserved, and its pool no longer has the address or is being deleted.
	StatusDraining = "Draining"
)

// StatusWords returns all words for the status of an address: those of objects, then those of lists alone.
func StatusWords() []string {
	return []string{
		lease.Available.String(), lease.Active.String(), lease.Reserved.String(),
		StatusCooling, StatusRetained, StatusQuarantined, StatusDraining,
	}
}

// StatusText returns the status of an address as far as its object tells.
func StatusText(l lease.Lease) string {
	switch {
	case l.IsRetained():
		return StatusRetained
	case l.IsQuarantined():
		return StatusQuarantined
	}
	return l.State.String()
}

// Statuses knows what the pools tell about the status of addresses. A nil one knows no pool.
type Statuses struct {
	pools map[string]ipam.Pool
	now   time.Time
}

// NewStatuses reads the pools.
func NewStatuses(ctx context.Context, s *app.App) (*Statuses, error) {
	all, err := AllPools(ctx, s)
	if err != nil {
		return nil, err
	}
	return &Statuses{pools: SideBySide(Given(all)), now: s.Now()}, nil
}

// IsCooling reports whether an address is free and rests.
func (r *Statuses) IsCooling(l lease.Lease) bool {
	return r != nil && CoolingIn(r.pools[l.Pool], l, r.now)
}

// IsDraining reports whether an address is held and nobody gets it afterwards.
func (r *Statuses) IsDraining(l lease.Lease) bool {
	if r == nil || l.State == lease.Available {
		return false
	}
	p := r.pools[l.Pool]
	return p.Terminating || p.Lacks(l.Addr)
}

// Text returns the status of an address, in the word that tells most.
func (r *Statuses) Text(l lease.Lease) string {
	switch {
	case r.IsCooling(l):
		return StatusCooling
	case r.IsDraining(l):
		return StatusDraining
	}
	return StatusText(l)
}

// Is reports whether a word of StatusWords says the truth about an address. Of one that a claim keeps and that drains
// Reserved, Kept and Draining are true.
func (r *Statuses) Is(l lease.Lease, word string) bool {
	switch word {
	case StatusCooling:
		return r.IsCooling(l)
	case StatusDraining:
		return r.IsDraining(l)
	}
	return word == l.State.String() || word == StatusText(l)
}

// In replaces the status of addresses of which the pools tell more.
func (r *Statuses) In(columns []printer.Column[lease.Lease]) []printer.Column[lease.Lease] {
	for i, c := range columns {
		if c.Name == "STATUS" {
			columns[i].Cell = r.Text
		}
	}
	return columns
}

// setStatus reads the value of --status, in upper or lower case: a state of objects, or a word of lists.
func (q *LeaseQuery) setStatus(word string) error {
	words := StatusWords()
	i := slices.IndexFunc(words, func(w string) bool { return strings.EqualFold(w, word) })
	switch {
	case i < 0:
		last := len(words) - 1
		return app.Usagef("--status %q is not %s or %s", word, strings.Join(words[:last], ", "), words[last])
	case i <= int(lease.Reserved):
		q.Status = words[i]
	default:
		q.Status, q.Word = "", words[i]
	}
	return nil
}

// NeedsPools reports whether only the pools tell which addresses have the status that is asked for.
func (q *LeaseQuery) NeedsPools() bool { return q.Word == StatusCooling || q.Word == StatusDraining }

// ofWord returns what the API server can tell of the word: the field selectors that all of its addresses match.
func (q *LeaseQuery) ofWord() []string {
	switch q.Word {
	case StatusCooling:
		return []string{"status.status=" + lease.Available.String()}
	case StatusRetained:
		return []string{"status.status=" + lease.Reserved.String(), "status.claim!="}
	case StatusQuarantined:
		return []string{"status.status=" + lease.Reserved.String(), "status.claim="}
	case StatusDraining:
		return []string{"status.status!=" + lease.Available.String()}
	}
	return nil
}
