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
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// AbandonedFor is how long a block stays whose namespace is gone: one that comes again meanwhile has it still.
const AbandonedFor = time.Hour

// Reclaimer takes blocks back that nobody needs, by the deletion of a pool. From a namespace that lives it takes only
// what its parent's reclaimAfter allows, and never the last block: firewalls know it. An ADD that comes meanwhile has
// its address: the deletion waits until it is released, and whoever asks after it gets an address of another block.
type Reclaimer struct {
	ReclaimerConfig

	// idle is since when blocks were seen idle; changed by the passes alone.
	idle idleSince
}

// ReclaimerConfig is what a Reclaimer works with.
type ReclaimerConfig struct {
	Client client.Client
	// Live reads the API server itself.
	Live   client.Reader
	Index  *index.Index
	Leases *store.Client
	// Mapping is the ConfigMap, NAMESPACE/NAME, that says which blocks stay; empty for none. The marks of another one,
	// which no controller follows any more, keep nothing.
	Mapping string
	// After is how long a block stays whose namespace is gone; 0 for AbandonedFor.
	After time.Duration
	Ready func() error
	Log   *slog.Logger
}

// idleSince is since when blocks were seen idle.
type idleSince map[idleKey]time.Time

// idleKey is one block; one that is made again under the name is another. Whose namespace has gone counts from then on.
type idleKey struct {
	name      string
	created   time.Time
	abandoned bool
}

func keyOf(b ipam.IdleBlock) idleKey { return idleKey{b.Block, b.Created, b.Abandoned} }

// of returns since when a block that is idle now was seen so: none of its addresses was in use in between.
func (s idleSince) of(b ipam.IdleBlock, now time.Time) time.Time {
	if since, known := s[keyOf(b)]; known && !since.Before(b.Used) {
		return since
	}
	return now
}

// NewReclaimer returns a reclaimer that has seen nothing yet.
func NewReclaimer(o ReclaimerConfig) *Reclaimer {
	o.After = cmp.Or(o.After, AbandonedFor)
	return &Reclaimer{ReclaimerConfig: o}
}

// Start looks at the blocks until the context ends, a term of the leader.
func (r *Reclaimer) Start(ctx context.Context) error {
	if !leadership.AwaitReady(ctx, r.Ready) {
		return nil
	}
	r.idle = idleSince{}
	leadership.Every(ctx, min(30*time.Second, max(r.After/8, 100*time.Millisecond)), func() { r.pass(ctx) })
	return nil
}

// pass takes back the blocks whose time has come, one after the other.
func (r *Reclaimer) pass(ctx context.Context) {
	seen, taken := idleSince{}, map[string]bool{}
	for _, b := range r.Index.Pools.IdleBlocks(r.Leases.Now()) {
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

// isMapped reports whether a block is of a ConfigMap, and which is so.
func (r *Reclaimer) isMapped(ctx context.Context, b ipam.IdleBlock, so func(*v1.BCSNetPool) bool) bool {
	var o v1.BCSNetPool
	return r.Client.Get(ctx, types.NamespacedName{Name: b.Block}, &o) == nil &&
		o.Annotations[v1.HostnicConfigAnnotation] != "" && so(&o)
}

// keeps reports whether the ConfigMap that is followed says how long a block stays.
func (r *Reclaimer) keeps(o *v1.BCSNetPool) bool {
	return r.Mapping != "" && o.Annotations[v1.HostnicConfigAnnotation] == r.Mapping &&
		o.Annotations[v1.HostnicGoneAnnotation] == ""
}

// leftover reports whether a ConfigMap that is followed no more had given up a block, which was to go.
func (r *Reclaimer) leftover(o *v1.BCSNetPool) bool {
	return o.Annotations[v1.HostnicConfigAnnotation] != r.Mapping && o.Annotations[v1.HostnicGoneAnnotation] != ""
}

// always lets a block go of which that is known already.
func always(context.Context, ipam.IdleBlock) (bool, error) { return true, nil }

// TakeBack deletes a block whose ConfigMap gives it to its namespace no more, unless the API server itself shows that
// it is another by now, that it is given to the namespace again, or that somebody has an address of it.
func (r *Reclaimer) TakeBack(ctx context.Context, b ipam.IdleBlock) (done bool, err error) {
	return r.takeBack(ctx, b, always)
}

// takeBack deletes a block, unless the API server itself shows that it is another by now, that a ConfigMap keeps it,
// that somebody has an address of it, or that it may not go: that its namespace lives, or that it would be the last one
// of a namespace that does.
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
	r.Index.Pools.EndPool(b.Block, b.Created) // no request is given an address of it from here on
	return true, nil
}

// may reports whether the API server itself shows that a block may go: its namespace does not exist, its parent is
// being deleted, or another of its blocks stays.
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
