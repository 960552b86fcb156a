package allocator

import (
	"context"
	"log/slog"
	"net/netip"

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

// Allocator has the jobs of the protocol. They share one index and one store, and know nothing of each other.
type Allocator struct {
	// Adder answers ADD.
	Adder *Adder
	// Releaser answers DEL, and releases single addresses by hand.
	Releaser *Releaser
	// Repairer releases what ADDs, DELs and runtimes left over.
	Repairer *Repairer
	// Stocker takes addresses and blocks before a pod asks.
	Stocker *Stocker
	// Reporter judges reports that somebody else answers for an address.
	Reporter *Reporter
}

// New makes an allocator over an index that is fed by the client's feed. Call it before the feed runs. An allocator
// that serves only owners needs neither pods nor constraints; without constraints no pod has any. rule bounds how long
// containers may run whose pod is gone.
func New(
	index *index.Index, leases *store.Client, pods Pods, constraints ConstraintsFinder, rule gone.Rule,
	log *slog.Logger,
) *Allocator {
	e := &engine{
		index: index, leases: leases, pods: pods, locks: newLocks(), tombstones: newTombstones(leases.Now), log: log,
	}
	w, blocks, held := &writer{engine: e}, &blockMaker{engine: e}, &holdings{engine: e}
	a := &Allocator{
		Adder:    newAdder(e, w, blocks, held, constraints, rule),
		Releaser: &Releaser{engine: e},
		Repairer: &Repairer{
			engine: e, writer: w, holdings: held, unconfirmed: newUnconfirmed(), duplicates: newDuplicates(),
		},
		Stocker:  &Stocker{engine: e, writer: w, blocks: blocks},
		Reporter: &Reporter{engine: e},
	}
	index.Feed.Subscribe(a.Adder.departures.changed)
	index.Feed.Subscribe(a.Repairer.changed)
	return a
}
