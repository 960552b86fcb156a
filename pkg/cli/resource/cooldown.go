package resource

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/explain"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// CoolingIn reports whether a free address of a pool is in cooldown at now.
func CoolingIn(p ipam.Pool, l lease.Lease, now time.Time) bool {
	return l.CoolsUntil(p.Cooldown).After(now) && p.Usable().Contains(l.Addr)
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
