package view

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Claim describes a claim.
type Claim struct {
	resource.Claim
	Leases []lease.Lease
	Events []resource.Event
	// Blind: its addresses were not read.
	Blind bool
}

// ClaimNamed reads a claim; without its addresses if blind is set.
func ClaimNamed(ctx context.Context, s *app.App, key types.NamespacedName, blind bool) (*Claim, error) {
	api, err := resource.NewClaims(s)
	if err != nil {
		return nil, err
	}
	c, err := api.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	d := &Claim{Claim: c, Blind: blind}
	if !blind {
		if d.Leases, err = resource.LeasesOfClaim(ctx, s, c.FullName()); err != nil {
			return nil, err
		}
	}
	d.Events = eventsOf(ctx, s, c.Namespace, c.UID)
	return d, nil
}

// eventsOf reads the newest events of an object in a namespace; empty means all. It warns if they cannot be read,
// unless that is forbidden.
func eventsOf(ctx context.Context, s *app.App, namespace string, uid types.UID) []resource.Event {
	events, err := resource.RecentEvents(ctx, s, namespace, uid)
	if err != nil && !apierrors.IsForbidden(err) {
		s.Say.Warn("events cannot be read: %v", resource.Explain(s, err))
	}
	return events
}

// ClaimUses counts the addresses of a claim that pods use, and those that are kept.
func ClaimUses(leases []lease.Lease) (used, kept int) {
	for _, l := range leases {
		if l.State == lease.Active {
			used++
		} else {
			kept++
		}
	}
	return used, kept
}
