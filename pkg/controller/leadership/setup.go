package leadership

import (
	"context"
	"log/slog"
	"os"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/bcsnet/bcsnet/pkg/controller/informers"
	"github.com/bcsnet/bcsnet/pkg/replica"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// Config has the options of the election.
type Config struct {
	// Elect is false for a replica that always leads.
	Elect bool
	// Namespace is the namespace of the Leases.
	Namespace string
	Timing    Timing
	// URL is the URL at which other replicas call this one; empty if they do not.
	URL string
}

// Replica is this replica among the others.
type Replica struct {
	Peers  *Peers
	Health *Health
	// Elect makes this replica stand for leader until its context ends. Without an election, it always leads.
	Elect func(context.Context)
}

// Setup registers this replica with the others, and starts to watch them. The leader's components run in the terms.
func Setup(
	ctx context.Context, mgr ctrl.Manager, cfg *rest.Config, o Config, leads *Terms, leases *store.Client,
	feed *store.Feed,
	log *slog.Logger,
) (*Replica, error) {
	name, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	key, err := replica.NewKey()
	if err != nil {
		return nil, err
	}
	p := newPeers(replica.New(name, o.URL), key, leads)
	h := &Health{leases: leases, feed: feed, log: log, others: func() bool { return len(p.Replicas()) > 1 }}
	if err := mgr.Add(manager.RunnableFunc(h.Run)); err != nil {
		return nil, err
	}
	if !o.Elect {
		return &Replica{p, h, func(ctx context.Context) { leadAlways(ctx, leads, o) }}, nil
	}
	if p.synced, err = informers.Watch(ctx, mgr.GetCache(), &coordinationv1.Lease{},
		informers.Handler(p.set, p.remove)); err != nil {
		return nil, err
	}
	leads.OnTerm(h.resign)
	election, err := newElection(cfg, o, p, leads, h, log)
	if err != nil {
		return nil, err
	}
	here := &heartbeat{leases: election.client.Leases(o.Namespace), namespace: o.Namespace, peers: p, log: log}
	leads.OnTerm(here.sweep)
	return &Replica{p, h, election.run}, mgr.Add(manager.RunnableFunc(here.run))
}

// leadAlways leads for one term, and begins another one after a component has failed.
func leadAlways(ctx context.Context, leads *Terms, o Config) {
	Every(ctx, o.Timing.Retry, func() {
		term, resign := context.WithCancel(ctx)
		defer resign()
		leads.Lead(term, resign)
	})
}
