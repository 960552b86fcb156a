package controller

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"net/netip"
	"os"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/bcsnet/bcsnet/pkg/replica"
)

// noAddress is the value of --advertise-address for a replica that no other one shall call.
const noAddress = "none"

// joinReplicas makes this replica known to the others and them to it. elect has it lead at times until its context
// ends; without an election it always does.
func joinReplicas(ctx context.Context, mgr ctrl.Manager, cfg *rest.Config, o Options, listen net.Addr, leads *leaderTerms, h *health, log *slog.Logger) (p *peers, elect func(context.Context), err error) {
	name, err := os.Hostname()
	if err != nil {
		return nil, nil, err
	}
	key, err := replica.NewKey()
	if err != nil {
		return nil, nil, err
	}
	p = newPeers(replica.New(name, advertised(o, listen)), key, leads)
	h.others = func() bool { return len(p.Replicas()) > 1 }
	if !o.LeaderElect {
		return p, func(ctx context.Context) { leadAlways(ctx, leads, o) }, nil
	}
	if _, err := watchKind(ctx, mgr.GetCache(), &coordinationv1.Lease{}, handler(p.set, p.remove)); err != nil {
		return nil, nil, err
	}
	leads.onTerm(h.lead)
	election, err := newElection(cfg, o, p, leads, h, log)
	if err != nil {
		return nil, nil, err
	}
	here := &heartbeat{leases: election.client.Leases(o.LeaderElectionNamespace), namespace: o.LeaderElectionNamespace, peers: p, log: log}
	leads.onTerm(here.sweep)
	return p, election.run, mgr.Add(manager.RunnableFunc(here.run))
}

// leadAlways is one term, begun again when a part has failed.
func leadAlways(ctx context.Context, leads *leaderTerms, o Options) {
	every(ctx, cmp.Or(o.RetryPeriod, electionDefaults().retry), func() {
		term, resign := context.WithCancel(ctx)
		defer resign()
		leads.lead(term, resign)
	})
}

// advertised is the URL that other replicas call: what the option says, else the address that the service listens
// on, where that may be any of the machine with the pod's IP; empty for none.
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
	return "http://" + netip.AddrPortFrom(host.WithZone(""), at.Port()).String()
}
