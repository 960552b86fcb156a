package controller

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/claim"
	galaxyrest "github.com/bcsnet/bcsnet/pkg/compat/galaxy/rest"
	"github.com/bcsnet/bcsnet/pkg/controller/galaxyconfig"
	"github.com/bcsnet/bcsnet/pkg/controller/gc"
	"github.com/bcsnet/bcsnet/pkg/controller/history"
	"github.com/bcsnet/bcsnet/pkg/controller/hostnicconfig"
	"github.com/bcsnet/bcsnet/pkg/controller/informers"
	"github.com/bcsnet/bcsnet/pkg/controller/leadership"
	"github.com/bcsnet/bcsnet/pkg/controller/pool"
	"github.com/bcsnet/bcsnet/pkg/httpapi"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/kubevirt"
	"github.com/bcsnet/bcsnet/pkg/serving"
	"github.com/bcsnet/bcsnet/pkg/serving/port"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// strangersOfSource bounds the connections of unknown callers from one address to the allocator's port, allStrangers
// those from all addresses.
const strangersOfSource, allStrangers = 1024, 8192

// assemble connects the components: the core, the leader's components, and the service. It returns the allocator's
// server, and the function that makes this replica stand for leader until its context ends.
func assemble(
	ctx context.Context, mgr ctrl.Manager, cfg *rest.Config, restores *store.Restores, o Options, listener net.Listener,
	log *slog.Logger,
) (*http.Server, func(context.Context), error) {
	c, err := newCore(ctx, mgr, cfg, restores, o, log)
	if err != nil {
		return nil, nil, err
	}
	here, err := leadership.Setup(ctx, mgr, cfg, leadership.Config{
		Elect: o.LeaderElect, Namespace: o.LeaderElectionNamespace, URL: advertised(o, listener.Addr()),
		Timing: leadership.Timing{
			Lease: o.LeaseDuration, Renew: o.RenewDeadline, Retry: cmp.Or(o.RetryPeriod, electionDefaults().Retry),
		},
	}, c.leads, c.leases, c.feed, log)
	if err != nil {
		return nil, nil, err
	}
	if err := admitMigrations(mgr, cfg, c, here.Peers); err != nil {
		return nil, nil, err
	}
	collector := addCollector(mgr, c, o, log)
	if err := addGalaxyConfig(ctx, mgr, c, o, log); err != nil {
		return nil, nil, err
	}
	if err := addHistory(ctx, mgr, c, here.Peers.Self().Life, o, log); err != nil {
		return nil, nil, err
	}
	extender, err := addScheduling(ctx, mgr, c, o, log)
	if err != nil {
		return nil, nil, err
	}
	reclaimer := pool.NewReclaimer(pool.ReclaimerConfig{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Blocks: c.index.Pools, Leases: c.leases,
		After: o.AbandonedFor, Mapping: o.HostnicIPAMConfig, Ready: c.ready, Log: log,
	})
	c.leads.OnTerm(reclaimer.Start)
	quarantines := &pool.Quarantines{
		Reports: c.index.Leases, Leases: c.leases, Event: c.pools.EventOfAddress, Ready: c.ready, Log: log,
	}
	c.leads.OnTerm(quarantines.Start)
	if err := addHostnicConfig(ctx, mgr, c, o, reclaimer, log); err != nil {
		return nil, nil, err
	}
	if err := addHolders(ctx, mgr, cfg, c, o, log); err != nil {
		return nil, nil, err
	}
	c.leads.OnTerm(newDoctorRunner(mgr.GetCache(), c, log).Start)
	tracing, err := addTracing(ctx, mgr, o)
	if err != nil {
		return nil, nil, err
	}
	requests := httpapi.NewMetrics(c.registry)
	c.leases.Observe(requests.Stage)
	podEvents := newPodEvents(mgr.GetCache(), mgr.GetAPIReader(), mgr.GetEventRecorder(leadership.LeaseName))
	c.constraints.Ignored = podEvents.ignored
	if o.IPAMClaims {
		podEvents.note = c.states.Refused
	}
	certificates, err := addCertificates(mgr, cfg, c, here.Peers.Self().ID(), o, log)
	if err != nil {
		return nil, nil, err
	}
	gate, err := addGate(mgr, cfg, c, log)
	if err != nil {
		return nil, nil, err
	}
	openly, err := addPlainCallers(mgr, cfg, c, o, log)
	if err != nil {
		return nil, nil, err
	}
	forwarder := httpapi.NewForwarder(here.Peers, certificates.ClientConfig(), c.registry, log)
	if o.DialReplica != nil {
		forwarder.DialBy(o.DialReplica)
	}
	if err := c.addWitnesses(mgr, here.Peers, forwarder, log); err != nil {
		return nil, nil, err
	}
	service, err := httpapi.New(httpapi.Options{
		Index: c.index, Leases: c.leases, Allocator: c.alloc, Ready: c.ready, Trouble: here.Health.Err,
		Galaxy: &galaxyrest.Service{
			Index: c.index, Leases: c.leases, Cached: mgr.GetCache(), Live: mgr.GetAPIReader(), Claims: mgr.GetClient(),
			Owners: c.owners, Policies: c.policies, Namespace: o.LeaderElectionNamespace, Gone: collector.Judge,
			Preallocate: func(ctx context.Context, shared *v1.BCSNetIPClaim) (allocator.Stock, error) {
				return claim.Preallocate(ctx, c.alloc.Stocker, mgr.GetAPIReader(), shared, o.LeaderElectionNamespace,
					claim.MaxPreallocated)
			},
		},
		Scheduling: extender, Peers: here.Peers, Forwarder: forwarder, Version: versions(o.Version, cfg),
		// The metrics of controller-runtime and client-go are shared by all controllers in this process.
		Metrics: requests, Gatherer: prometheus.Gatherers{metrics.Registry, c.registry},
		IsReplica: certificates.IsReplica, Shared: certificates.Shared, Gate: gate, HostsOf: c.nodes.Hosts,
		IsHost:    c.nodes.Known,
		PlainHTTP: o.PlainHTTP,
		Openly:    openly,
		Log:       log, Tracing: tracing, Refused: podEvents.refused, Contested: conflictEvents(c.pools),
	})
	if err != nil {
		return nil, nil, err
	}
	server, strangers := service.Server(), &port.Connections{
		OfSource: strangersOfSource, All: allStrangers, Log: log, CountLoopback: o.CountLoopback,
	}
	metricPages := service.Pages("/metrics")
	if o.Profiling {
		metricPages = withProfiles(metricPages, gate)
	}
	return server, here.Elect, errors.Join(
		mgr.Add(manager.RunnableFunc(forwarder.Run)),
		mgr.Add(podEvents),
		mgr.Add(&manager.Server{
			Name: "allocator", Server: server, Listener: serving.Listen(listener, certificates.ServerConfig(),
				strangers),
			ShutdownTimeout: new(time.Second), // the server has already drained
		}),
		addServer(mgr, "metrics", o.MetricsBindAddress, metricPages, log),
		addServer(mgr, "health-probe", o.HealthProbeBindAddress, service.Pages("/healthz", "/readyz"), log),
	)
}

// admitMigrations lets the allocator read KubeVirt's objects about pods to which virtual machines migrate. No address
// gets a second attachment while a replica exists that would free the address when the first attachment ends.
func admitMigrations(mgr ctrl.Manager, cfg *rest.Config, c *core, peers *leadership.Peers) error {
	const field = leadership.SecondAttachments
	migrations, err := kubevirt.NewMigrations(cfg, mgr.GetHTTPClient(), func() string {
		if who := peers.Unaware(field); who != "" {
			return who + " does not say that it knows the field " + field
		}
		return ""
	})
	if err == nil {
		c.alloc.Adder.AdmitMigrations(migrations)
	}
	return err
}

// conflictEvents returns a function that creates an event on the pool of an address for which another machine answers.
func conflictEvents(pools *pool.Reconciler) func(context.Context, allocator.Contested) {
	return func(ctx context.Context, c allocator.Contested) {
		l := c.Now.Conflict
		note := l.MAC + " answers for " + c.Was.Addr.String() + ", which " + c.Was.Where() + " was given: "
		switch l.Outcome {
		case lease.ConflictQuarantined:
			note += "nobody gets it until " + l.Until.Format(time.RFC3339)
		case lease.ConflictReleased:
			note += "it is free, because somebody seems to answer for every address (bcsnetctl doctor)"
		case lease.ConflictKept:
			note += "it stays with its holder"
		}
		pools.EventOfAddress(ctx, c.Was, corev1.EventTypeWarning, v1.ReasonAddressConflict, "Report", note)
	}
}

// addCollector adds the garbage collector, which runs on the leader.
func addCollector(mgr ctrl.Manager, c *core, o Options, log *slog.Logger) *gc.Collector {
	collector := gc.New(gc.Config{
		Mode: o.GarbageCollection, Every: o.CollectEvery, Rule: o.goneRule(),
		Cached: mgr.GetCache(), Live: mgr.GetAPIReader(), Client: mgr.GetClient(), Namespace: o.LeaderElectionNamespace,
		Pods: c.pods, Index: c.index, Leases: c.leases, Nodes: c.nodes, Breaker: c.breaker,
		Event: c.pools.EventOfAddress, Ready: c.ready, Registry: c.registry, Log: log,
	})
	c.leads.OnTerm(collector.Start)
	return collector
}

// addHistory adds the recorder of the history, unless the options disable it.
func addHistory(ctx context.Context, mgr ctrl.Manager, c *core, self string, o Options, log *slog.Logger) error {
	if o.HistoryRetention == 0 {
		return nil
	}
	recorder := history.New(history.Config{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Index: c.index, Synced: c.feed.Synced,
		Restarts: c.feed.Restarts, Ready: c.ready, Now: c.leases.Now, Retention: o.HistoryRetention,
		MaxParts: o.HistoryParts, Every: o.HistoryEvery, Replica: self, Registry: c.registry, Log: log,
	})
	if _, err := informers.Watch(ctx, mgr.GetCache(), &v1.BCSNetPool{}, recorder.Pools()); err != nil {
		return err
	}
	c.leads.OnTerm(recorder.Start)
	return mgr.Add(manager.RunnableFunc(recorder.Run))
}

// addGalaxyConfig adds the leader's reconciler of pools from a ConfigMap, if the options name one.
func addGalaxyConfig(ctx context.Context, mgr ctrl.Manager, c *core, o Options, log *slog.Logger) error {
	from, err := namespacedName(o.FloatingIPConfig)
	if err != nil {
		return nil //nolint:nilerr // none is wanted: Validate has read the name
	}
	return galaxyconfig.Add(ctx, mgr, galaxyconfig.Config{
		From: from, Index: c.index, Now: c.leases.Now, Terms: c.leads, Ready: c.ready, Registry: c.registry, Log: log,
	})
}

// addHostnicConfig adds the leader's reconciler of namespaces' blocks from a ConfigMap, if the options name one.
func addHostnicConfig(
	ctx context.Context, mgr ctrl.Manager, c *core, o Options, reclaimer *pool.Reclaimer, log *slog.Logger,
) error {
	from, err := namespacedName(o.HostnicIPAMConfig)
	if err != nil {
		return nil //nolint:nilerr // none is wanted: Validate has read the name
	}
	return hostnicconfig.Add(ctx, mgr, hostnicconfig.Config{
		From: from, Index: c.index, Stocker: c.alloc.Stocker, TakeBack: reclaimer.TakeBack, Now: c.leases.Now,
		Terms: c.leads, Ready: c.ready, Registry: c.registry, Log: log,
	})
}

// noAddress is the value of --advertise-address for a replica that others do not call.
const noAddress = "none"

// advertised returns the URL that other replicas call; empty for none. It is the option's; without one, it is the
// listen address, with the pod's IP if the service listens on all addresses of the machine. On its own machine, a
// replica is called over plain HTTP.
func advertised(o Options, listen net.Addr) string {
	switch o.AdvertiseAddress {
	case noAddress:
		return ""
	case "":
	default:
		return o.AdvertiseAddress
	}
	at, err := netip.ParseAddrPort(listen.String())
	if err != nil {
		return ""
	}
	host := at.Addr().Unmap()
	if host.IsUnspecified() {
		if host, err = netip.ParseAddr(o.PodIP); err != nil {
			return ""
		}
	}
	scheme := "https://"
	if host.IsLoopback() {
		scheme = "http://"
	}
	return scheme + netip.AddrPortFrom(host.WithZone(""), at.Port()).String()
}
