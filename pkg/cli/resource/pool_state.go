package resource

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
	"github.com/bcsnet/bcsnet/pkg/doctor"
	"github.com/bcsnet/bcsnet/pkg/ipam"
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

// Room counts the addresses of a pool: those that it serves or has leases on, the free ones, and those that are leased
// for overlapping pools.
type Room struct {
	Total, Free, Others int64
	// Counted: a controller made the counts, which consider other pools and nodes.
	Counted bool
}

// OthersOf returns, by a pool's status, how many addresses are neither free nor its own: leases of overlapping pools,
// and leases whose objects are lost.
func OthersOf(p *v1.BCSNetPool) int64 {
	s := p.Status
	return max(0, s.Capacity-s.Available-s.Active-s.Reserved-s.Cooling)
}

// RoomOf returns the room of a pool from its status, or computed from its plan if the status is out of date. held
// counts taken addresses of the spec, beside taken addresses outside it.
func RoomOf(p *v1.BCSNetPool, plan ipam.Pool, held, beside int64) Room {
	if s := p.Status; Counted(p) && s.ObservedGeneration == p.Generation {
		r := Room{Total: s.Capacity, Free: s.Available, Counted: true}
		if meta.IsStatusConditionTrue(s.Conditions, v1.ConditionOverlap) {
			r.Others = max(0, r.Total-r.Free-held-beside)
		}
		return r
	}
	total := ipaddr.SizeOfSet(plan.Usable())
	free := total - min(total, uint64(max(0, held)))
	all := min(total, math.MaxInt64-uint64(max(0, beside))) + uint64(max(0, beside))
	return Room{Total: int64(all), Free: int64(min(free, math.MaxInt64))}
}

// SourceOf returns the ConfigMap from which the controller keeps a pool, as NAMESPACE/NAME; empty if users keep it.
func SourceOf(p Pool) string {
	return cmp.Or(p.Annotations[v1.FloatingIPConfigAnnotation], p.Annotations[v1.HostnicConfigAnnotation])
}

// SourceText describes the ConfigMap of a pool, and whether the pool will be deleted.
func SourceText(p Pool) string {
	text := "ConfigMap " + SourceOf(p)
	switch {
	case p.Annotations[v1.HostnicGoneAnnotation] != "":
		text += ", which no longer gives it to its namespace: the block is deleted when it is empty"
	case p.Annotations[v1.FloatingIPGoneAnnotation] != "":
		text += ", which no longer has it: the pool is deleted when none of its addresses is held"
	}
	return text
}

// WarnReverted warns if the controller will revert a change, because the pool's ConfigMap says otherwise.
func WarnReverted(s *app.App, p Pool, changed func(field string) bool) {
	kept := []string{"net", "mask", "gateway", "vlan", "hostSubnets", "availableIPs"}
	if p.Annotations[v1.HostnicConfigAnnotation] != "" {
		kept = []string{"priority"}
	}
	if SourceOf(p) != "" && slices.ContainsFunc(kept, changed) {
		s.Say.Warn("pool %s is kept from ConfigMap %s, which says otherwise: the controller puts it back", p.Name,
			SourceOf(p))
		s.Hint("change it there")
	}
}

// DiffersIn returns a function that reports whether the specs of two pools differ in a field.
func DiffersIn(a, b Pool) func(field string) bool {
	spec := func(p Pool) map[string]any {
		fields, _ := p.Stored.Object["spec"].(map[string]any)
		return fields
	}
	return func(field string) bool { return !equality.Semantic.DeepEqual(spec(a)[field], spec(b)[field]) }
}
