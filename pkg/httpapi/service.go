package httpapi

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/time/rate"

	"github.com/bcsnet/bcsnet/pkg/allocator"
	galaxyrest "github.com/bcsnet/bcsnet/pkg/compat/galaxy/rest"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/scheduling"
	"github.com/bcsnet/bcsnet/pkg/serving/port"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// GatewaySource says where the gateway of an answer comes from.
type GatewaySource string

// Values of GatewaySource.
const (
	// GatewayPool: always the pool's.
	GatewayPool GatewaySource = "pool"
	// GatewayHost: the request's hostGateway, else the annotation of the node, else the pool's.
	GatewayHost GatewaySource = "host"
)

// Service holds what the handlers need.
type Service struct {
	Index     *ipam.Index
	Leases    *store.Client
	Allocator *allocator.Allocator
	// Galaxy answers galaxy's routes.
	Galaxy *galaxyrest.Service
	// Ready returns why requests cannot be decided yet; nil when they can. It gates requests, and fails /readyz.
	Ready func() error
	// Trouble returns why this replica, although it is ready, can decide nothing at present; nil when it can. It fails
	// /readyz alone: requests are tried all the same.
	Trouble func() error
	// Gateway reports whether a host may replace the pool's gateway.
	Gateway GatewaySource
	// NodeGateway is the gateway that the node of a host names in its annotation; invalid for none.
	NodeGateway func(host netip.Addr) netip.Addr
	// Refused is called for every pod that got no address; it must not wait. It may be nil.
	Refused func(allocator.Request, *ipam.Refusal)
	// Contested is called for every address that a container was given and that somebody else answers for, unless the same
	// was reported before. It may be nil.
	Contested func(context.Context, allocator.Contested)
	// IsReplica reports whether who calls by a TLS connection is a replica; nil where no replica calls by one.
	IsReplica func(*tls.ConnectionState) bool
	// Gate finds out who calls by TLS, and HostsOf has the addresses that a node asks for.
	Gate    Gate
	HostsOf func(node string) []netip.Addr
	// IsHost reports whether any Node asks for a host. Schedulers by plain HTTP have to be at such a one; nil for none.
	IsHost func(netip.Addr) bool
	// PlainHTTP: other machines are answered by plain HTTP, too, each for itself. Openly is called with each that is; it
	// must not wait, and may be nil.
	PlainHTTP bool
	Openly    func(netip.Addr)
	// Tracing makes the spans of requests; nil when nobody collects them.
	Tracing trace.TracerProvider
	// Scheduling answers the scheduler.
	Scheduling *scheduling.Extender
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

	unknown   unknownFields
	troubles  rate.Sometimes
	openly    rate.Sometimes
	memory    memoryLimit
	lists     lists
	admission admission
	rates     *rates
}

// Bounds that keep slow and large requests from doing harm.
const (
	headerTime = 5 * time.Second
	readTime   = 15 * time.Second
	// writeTime covers the longest request and the last write of it, which is waited for.
	writeTime = allocator.MaxRequestTime + store.WriteTimeout + 5*time.Second
	idleTime  = 2 * time.Minute
	maxHeader = 64 << 10
	maxBody   = 64 << 10
)

// Server returns an http.Server with these bounds.
func (s *Service) Server() *http.Server {
	server := port.Server(s.Handler(), port.Times{Header: headerTime, Read: readTime, Write: writeTime, Idle: idleTime},
		maxHeader, s.Log)
	server.ConnContext = withConn
	return server
}
