package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/claim"
	galaxyrest "github.com/bcsnet/bcsnet/pkg/compat/galaxy/rest"
	claimcontroller "github.com/bcsnet/bcsnet/pkg/controller/claim"
	"github.com/bcsnet/bcsnet/pkg/controller/conditions"
	"github.com/bcsnet/bcsnet/pkg/controller/galaxyconfig"
	"github.com/bcsnet/bcsnet/pkg/controller/gc"
	"github.com/bcsnet/bcsnet/pkg/controller/leadership"
	"github.com/bcsnet/bcsnet/pkg/controller/node"
	"github.com/bcsnet/bcsnet/pkg/controller/pool"
	"github.com/bcsnet/bcsnet/pkg/httpapi"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/recovery"
	"github.com/bcsnet/bcsnet/pkg/scheduling"
	"github.com/bcsnet/bcsnet/pkg/store"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// Run runs the controller until the context ends, then finishes the requests under way. Several may run
// in one process.
func Run(ctx context.Context, o Options) error {
	cfg, err := restConfig(o.Kubeconfig)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", o.HTTPBindAddress)
	if err != nil {
		return fmt.Errorf("--http-bind-address: %w", err)
	}
	return Serve(ctx, cfg, listener, hurried(o))
}

// Serve is Run with a way to the API server and a listener that are the caller's own. It closes the listener.
func Serve(ctx context.Context, cfg *rest.Config, listener net.Listener, o Options) error {
	log, restores := o.Logger(), store.NewRestores()
	cfg = wrapped(cfg, restores, log)
	mgr, err := newManager(cfg, o, log)
	if err != nil {
		_ = listener.Close() // the first error counts
		return err
	}
	server, elect, err := assemble(ctx, mgr, cfg, restores, o, listener, log)
	if err != nil {
		_ = listener.Close() // the first error counts
		return err
	}
	log.Info("starting", "http", listener.Addr().String(), "api-server", cfg.Host)
	return startAndDrain(ctx, mgr, server, elect, log)
}

func restConfig(kubeconfig string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	return cfg, nil
}

// wrapped adds to a way to the API server what all clients of the controller do.
func wrapped(cfg *rest.Config, restores *store.Restores, log *slog.Logger) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.UserAgent = "bcsnet-controller"
	cfg.QPS = -1 // the API server's own fairness bounds us
	cfg.Wrap(restores.Wrap)
	cfg.Wrap(store.AwaitRoles(log))
	cfg.Wrap(store.JitterReads)
	return cfg
}

// newManager needs no API server: what it watches is known beforehand, so a controller that starts
// first simply waits. Everything that it runs runs on every replica; who leads is decided apart from it.
func newManager(cfg *rest.Config, o Options, log *slog.Logger) (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	resources, err := scheduling.ParseResources(o.NodeResources)
	if err != nil {
		return nil, err
	}
	noCopy := true
	return ctrl.NewManager(cfg, ctrl.Options{
		Scheme:                  scheme,
		Logger:                  logr.FromSlogHandler(log.Handler()),
		MapperProvider:          func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return mapper(), nil },
		Metrics:                 metricsserver.Options{BindAddress: "0"}, // ours shows more
		HealthProbeBindAddress:  "0",                                     // ours, too
		GracefulShutdownTimeout: new(5 * time.Second),
		Controller:              ctrlconfig.Controller{CacheSyncTimeout: 365 * 24 * time.Hour, SkipNameValidation: new(true)},
		NewCache: func(cfg *rest.Config, o cache.Options) (cache.Cache, error) {
			c, err := cache.New(cfg, o)
			return eagerCache{c}, err
		},
		Cache: cache.Options{ByObject: o.withConfigMap(map[client.Object]cache.ByObject{
			&corev1.Pod{}: {UnsafeDisableDeepCopy: &noCopy, Transform: func(o any) (any, error) {
				if p, ok := o.(*corev1.Pod); ok {
					t := workload.Trim(p)
					resources.Mark(t, p)
					return t, nil
				}
				return o, nil
			}},
			&corev1.Node{}: {UnsafeDisableDeepCopy: &noCopy, Transform: func(o any) (any, error) {
				if n, ok := o.(*corev1.Node); ok {
					return node.Trim(n, resources), nil
				}
				return o, nil
			}},
			&coordinationv1.Lease{}: {
				// It stands for Namespaces, whose informers leave goroutines behind when they end unfilled.
				Field: fields.OneTermEqualSelector("metadata.namespace", o.LeaderElectionNamespace),
				Label: labels.SelectorFromSet(leadership.LeaseLabels()),
			},
		})},
	})
}

// withConfigMap has the cache hold the ConfigMap of --floatingip-config, where one is wanted.
func (o Options) withConfigMap(kinds map[client.Object]cache.ByObject) map[client.Object]cache.ByObject {
	if from, err := namespacedName(o.FloatingIPConfig); err == nil {
		kinds[&corev1.ConfigMap{}] = galaxyconfig.Cached(from)
	}
	return kinds
}

// eagerCache lets the manager go on before the cache is filled. The manager would start nothing else until
// then, nor end when it is asked to: a controller without an API server would say nothing and hang.
// What needs a filled cache waits for ready.
type eagerCache struct{ cache.Cache }

// WaitForCacheSync does not wait.
func (eagerCache) WaitForCacheSync(context.Context) bool { return true }

// mapper knows the kinds that the controller uses.
func mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	m.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	m.Add(corev1.SchemeGroupVersion.WithKind("Node"), meta.RESTScopeRoot)
	m.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	m.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	m.Add(coordinationv1.SchemeGroupVersion.WithKind("Lease"), meta.RESTScopeNamespace)
	m.Add(v1.GroupVersion.WithKind("BCSNetPool"), meta.RESTScopeRoot)
	m.Add(v1.GroupVersion.WithKind("BCSNetIP"), meta.RESTScopeRoot)
	m.Add(v1.GroupVersion.WithKind("BCSNetIPClaim"), meta.RESTScopeNamespace)
	return m
}

// assemble connects the parts. It returns the allocator's server, and what has this replica lead at times until
// its context ends.
func assemble(
	ctx context.Context, mgr ctrl.Manager, cfg *rest.Config, restores *store.Restores, o Options, listener net.Listener, log *slog.Logger,
) (*http.Server, func(context.Context), error) {
	index := ipam.NewIndex()
	leases, err := store.New(cfg, index, store.NewClock(o.Now))
	if err != nil {
		return nil, nil, err
	}
	feed := store.NewFeed(leases)
	feed.OnRestore(func() { restores.Noticed(v1.IPResource) })
	leads := leadership.NewTerms(log)
	budget := conditions.NewBudget(time.Now)
	queue := pool.NewQueue(leads, index)
	nodes := node.New(index, queue.NodeChanged, leases.Now)
	pods := &workload.Pods{Cached: mgr.GetCache(), Live: mgr.GetAPIReader(), NodeAddrs: nodes.Of, Endings: workload.NewEndings(leases.Now)}
	synced := inputs{"BCSNetIPs": feed.Synced}
	checker := recovery.NewChecker(recovery.CheckerConfig{
		Cache: mgr.GetCache(), Index: index, Leases: leases, Pods: pods,
		Synced: synced.missing, Changed: queue.Now, Restarts: feed.Restarts, Log: log,
	})
	ready := checker.Ready
	breaker := gc.NewBreaker(mgr.GetAPIReader(), nodes.ReadyNode, queue.Now, log)
	pools := pool.New(pool.Config{
		Client: mgr.GetClient(), Index: index, Leases: leases, Events: mgr.GetEventRecorder(leadership.LeaseName), Terms: leads,
		Queue: queue, Breaker: breaker, Budget: budget, Ready: ready, Log: log,
	})
	owners, err := workload.NewOwners(cfg, mgr.GetHTTPClient(), time.Now, log)
	if err != nil {
		return nil, nil, err
	}
	claimsFor, err := claim.Index(ctx, mgr.GetCache())
	if err != nil {
		return nil, nil, err
	}
	policies := &workload.Resolver{Owners: owners, Namespace: o.LeaderElectionNamespace, ClaimsFor: claimsFor}
	states := claimcontroller.NewStates(leads)
	terms := &claim.Terms{Policies: policies, Claims: mgr.GetCache(), Index: index, Asked: states.Asked, Missing: states.Missing}
	alloc := allocator.New(index, leases, pods, terms, o.goneRule(), log)
	claims := claimcontroller.New(claimcontroller.Config{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Index: index, Leases: leases, Owners: owners, Policies: policies,
		Constraints: terms, Allocator: alloc, Namespace: o.LeaderElectionNamespace, Events: mgr.GetEventRecorder(leadership.LeaseName),
		Terms: leads, States: states, Budget: budget, Ready: ready, Log: log,
	})
	registry := prometheus.NewRegistry()
	restorer := recovery.NewRestorer(index, leases, log, newRestored(pools, registry).again)
	if err := synced.watch(ctx, mgr.GetCache(), index, nodes, pods.Endings, pools); err != nil {
		return nil, nil, err
	}
	here, err := leadership.Join(ctx, mgr, cfg, leadership.Config{
		Elect: o.LeaderElect, Namespace: o.LeaderElectionNamespace, URL: advertised(o, listener.Addr()), Timing: leadership.Timing{
			Lease: o.LeaseDuration, Renew: o.RenewDeadline, Retry: cmp.Or(o.RetryPeriod, electionDefaults().Retry),
		},
	}, leads, leases, feed, log)
	if err != nil {
		return nil, nil, err
	}
	registry.MustRegister(newPoolMetrics(index, leases.Now), newStoreMetrics(leases, feed, alloc), leads.Metric())
	requests := httpapi.NewMetrics(registry)
	leases.Observe(requests.Stage)
	tracing, err := addTracing(ctx, mgr, o)
	if err != nil {
		return nil, nil, err
	}
	podEvents := newPodEvents(mgr.GetCache(), mgr.GetEventRecorder(leadership.LeaseName))
	// What controller-runtime and client-go count is the same for all that run in this process.
	gatherer := prometheus.Gatherers{metrics.Registry, registry}
	collector := gc.New(gc.Config{
		Mode: o.GarbageCollection, Every: o.CollectEvery, Rule: o.goneRule(),
		Cached: mgr.GetCache(), Live: mgr.GetAPIReader(), Client: mgr.GetClient(), Namespace: o.LeaderElectionNamespace,
		Pods: pods, Index: index, Leases: leases, Nodes: nodes, Breaker: breaker,
		Event: pools.EventOfAddress, Ready: ready, Registry: registry, Log: log,
	})
	leads.OnTerm(collector.Start)
	if from, err := namespacedName(o.FloatingIPConfig); err == nil { // else none is wanted: Validate has read the name
		if err := galaxyconfig.Add(ctx, mgr, galaxyconfig.Config{
			From: from, Index: index, Now: leases.Now, Terms: leads, Ready: ready, Registry: registry, Log: log,
		}); err != nil {
			return nil, nil, err
		}
	}
	extender, err := addScheduling(ctx, mgr, o, index, pods, nodes, policies, leases.Now, leads, ready, registry, log)
	if err != nil {
		return nil, nil, err
	}
	leads.OnTerm(newDoctorRunner(mgr.GetCache(), index, nodes, leases, ready, registry, log).Start)
	forwarder := httpapi.NewForwarder(here.Peers, o.ForwardPlainHTTP, registry, log)
	service := &httpapi.Service{
		Index: index, Leases: leases, Allocator: alloc, Ready: ready, Trouble: here.Health.Err,
		Galaxy: &galaxyrest.Service{
			Index: index, Leases: leases, Cached: mgr.GetCache(), Live: mgr.GetAPIReader(), Claims: mgr.GetClient(),
			Owners: owners, Policies: policies, Namespace: o.LeaderElectionNamespace, Gone: collector.Judge,
			Preallocate: func(ctx context.Context, c *v1.BCSNetIPClaim) (allocator.Stock, error) {
				return claim.Preallocate(ctx, alloc, mgr.GetAPIReader(), c, claim.MaxPreallocated)
			},
		},
		Gateway: httpapi.GatewaySource(o.GatewaySource), NodeGateway: nodes.Gateway,
		Scheduling: extender, Peers: here.Peers, Forwarder: forwarder, Version: versions(o.Version, cfg),
		Metrics: requests, Gatherer: gatherer, Log: log, Tracing: tracing, Refused: podEvents.refused,
	}
	if err := errors.Join(pools.Setup(mgr), claims.Setup(mgr)); err != nil {
		return nil, nil, err
	}
	server := service.Server()
	return server, here.Elect, errors.Join(
		mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { feed.Run(ctx); return nil })),
		mgr.Add(manager.RunnableFunc(alloc.Run)),
		mgr.Add(manager.RunnableFunc(owners.Run)),
		mgr.Add(manager.RunnableFunc(restorer.Run)),
		mgr.Add(manager.RunnableFunc(checker.Run)),
		mgr.Add(manager.RunnableFunc(forwarder.Run)),
		mgr.Add(podEvents),
		mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { return reportReady(ctx, ready, log) })),
		mgr.Add(&manager.Server{
			Name: "allocator", Server: server, Listener: listener, ShutdownTimeout: new(time.Second), // it has drained
		}),
		addServer(mgr, "metrics", o.MetricsBindAddress, service.Pages("/metrics")),
		addServer(mgr, "health-probe", o.HealthProbeBindAddress, service.Pages("/healthz", "/readyz")),
	)
}

// reportReady says in the log what the controller waits for, until it is ready.
func reportReady(ctx context.Context, ready func() error, log *slog.Logger) error {
	began := time.Now()
	poll, say := time.NewTicker(20*time.Millisecond), time.NewTicker(2*time.Second)
	defer poll.Stop()
	defer say.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-poll.C:
			if ready() == nil {
				log.Info("ready", "after", time.Since(began).Round(time.Millisecond))
				<-ctx.Done()
				return nil
			}
		case <-say.C:
			say.Reset(10 * time.Second)
			log.Warn("not ready: is the API server up, are the CRDs installed, may the controller list them?", "reason", ready())
		}
	}
}
