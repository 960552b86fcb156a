package ipam

import (
	"fmt"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Obstacle is a lease of another pool on an address that a group is to have.
type Obstacle struct {
	Lease lease.Lease
	// Cools is when the address, which nobody has, has cooled down; zero for one that somebody has.
	Cools time.Time
}

// String says which address it is, and who has it: "10.0.0.20 (shop/web-0 on 10.0.0.11)".
func (o Obstacle) String() string {
	who := "kept for claim " + o.Lease.Claim
	switch {
	case !o.Cools.IsZero():
		who = "cooling until " + o.Cools.Add(time.Second-1).UTC().Format(time.RFC3339)
	case o.Lease.State == lease.Active:
		who = o.Lease.Where()
	}
	return fmt.Sprintf("%s (%s)", o.Lease.Addr, who)
}

// Obstacle reports whether a lease keeps its address from being handed over to a group: somebody has it by another
// pool, with that pool's cooldown, or a claim keeps it, or it cools. What an operator set aside stays set aside in the
// group.
func (p Pool) Obstacle(l lease.Lease, cooldown time.Duration, now time.Time) (o Obstacle, is bool) {
	if l.Pool == p.Name {
		return o, false
	}
	switch o.Lease = l; {
	case l.State == lease.Active, l.IsRetained():
		return o, true
	case l.State == lease.Available:
		if ends := l.CoolsUntil(cooldown); ends.After(now) {
			o.Cools = ends
			return o, true
		}
	}
	return o, false
}
