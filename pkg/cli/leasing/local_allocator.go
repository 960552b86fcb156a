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

// Allocator is an allocator in this process, one replica more for as long as a command runs: it sees
// what the others write, and follows the same protocol.
type Allocator struct {
	Adder   *allocator.Adder
	Stocker *allocator.Stocker
	Index   *index.Index
	Leases  *store.Client
	Stop    func()
}

// fillEvery is the interval of the checks whether the allocator knows all addresses. slow is the time after which the
// user reads what the command waits for.
const (
	fillEvery = 5 * time.Millisecond
	slow      = time.Second
)

// Start begins an allocator, and returns when that knows all addresses and nodes. It gives nothing before it knows
// pools, too.
//
// forPods gives it what serves pods; without that it serves owners only.
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
	// What the feed logs, the user reads once, as an error.
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

// fillIndex waits for the addresses, and then reads the nodes: what these have themselves must be known before any
// pool is.
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
	nodes, err := resource.ListNodes(ctx, s)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		index.Pools.SetNode(n.Name, n.Known())
	}
	return nil
}

// Open reads the pools, as they are when a request begins, and the namespaces that they choose from.
func (a *Allocator) Open(ctx context.Context, s *app.App) error {
	pools, err := resource.AllPools(ctx, s)
	if err != nil {
		return err
	}
	if err := resource.SetNamespaces(ctx, s, a.Index, pools); err != nil {
		return err
	}
	resource.SetPools(a.Index, pools, a.Leases.Now())
	return nil
}
