package resource

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
	"github.com/bcsnet/bcsnet/pkg/doctor"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/recovery"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// States of a pool in addition to the reasons of its Ready condition.
const (
	stateReady    = "Ready"
	StateUnseen   = "Unseen"   // no controller has seen the pool
	StateBlock    = "Block"    // a block, which has no status of its own
	StateUpdating = "Updating" // nor at its last change
	stateShort    = "Short"    // a claim without all its addresses
)

// PoolState returns the gravest state of a pool, and whether it needs attention.
func PoolState(s *app.App, p *v1.BCSNetPool) (word string, attention bool) {
	notable := v1.Notable(p.Status.Conditions)
	ready := meta.FindStatusCondition(p.Status.Conditions, v1.ConditionReady)
	switch {
	case p.DeletionTimestamp != nil:
		return v1.ReasonTerminating, true
	case p.Status.ObservedGeneration == 0 && store.IsBlock(p): // the parent's status counts its addresses
		return StateBlock, false
	case p.Status.ObservedGeneration == 0:
		return StateUnseen, s.Now().Sub(p.CreationTimestamp.Time) > doctor.Patience
	case p.Status.ObservedGeneration < p.Generation:
		return StateUpdating, false
	case ready != nil && ready.Status != metav1.ConditionTrue:
		return ready.Reason, ready.Reason != v1.ReasonCordoned
	case notable != "":
		return notable, notable != v1.ConditionDraining
	case p.Status.Status == v1.PoolInitializing:
		return string(v1.PoolInitializing), false
	default:
		return stateReady, false
	}
}

// PoolStateColor returns the colour that goes with a pool's state.
func PoolStateColor(s *app.App, p *v1.BCSNetPool) terminal.Color {
	word, attention := PoolState(s, p)
	switch {
	case attention:
		return terminal.Red
	case word == stateReady, word == StateBlock:
		return terminal.Green
	default:
		return terminal.Yellow
	}
}

// CidrOf returns the subnet of a pool in canonical form, or the text of its spec if that is invalid.
func CidrOf(p *v1.BCSNetPool) string {
	net := p.Spec.Net
	if a, err := ipaddr.ParseAddr(net); err == nil {
		net = a.String()
	}
	return fmt.Sprintf("%s/%d", net, p.Spec.Mask)
}

// GatewayText names a gateway, or says that there is none.
func GatewayText(gateway string) string {
	if gateway == "" {
		return "no gateway"
	}
	return "gateway " + gateway
}

// Counted reports whether a controller has written counts into the pool's status.
func Counted(p *v1.BCSNetPool) bool { return p.Status.ObservedGeneration != 0 }

// Rebuilding says until when a pool allocates nothing because it lost leases: a running pod may have an address that
// looks free. The controller reports this in the pool's status. The text is empty if the pool is not being rebuilt, or
// the report is so old that the controller must be gone.
func Rebuilding(p Pool, now time.Time) string {
	ready := meta.FindStatusCondition(p.Status.Conditions, v1.ConditionReady)
	if ready == nil || ready.Reason != v1.ReasonRebuilding {
		return ""
	}
	end := ready.LastTransitionTime.Add(recovery.MaxWait)
	if !now.Before(end) {
		return ""
	}
	return "until its pods have told which addresses they have, at the latest at " + end.UTC().Format(time.RFC3339)
}
