package httpapi

import (
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/serving/port"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// Service has the routes of the allocator. Its parts handle a request before its route: callers identifies the sender
// and checks permissions, limits checks whether there is room, the Forwarder decides which replica answers.
type Service struct {
	options  Options
	refusals *refusals
	limits   *limits
	callers  *callers
	bodies   *bodies
	receipts *receipts
}

// New returns a service. The error names a missing or invalid option.
func New(o Options) (*Service, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	refusals := newRefusals(o.Log, o.Metrics, func() time.Duration {
		return max(o.Leases.Backlog(), o.Forwarder.backlog())
	})
	limits := newLimits(o.Leases.Room, o.Metrics, refusals)
	return &Service{
		options: o, refusals: refusals, limits: limits, callers: newCallers(o, limits.rates, refusals),
		bodies: &bodies{log: o.Log},
		receipts: &receipts{
			index: o.Index, leases: o.Leases, secret: o.Shared, refusals: refusals, log: o.Log,
			compared: cache.NewLRUExpireCache(maxCompared),
		},
	}, nil
}

// Bounds against slow and large requests.
const (
	headerTime = 5 * time.Second
	// writeTime covers the longest request and its last write.
	writeTime = allocator.MaxRequestTime + store.WriteTimeout + 5*time.Second
	maxHeader = 64 << 10
)

// Handler serves the routes of the allocator, of galaxy and of the scheduler extender, /healthz, /readyz, /version,
// /info, /metrics and the documents that describe them.
func (s *Service) Handler() http.Handler {
	mux := http.NewServeMux()
	methods := map[string][]string{}
	handle := func(method, path string, h http.Handler) {
		mux.Handle(method+" "+path, h)
		if methods[path] = append(methods[path], method); method == http.MethodGet {
			methods[path] = append(methods[path], http.MethodHead) // the mux serves it along with GET
		}
	}
	for _, op := range s.routes() {
		var c codec = envelopeCodec{}
		if op.name == collectNetwork {
			c = attachmentsCodec{}
		}
		handle(op.method, op.path, s.operation(op, c))
	}
	for _, op := range s.galaxyRoutes() {
		handle(op.method, op.path, s.operation(op, galaxyCodec{}))
		if parent, ok := strings.CutSuffix(op.path, "{name}"); ok { // an empty name is refused as invalid
			handle(op.method, parent+"{$}", s.operation(op, galaxyCodec{}))
		}
	}
	for path, op := range s.extenderRoutes() {
		handle(http.MethodPost, path, s.extender(op))
	}
	for path, page := range s.pages() {
		handle(http.MethodGet, path, page)
	}
	for path, allowed := range methods {
		slices.Sort(allowed)
		mux.Handle(path, s.otherMethods(allowed))
	}
	mux.HandleFunc("/", s.noSuchPath)
	return through(mux, s.answeredBy, requestID, s.callers.door, s.screen)
}

// Server returns an http.Server of the handler, with bounds against slow and large requests.
func (s *Service) Server() *http.Server {
	server := port.Server(s.Handler(), port.Times{Header: headerTime, Read: readTime, Write: writeTime, Idle: idleTime},
		maxHeader, s.options.Log)
	server.ConnContext = withConn
	return server
}

// screen refuses requests that no well-meaning client sends, before the mux sees them. The mux answers a path with a
// double slash or dots by a redirect, which has no envelope, and which some clients follow to another address than they
// named. A web page of another site can send requests without asking, because a body without a Content-Type counts as
// JSON and the browser's network may reach this port.
func (s *Service) screen(next http.Handler) http.Handler {
	browsers := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !isClean(r.URL.EscapedPath()):
			s.noSuchPath(w, r)
		case browsers.Check(asWrite(r)) != nil:
			s.refusals.refuse(w, r, noOperation, http.StatusForbidden,
				ipam.Refuse(ipam.ReasonBadRequest, "a web page of another site sent the request").
					WithHint("send it from a program, without the headers Origin and Sec-Fetch-Site"), envelopeCodec{})
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// isClean reports whether the mux uses a path unchanged.
func isClean(p string) bool {
	clean := path.Clean(p)
	if strings.HasSuffix(p, "/") && clean != "/" {
		clean += "/"
	}
	return strings.HasPrefix(p, "/") && p == clean
}

// asWrite returns a request that http.CrossOriginProtection treats as a write. It would let reads pass, but a list of
// all addresses costs the replica work even if the page cannot see it.
func asWrite(r *http.Request) *http.Request {
	return &http.Request{Method: http.MethodPost, Host: r.Host, URL: r.URL, Header: r.Header}
}

// otherMethods answers requests with a method that a path does not have.
func (s *Service) otherMethods(allowed []string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		if r.Method == http.MethodOptions {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		s.refusals.refuse(w, r, noOperation, http.StatusMethodNotAllowed, ipam.Refuse(ipam.ReasonBadRequest,
			"method %s is not allowed here: use %s", clip(r.Method), strings.Join(allowed, " or ")), envelopeCodec{})
	})
}

func (s *Service) noSuchPath(w http.ResponseWriter, r *http.Request) {
	s.refusals.refuse(w, r, noOperation, http.StatusNotFound,
		ipam.Refuse(ipam.ReasonNotFound, "there is no %s", clip(r.URL.Path)).WithHint("see /openapi.json"),
		envelopeCodec{})
}
