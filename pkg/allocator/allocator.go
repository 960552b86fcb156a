package allocator

import (
	"context"
	"log/slog"
	"net/netip"
	"sync/atomic"

	"golang.org/x/sync/singleflight"

	"github.com/bcsnet/bcsnet/pkg/gone"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/store"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// PodFinder finds the pod of a request.
type PodFinder interface {
	Find(ctx context.Context, namespace, name, uid string, host netip.Addr) (workload.Pod, error)
	FindLive(ctx context.Context, namespace, name, uid string) (workload.Pod, error)
	// On reports whether a pod is on one of some hosts; nil stands for all hosts.
	On(pod workload.Pod, hosts []netip.Addr) bool
}

// Pods finds pods by what they are doing, too; workload.Pods is one.
type Pods interface {
	PodFinder
	Ending(ctx context.Context, namespace string, version uint64, match func(uid string) bool) ([]workload.Pod, error)
}

// Allocator answers ADD and DEL.
type Allocator struct {
	index       *index.Index
	leases      *store.Client
	pods        Pods
	constraints ConstraintsFinder
	locks       *locks
	tombstones  *tombstones
	unconfirmed *unconfirmed
	releases    atomic.Int32 // DELs under way
	duplicates  *duplicates
	waits       *waitQueue
	catchUps    *catchUps
	// blocks has one request at a time make a block, for all that need it.
	blocks singleflight.Group
	// rule bounds how long containers may run whose pod is gone; vanished has the earlier pods of keys that are gone.
	rule     gone.Rule
	vanished *vanished
	log      *slog.Logger
	// migrations knows which virtual machines migrate; nil where none gets a second attachment.
	migrations Migrations
	// gatewayOf is the gateway of a host in place of the pool's; nil if hosts replace none.
	gatewayOf func(host netip.Addr) netip.Addr
	again     atomic.Uint64
}

// AdmitMigrations lets pods that virtual machines migrate to get second attachments of addresses. Call it before the
// feed runs.
func (a *Allocator) AdmitMigrations(m Migrations) { a.migrations = m }

// Stats has the counts of an allocator since it was made, and of what is open now.
type Stats struct {
	// Again counts the attempts that began anew because the index had changed meanwhile.
	Again uint64
	// InDoubt counts the addresses of which the outcome of a write is unknown.
	InDoubt int
}

// Stats reads the counts.
func (a *Allocator) Stats() Stats {
	return Stats{Again: a.again.Load(), InDoubt: len(a.index.Unknown(""))}
}

// New makes an allocator over an index that is fed by the client's feed. Call it before the feed runs. An allocator
// that serves only owners needs neither pods nor constraints; without constraints no pod has any. rule bounds how long
// containers may run whose pod is gone.
func New(
	index *index.Index, leases *store.Client, pods Pods, constraints ConstraintsFinder, rule gone.Rule,
	log *slog.Logger,
) *Allocator {
	a := &Allocator{
		index: index, leases: leases, pods: pods, constraints: constraints, log: log,
		locks: newLocks(), tombstones: newTombstones(leases.Now), unconfirmed: newUnconfirmed(),
		duplicates: newDuplicates(), waits: newWaitQueue(),
		catchUps: &catchUps{index: index, leases: leases, turn: make(chan struct{}, 1)},
		rule:     rule, vanished: newVanished(),
	}
	index.Feed.Subscribe(a.changed)
	return a
}
