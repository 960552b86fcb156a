package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/claim"
	claimcontroller "github.com/bcsnet/bcsnet/pkg/controller/claim"
	"github.com/bcsnet/bcsnet/pkg/controller/clusterapi"
	"github.com/bcsnet/bcsnet/pkg/controller/conditions"
	"github.com/bcsnet/bcsnet/pkg/controller/gc"
	"github.com/bcsnet/bcsnet/pkg/controller/informers"
	"github.com/bcsnet/bcsnet/pkg/controller/leadership"
	"github.com/bcsnet/bcsnet/pkg/controller/node"
	"github.com/bcsnet/bcsnet/pkg/controller/pool"
	"github.com/bcsnet/bcsnet/pkg/controller/services"
	"github.com/bcsnet/bcsnet/pkg/httpapi"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/recovery"
	"github.com/bcsnet/bcsnet/pkg/store"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// core has the components that every replica has, whether it leads or not: the index with its feeds, the components
// that decide requests, and the reconcilers, which are idle while the replica does not lead. Each component is
// constructed after its dependencies.
type core struct {
	index    *index.Index
	leases   *store.Client
	feed     *store.Feed
	nodes    *node.Nodes
	pods     *workload.Pods
	owners   *workload.Owners
	policies *workload.Resolver
	// constraints finds the allocator's constraints for pods.
	constraints *claim.ConstraintsFinder
	alloc       *allocator.Allocator
	leads       *leadership.Terms
	breaker     *gc.Breaker
	pools       *pool.Reconciler
	states      *claimcontroller.States
	// ready returns the reason why no request may be decided yet: lost leases are being created again. With a reason,
	// requests are refused and /readyz fails.
	ready    func() error
	registry *prometheus.Registry
	// claimants answers the claims of Cluster API; nil if nobody does.
	claimants *clusterapi.Reconciler
	// services gives Services addresses; nil if nobody does.
	services *services.Reconciler
	// told reports whether the other replicas were asked about the versions of the store; nil if nobody asks.
	told func() bool
}

// newCore constructs the core and adds its components to the manager.
func newCore(
	ctx context.Context, mgr ctrl.Manager, cfg *rest.Config, restores *store.Restores, o Options, log *slog.Logger,
) (*core, error) {
	c := &core{index: index.New(), leads: leadership.NewTerms(log), registry: prometheus.NewRegistry()}
	var err error
	if c.leases, err = store.New(cfg, c.index, store.NewClock(o.Now)); err != nil {
		return nil, err
	}
	c.feed = store.NewFeed(c.leases)
	c.feed.OnRestore(func() { restores.Noticed(v1.IPResource) })
	budget, recorder := conditions.NewBudget(time.Now), mgr.GetEventRecorder(leadership.LeaseName)
	queue := pool.NewQueue(c.leads, c.index.Pools)
	c.nodes = node.New(c.index.Pools, queue.NodeChanged, c.leases.Now)
	c.pods = &workload.Pods{
		Cached: mgr.GetCache(), Live: mgr.GetAPIReader(), NodeAddrs: c.nodes.Hosts,
		Endings: workload.NewEndings(c.leases.Now),
	}
	synced := inputs{"BCSNetIPs": c.feed.Synced}
	checker := recovery.NewChecker(recovery.CheckerConfig{
		Cache: mgr.GetCache(), Index: c.index, Leases: c.leases, Pods: c.pods,
		Synced: func() error {
			return cmp.Or(synced.missing(), c.untold(), c.claimants.Unseen(), c.services.Unseen())
		},
		Objects: c.reported, Changed: queue.Now,
		Restarts: c.feed.Restarts, Log: log,
	})
	c.ready = checker.Ready
	c.breaker = gc.NewBreaker(mgr.GetAPIReader(), c.nodes.At, queue.Now, log)
	c.pools = pool.New(pool.Config{
		Client: mgr.GetClient(), Index: c.index, Leases: c.leases, Events: recorder, Terms: c.leads,
		Queue: queue, Breaker: c.breaker, Budget: budget, Ready: c.ready, Log: log,
	})
	claims, err := c.newClaims(ctx, mgr, cfg, o, recorder, budget, log)
	if err != nil {
		return nil, err
	}
	restorer := recovery.NewRestorer(c.index, c.leases, log, newRestoreReporter(c.pools, c.registry).report)
	if err := synced.watch(ctx, mgr.GetCache(), c.index, c.nodes, c.pods.Endings, c.pools); err != nil {
		return nil, err
	}
	c.registry.MustRegister(
		newPoolMetrics(c.index, c.leases.Now), newStoreMetrics(c.leases, c.feed, c.alloc.Adder), c.leads.Metric(),
	)
	return c, errors.Join(
		c.pools.Setup(mgr), claims.Setup(mgr),
		mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { c.feed.Run(ctx); return nil })),
		mgr.Add(manager.RunnableFunc(c.alloc.Repairer.Run)),
		mgr.Add(manager.RunnableFunc(c.owners.Run)),
		mgr.Add(manager.RunnableFunc(restorer.Run)),
		mgr.Add(manager.RunnableFunc(checker.Run)),
		mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { return reportReady(ctx, c.ready, log) })),
	)
}

// newClaims constructs the components that decide about pods by their claims: the owners and policies, the allocator
// with its constraints, and the reconciler of claims.
func (c *core) newClaims(
	ctx context.Context, mgr ctrl.Manager, cfg *rest.Config, o Options, recorder events.EventRecorder,
	budget *conditions.Budget, log *slog.Logger,
) (*claimcontroller.Reconciler, error) {
	var err error
	if c.owners, err = workload.NewOwners(cfg, mgr.GetHTTPClient(), time.Now, log); err != nil {
		return nil, err
	}
	claimsFor, err := claim.Index(ctx, mgr.GetCache())
	if err != nil {
		return nil, err
	}
	c.policies = &workload.Resolver{
		Owners: c.owners, Namespace: o.LeaderElectionNamespace, ClaimsFor: claimsFor, IPAMClaims: o.IPAMClaims,
		Index: c.index,
	}
	if !o.SharedPoolsForAll {
		c.policies.ServesShared = claim.ServesShared(mgr.GetCache(), o.LeaderElectionNamespace)
	}
	states := claimcontroller.NewStates(c.leads)
	c.states = states
	constraints := &claim.ConstraintsFinder{
		Policies: c.policies, Claims: mgr.GetCache(), Index: c.index, Asked: states.Asked, Missing: states.Missing,
	}
	c.constraints = constraints
	c.alloc = allocator.New(c.index, c.leases, c.pods, constraints, o.goneRule(), log)
	if o.GatewaySource == gatewayHost {
		c.alloc.Adder.PreferHostGateways(c.nodes.Gateway)
	}
	return claimcontroller.New(claimcontroller.Config{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Index: c.index, Leases: c.leases, Owners: c.owners,
		Policies: c.policies, Constraints: constraints, Stocker: c.alloc.Stocker, Namespace: o.LeaderElectionNamespace,
		IPAMClaims: o.IPAMClaims, ClaimsFor: claimsFor, SharedForAll: o.SharedPoolsForAll, Events: recorder,
		Terms: c.leads, States: states, Budget: budget, Ready: c.ready, Log: log,
	}), nil
}

// addWitnesses adds the component that asks the other replicas, at the start, about the versions of the store that they
// have seen. It must be called before the manager starts.
func (c *core) addWitnesses(mgr ctrl.Manager, peers *leadership.Peers, by *httpapi.Forwarder, log *slog.Logger) error {
	w := recovery.NewWitnesses(recovery.WitnessesConfig{
		Others: peers.Others, Ask: by.AskStore, Index: c.index, Leases: c.leases, Synced: c.feed.Synced, Log: log,
	})
	c.told = w.Told
	return mgr.Add(manager.RunnableFunc(w.Run))
}

// reported yields the addresses that objects say they have.
func (c *core) reported() iter.Seq[recovery.Object] {
	return func(yield func(recovery.Object) bool) {
		for _, all := range []iter.Seq[recovery.Object]{c.claimants.Objects(), c.services.Objects()} {
			for o := range all {
				if !yield(o) {
					return
				}
			}
		}
	}
}

// untold returns an error until the other replicas were asked about the versions of the store.
func (c *core) untold() error {
	if c.told == nil || c.told() {
		return nil
	}
	return errors.New("other replicas are being asked whether the API server's store was put back")
}

// inputs are the lists that must be received before a request can be decided, by the kinds of their objects.
type inputs map[string]func() (synced bool)

// missing returns an error that names the lists that were not received yet; nil if all were.
func (in inputs) missing() error {
	var missing []string
	for what, ok := range in {
		if !ok() {
			missing = append(missing, what)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	return fmt.Errorf("the list of %s has not come from the API server yet", strings.Join(missing, ", "))
}

// watch feeds pools, namespaces, nodes and pods to the index and related components, on every replica.
func (in inputs) watch(
	ctx context.Context, c cache.Cache, index *index.Index, nodes *node.Nodes, endings *workload.Endings,
	pools *pool.Reconciler,
) error {
	watch := func(what string, o client.Object, h toolscache.ResourceEventHandler) (err error) {
		in[what], err = informers.Watch(ctx, c, o, h)
		return err
	}
	return errors.Join(
		watch("BCSNetPools", &v1.BCSNetPool{}, informers.Handler(func(p *v1.BCSNetPool) {
			if known, ok := index.Pools.Get(p.Name); ok && store.Known(known, p) {
				return
			}
			pools.Changed(p.Name, func() { index.Pools.WatchedPool(store.Pool(p)) })
		}, func(p *v1.BCSNetPool) {
			pools.Changed(p.Name, func() { index.Pools.WatchedPoolEnd(p.Name, p.CreationTimestamp.Time) })
		})),
		watch("BCSNetIPClaims", &v1.BCSNetIPClaim{}, toolscache.ResourceEventHandlerFuncs{}), // cached reads only
		watch("Namespaces", &corev1.Namespace{}, informers.Handler(func(n *corev1.Namespace) {
			pools.Rebound(index.Pools.SetNamespace(n.Name, n.Labels))
		}, func(n *corev1.Namespace) {
			pools.Rebound(index.Pools.RemoveNamespace(n.Name))
		})),
		watch("Nodes", &corev1.Node{}, informers.Handler(nodes.Set, nodes.Remove)),
		watch("Pods", &corev1.Pod{}, endings),
	)
}
