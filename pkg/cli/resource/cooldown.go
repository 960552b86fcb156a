package resource

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/explain"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// CoolingIn reports whether a free address of a pool rests at a time.
func CoolingIn(p ipam.Pool, l lease.Lease, now time.Time) bool {
	return l.CoolsUntil(p.Cooldown).After(now) && p.Usable().Contains(l.Addr)
}

// Cooldowns knows which of the free addresses of a list rest, by the cooldowns of the pools that they name. A nil
// one knows none.
type Cooldowns struct {
	pools map[string]ipam.Pool
	now   time.Time
}

// NewCooldowns reads the pools. Who may not read them sees no address rest.
func NewCooldowns(ctx context.Context, s *app.App) *Cooldowns {
	all, err := AllPools(ctx, s)
	if err != nil {
		return nil
	}
	r := &Cooldowns{pools: map[string]ipam.Pool{}, now: s.Now()}
	for _, p := range all {
		if known := store.Pool(p.BCSNetPool); known.Cooldown > 0 {
			r.pools[known.Name] = known
		}
	}
	return r
}

// Has reports whether an address rests. Of a nil Cooldowns none does.
func (r *Cooldowns) Has(l lease.Lease) bool { return r != nil && CoolingIn(r.pools[l.Pool], l, r.now) }

// stateCooling stands in lists for an address that is Available and rests.
const stateCooling = "Cooling"

// In replaces the status of addresses that rest.
func (r *Cooldowns) In(columns []printer.Column[lease.Lease]) []printer.Column[lease.Lease] {
	for i, c := range columns {
		if c.Name != "STATUS" {
			continue
		}
		columns[i].Cell = func(l lease.Lease) string {
			if r.Has(l) {
				return stateCooling
			}
			return c.Cell(l)
		}
	}
	return columns
}

// CooldownOf checks the value of --cooldown.
func CooldownOf(d time.Duration) (*metav1.Duration, error) {
	switch {
	case d == 0:
		return nil, nil
	case d < 0 || d > v1.MaxCooldown || d%time.Second != 0:
		return nil, app.Usagef("--cooldown %s is not a number of whole seconds up to %s", d,
			explain.FormatSpan(v1.MaxCooldown))
	}
	return &metav1.Duration{Duration: d}, nil
}
