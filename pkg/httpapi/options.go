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

// Options configure a service. New checks them, and nothing changes them afterwards. Only fields that say so may be
// nil.
type Options struct {
	Index     *index.Index
	Leases    *store.Client
	Allocator *allocator.Allocator
	// Galaxy serves galaxy's routes.
	Galaxy *galaxyrest.Service
	// Scheduling serves the scheduler.
	Scheduling *scheduling.Extender
	// Ready returns the reason why requests cannot be decided yet; nil if they can. With a reason, requests are refused
	// and /readyz fails.
	Ready func() error
	// Trouble returns the reason why this replica, although it is ready, can decide nothing at present; nil if it can.
	// It only makes /readyz fail; requests are still tried. It may be nil.
	Trouble func() error
	// Refused is called for every pod that got no address. It must not block, and may be nil.
	Refused func(allocator.Request, *ipam.Refusal)
	// Contested is called for every address that a container was given and for which another machine answers, unless
	// the same was reported before. It may be nil.
	Contested func(context.Context, allocator.Contested)
	// IsReplica reports whether the caller of a TLS connection is a replica; nil if replicas do not use TLS.
	IsReplica func(*tls.ConnectionState) bool
	// Gate identifies callers over TLS; without one nobody is known. HostsOf returns the addresses for which a node may
	// ask; it may be nil without a Gate.
	Gate    Gate
	HostsOf func(node string) []netip.Addr
	// IsHost reports whether a host is the address of any Node. Schedulers over plain HTTP must call from such an
	// address; nil for none.
	IsHost func(netip.Addr) bool
	// PlainHTTP allows plain HTTP from other machines, each for itself. Openly is called with each of them; it must not
	// block, and may be nil.
	PlainHTTP bool
	Openly    func(netip.Addr)
	// Tracing creates the spans of requests; nil if nobody collects them.
	Tracing trace.TracerProvider
	// Shared returns a secret that the replicas share; nil for none.
	Shared func() []byte
	// Peers are the replicas; Forwarder forwards requests to the leader among them.
	Peers     Peers
	Forwarder *Forwarder
	// Version returns the answer to GET /version; it may ask the API server.
	Version func(context.Context) Versions
	Metrics *Metrics
	// Gatherer provides the content of /metrics.
	Gatherer prometheus.Gatherer
	Log      *slog.Logger
}

// validate returns an error that names the first missing option.
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
