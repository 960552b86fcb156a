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

// Words that lists show instead of the state of an address. Each one refers to some addresses of a state.
const (
	// StatusRetained is Reserved: a claim keeps the address.
	StatusRetained = "Kept"
	// StatusQuarantined is Reserved: another machine answered for the address.
	StatusQuarantined = "Quarantined"
	// StatusCooling is Available: the address is in its pool's cooldown.
	StatusCooling = "Cooling"
	// StatusDraining is Active or Reserved: the pool no longer has the address or is being deleted.
	StatusDraining = "Draining"
)

// StatusWords returns all words for the status of an address, those of objects first.
func StatusWords() []string {
	return []string{
		lease.Available.String(), lease.Active.String(), lease.Reserved.String(),
		StatusCooling, StatusRetained, StatusQuarantined, StatusDraining,
	}
}

// StatusText returns the status of an address as far as its object shows it.
func StatusText(l lease.Lease) string {
	switch {
	case l.IsRetained():
		return StatusRetained
	case l.IsQuarantined():
		return StatusQuarantined
	}
	return l.State.String()
}

// Statuses knows the statuses of addresses that depend on pools. A nil one knows no pool.
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

// IsCooling reports whether an address is free and in cooldown.
func (r *Statuses) IsCooling(l lease.Lease) bool {
	return r != nil && CoolingIn(r.pools[l.Pool], l, r.now)
}

// IsDraining reports whether an address is held but will not be allocated again.
func (r *Statuses) IsDraining(l lease.Lease) bool {
	if r == nil || l.State == lease.Available {
		return false
	}
	p := r.pools[l.Pool]
	return p.Terminating || p.Lacks(l.Addr)
}

// Text returns the most specific status of an address.
func (r *Statuses) Text(l lease.Lease) string {
	switch {
	case r.IsCooling(l):
		return StatusCooling
	case r.IsDraining(l):
		return StatusDraining
	}
	return StatusText(l)
}

// Is reports whether a word of StatusWords applies to an address. Several may apply: Reserved, Kept and Draining.
func (r *Statuses) Is(l lease.Lease, word string) bool {
	switch word {
	case StatusCooling:
		return r.IsCooling(l)
	case StatusDraining:
		return r.IsDraining(l)
	}
	return word == l.State.String() || word == StatusText(l)
}

// In replaces the cells of the column STATUS by the result of Text.
func (r *Statuses) In(columns []printer.Column[lease.Lease]) []printer.Column[lease.Lease] {
	for i, c := range columns {
		if c.Name == "STATUS" {
			columns[i].Cell = r.Text
		}
	}
	return columns
}

// setStatus parses the value of --status, in upper or lower case.
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

// NeedsPools reports whether the selected status depends on pools.
func (q *LeaseQuery) NeedsPools() bool { return q.Word == StatusCooling || q.Word == StatusDraining }

// ofWord returns the field selectors that all addresses with the word match.
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
