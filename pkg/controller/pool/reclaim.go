package pool

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/controller/leadership"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// AbandonedFor is the time for which a block stays after its namespace is gone: a namespace that is created again
// meanwhile still has it.
const AbandonedFor = time.Hour

// Reclaimer takes back blocks that nobody needs, by deleting their pools. From an existing namespace it takes only
// blocks that its parent's reclaimAfter allows, and never the last one, because firewalls know it. An ADD in the
// meantime keeps its address: the deletion waits until it is released, and later requests get an address of another
// block.
type Reclaimer struct {
	ReclaimerConfig

	// idle has the time at which each block was first seen idle; only the passes change it.
	idle idleSince
}

// Blocks finds and ends idle blocks: the pools of the index do.
type Blocks interface {
	IdleBlocks(now time.Time) []ipam.IdleBlock
	EndPool(name string, created time.Time)
}

// ReclaimerConfig has the dependencies and settings of a Reclaimer.
type ReclaimerConfig struct {
	Client client.Client
	// Live reads from the API server, not from a cache.
	Live   client.Reader
	Blocks Blocks
	Leases *store.Client
	// Mapping is the ConfigMap (NAMESPACE/NAME) whose blocks stay; empty for none. Marks of another ConfigMap, which no
	// controller follows any more, do not keep a block.
	Mapping string
	// After is the time for which a block stays after its namespace is gone; 0 for AbandonedFor.
	After time.Duration
	Ready func() error
	Log   *slog.Logger
}

// idleSince has the times at which blocks were first seen idle.
type idleSince map[idleKey]time.Time

// idleKey identifies one block; a new block with the same name is another one. If its namespace is deleted, its time
// begins anew.
type idleKey struct {
	name      string
	created   time.Time
	abandoned bool
}

func keyOf(b ipam.IdleBlock) idleKey { return idleKey{b.Block, b.Created, b.Abandoned} }

// of returns the time at which a currently idle block was first seen idle, without any address in use in between.
func (s idleSince) of(b ipam.IdleBlock, now time.Time) time.Time {
	if since, known := s[keyOf(b)]; known && !since.Before(b.Used) {
		return since
	}
	return now
}

// NewReclaimer returns a Reclaimer without observations.
func NewReclaimer(o ReclaimerConfig) *Reclaimer {
	o.After = cmp.Or(o.After, AbandonedFor)
	return &Reclaimer{ReclaimerConfig: o}
}

// Start checks the blocks until the context ends, that is for a term of the leader.
func (r *Reclaimer) Start(ctx context.Context) error {
	if !leadership.AwaitReady(ctx, r.Ready) {
		return nil
	}
	r.idle = idleSince{}
	leadership.Every(ctx, min(30*time.Second, max(r.After/8, 100*time.Millisecond)), func() { r.pass(ctx) })
	return nil
}

// pass takes back the blocks that are due, one after the other.
func (r *Reclaimer) pass(ctx context.Context) {
	seen, taken := idleSince{}, map[string]bool{}
	for _, b := range r.Blocks.IdleBlocks(r.Leases.Now()) {
		b.Others = slices.DeleteFunc(b.Others, func(o string) bool { return taken[o] })
		after, may := r.After, r.may
		switch {
		case b.ParentGoes:
			after = 0
		case r.isMapped(ctx, b, r.keeps):
			continue
		case r.isMapped(ctx, b, r.leftover):
			after, may = 0, always
		case b.Abandoned:
		case b.After == 0 || len(b.Others) == 0:
			continue
		default:
			after = b.After
		}
		now := r.Leases.Now()
		since := r.idle.of(b, now)
		if seen[keyOf(b)] = since; now.Sub(since) < after || ctx.Err() != nil {
			continue
		}
		done, err := r.takeBack(ctx, b, may)
		switch {
		case err != nil:
			r.Log.Warn("a block is not taken back yet", "block", b.Block, "namespace", b.Namespace, "error", err)
		case done:
			taken[b.Block] = true
			r.Log.Info("a block is taken back", "block", b.Block, "namespace", b.Namespace, "idle", now.Sub(since))
		}
	}
	r.idle = seen
}

// isMapped reports whether a block belongs to a ConfigMap and satisfies so.
func (r *Reclaimer) isMapped(ctx context.Context, b ipam.IdleBlock, so func(*v1.BCSNetPool) bool) bool {
	var o v1.BCSNetPool
	return r.Client.Get(ctx, types.NamespacedName{Name: b.Block}, &o) == nil &&
		o.Annotations[v1.HostnicConfigAnnotation] != "" && so(&o)
}

// keeps reports whether the followed ConfigMap decides how long a block stays.
func (r *Reclaimer) keeps(o *v1.BCSNetPool) bool {
	return r.Mapping != "" && o.Annotations[v1.HostnicConfigAnnotation] == r.Mapping &&
		o.Annotations[v1.HostnicGoneAnnotation] == ""
}

// leftover reports whether a ConfigMap that is no longer followed had given up a block that was then to be deleted.
func (r *Reclaimer) leftover(o *v1.BCSNetPool) bool {
	return o.Annotations[v1.HostnicConfigAnnotation] != r.Mapping && o.Annotations[v1.HostnicGoneAnnotation] != ""
}

// always permits the deletion of a block without a check, because it is already known to be allowed.
func always(context.Context, ipam.IdleBlock) (bool, error) { return true, nil }

// TakeBack deletes a block that its ConfigMap no longer gives to its namespace. It leaves the block if the API server
// shows that it is a different block by now, that it is given to the namespace again, or that one of its addresses has
// a holder.
func (r *Reclaimer) TakeBack(ctx context.Context, b ipam.IdleBlock) (done bool, err error) {
	return r.takeBack(ctx, b, always)
}

// takeBack deletes a block, unless the API server shows that it is a different block by now, that a ConfigMap keeps it,
// that one of its addresses has a holder, or that it may not be deleted: its namespace exists, or it would be the last
// block of an existing namespace.
func (r *Reclaimer) takeBack(
	ctx context.Context, b ipam.IdleBlock, may func(context.Context, ipam.IdleBlock) (bool, error),
) (done bool, err error) {
	var o v1.BCSNetPool
	if err := r.Live.Get(ctx, types.NamespacedName{Name: b.Block}, &o); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	if !o.DeletionTimestamp.IsZero() || !slices.Equal(o.Spec.Namespaces, []string{b.Namespace}) ||
		!o.CreationTimestamp.Time.Equal(b.Created) || !b.ParentGoes && r.keeps(&o) {
		return false, nil
	}
	if allowed, err := may(ctx, b); !allowed || err != nil {
		return false, err
	}
	held := 0
	if err := r.Leases.Each(ctx, "spec.pool="+b.Block, func(l lease.Lease) error {
		if l.State == lease.Active || l.IsRetained() || l.State == lease.Reserved && !b.ParentGoes {
			held++
		}
		return nil
	}); err != nil || held > 0 {
		return false, err
	}
	err = r.Client.Delete(ctx, &o, client.Preconditions{UID: &o.UID, ResourceVersion: &o.ResourceVersion})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("deleting it: %w", err)
	}
	r.Blocks.EndPool(b.Block, b.Created) // from here on, no request gets an address of it
	return true, nil
}

// may reports whether the API server shows that a block may be deleted: its namespace does not exist, its parent is
// being deleted, or another of its namespace's blocks stays.
func (r *Reclaimer) may(ctx context.Context, b ipam.IdleBlock) (bool, error) {
	if b.ParentGoes {
		return true, nil
	}
	if b.Abandoned {
		err := r.Live.Get(ctx, types.NamespacedName{Name: b.Namespace}, &corev1.Namespace{})
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}
	for _, name := range b.Others {
		var o v1.BCSNetPool
		err := r.Live.Get(ctx, types.NamespacedName{Name: name}, &o)
		switch {
		case client.IgnoreNotFound(err) != nil:
			return false, err
		case err == nil && o.DeletionTimestamp.IsZero() && slices.Equal(o.Spec.Namespaces, []string{b.Namespace}):
			return true, nil
		}
	}
	return false, nil
}
