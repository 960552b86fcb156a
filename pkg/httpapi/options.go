package httpapi

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/netip"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"github.com/bcsnet/bcsnet/pkg/allocator"
	galaxyrest "github.com/bcsnet/bcsnet/pkg/compat/galaxy/rest"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/scheduling"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// Options are what a service is configured with. New checks them, and nothing changes them afterwards. What may be nil
// says so.
type Options struct {
	Index     *index.Index
	Leases    *store.Client
	Allocator *allocator.Allocator
	// Galaxy answers galaxy's routes.
	Galaxy *galaxyrest.Service
	// Scheduling answers the scheduler.
	Scheduling *scheduling.Extender
	// Ready returns why requests cannot be decided yet; nil when they can. It gates requests, and fails /readyz.
	Ready func() error
	// Trouble returns why this replica, although it is ready, can decide nothing at present; nil when it can. It fails
	// /readyz alone: requests are tried all the same. It may be nil.
	Trouble func() error
	// Refused is called for every pod that got no address; it must not wait. It may be nil.
	Refused func(allocator.Request, *ipam.Refusal)
	// Contested is called for every address that a container was given and that somebody else answers for, unless the
	// same was reported before. It may be nil.
	Contested func(context.Context, allocator.Contested)
	// IsReplica reports whether who calls by a TLS connection is a replica; nil where no replica calls by one.
	IsReplica func(*tls.ConnectionState) bool
	// Gate finds out who calls by TLS; without one nobody is known. HostsOf has the addresses that a node asks for; it
	// may be nil without a Gate.
	Gate    Gate
	HostsOf func(node string) []netip.Addr
	// IsHost reports whether any Node asks for a host. Schedulers by plain HTTP have to be at such a one; nil for none.
	IsHost func(netip.Addr) bool
	// PlainHTTP: other machines are answered by plain HTTP, too, each for itself. Openly is called with each that is;
	// it must not wait, and may be nil.
	PlainHTTP bool
	Openly    func(netip.Addr)
	// Tracing makes the spans of requests; nil when nobody collects them.
	Tracing trace.TracerProvider
	// Shared is a secret that the replicas share; nil for none.
	Shared func() []byte
	// Peers are the replicas; Forwarder has the leader among them answer.
	Peers     Peers
	Forwarder *Forwarder
	// Version is what GET /version answers; it may ask the API server.
	Version func(context.Context) Versions
	Metrics *Metrics
	// Gatherer is what /metrics shows.
	Gatherer prometheus.Gatherer
	Log      *slog.Logger
}

// validate returns the first thing that is missing.
func (o Options) validate() error {
	for _, of := range []struct {
		name  string
		given bool
	}{
		{"Index", o.Index != nil}, {"Leases", o.Leases != nil}, {"Allocator", o.Allocator != nil},
		{"Galaxy", o.Galaxy != nil}, {"Scheduling", o.Scheduling != nil}, {"Ready", o.Ready != nil},
		{"Peers", o.Peers != nil}, {"Forwarder", o.Forwarder != nil}, {"Version", o.Version != nil},
		{"Metrics", o.Metrics != nil}, {"Gatherer", o.Gatherer != nil}, {"Log", o.Log != nil},
	} {
		if !of.given {
			return fmt.Errorf("the HTTP service cannot do without the option %s", of.name)
		}
	}
	return nil
}
