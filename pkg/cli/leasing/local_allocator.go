package leasing

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/gone"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// Allocator is an allocator in this process. While the command runs it acts as one more replica: it sees the writes of
// the others and follows the same protocol.
type Allocator struct {
	Adder   *allocator.Adder
	Stocker *allocator.Stocker
	Index   *index.Index
	Leases  *store.Client
	Stop    func()
}

// fillEvery is the polling interval while the allocator reads all addresses. After slow, the user is told about it.
const (
	fillEvery = 5 * time.Millisecond
	slow      = time.Second
)

// Start starts an allocator and waits until it knows all addresses and nodes. It allocates nothing before Open.
//
// forPods adds the parts that serve pods; if it is nil, only owners are served.
func Start(
	ctx context.Context, s *app.App, forPods func(*index.Index) (allocator.Pods, allocator.ConstraintsFinder),
) (*Allocator, error) {
	index := index.New()
	leases, err := s.LeasesWith(index)
	if err != nil {
		return nil, err
	}
	var pods allocator.Pods
	var terms allocator.ConstraintsFinder
	if forPods != nil {
		pods, terms = forPods(index)
	}
	jobs := allocator.New(index, leases, pods, terms, gone.Default(), slog.New(slog.DiscardHandler))
	a := &Allocator{Adder: jobs.Adder, Stocker: jobs.Stocker, Index: index, Leases: leases}
	feed := store.NewFeed(leases)
	// The user gets the feed's error once, so its log is discarded.
	feeding, cancel := context.WithCancel(klog.NewContext(ctx, logr.Discard()))
	var parts sync.WaitGroup
	parts.Go(func() { feed.Run(feeding) })
	a.Stop = func() {
		cancel()
		parts.Wait()
	}
	if err := fillIndex(ctx, s, feed, index); err != nil {
		a.Stop()
		return nil, err
	}
	return a, nil
}

// fillIndex waits for the addresses, and then reads the nodes: addresses of nodes must be known before pools are.
func fillIndex(ctx context.Context, s *app.App, feed *store.Feed, index *index.Index) error {
	began, told := s.Now(), false
	err := wait.PollUntilContextCancel(ctx, fillEvery, true, func(context.Context) (bool, error) {
		if !told && s.Now().Sub(began) > slow {
			s.Say.Wait("reading all addresses in %s", s.Where())
			told = true
		}
		return feed.Synced() && feed.Watching(), feed.Err()
	})
	if err != nil {
		return resource.Explain(s, err)
	}
	return resource.ReadNodes(ctx, s, index)
}

// Open reads the pools and the namespaces that they select, at the beginning of a request.
func (a *Allocator) Open(ctx context.Context, s *app.App) error {
	return resource.ReadPools(ctx, s, a.Index, a.Leases.Now())
}
