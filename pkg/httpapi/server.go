package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// Prefix is the path that all allocator routes share.
const Prefix = "/netservicecontroller/v1/allocator"

const (
	maxBody      = 1 << 20
	maxHeader    = 64 << 10
	maxRequestID = 128
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
	// Ready says why requests cannot be decided yet; nil when they can.
	Ready func() error
	// Gateway says whether a host may replace the pool's gateway.
	Gateway GatewaySource
	// NodeGateway is the gateway that the node of a host names in its annotation; invalid for none.
	NodeGateway func(host netip.Addr) netip.Addr
	Metrics     *Metrics
	// Gatherer is what /metrics shows.
	Gatherer prometheus.Gatherer
	Log      *slog.Logger
}

// Handler serves the allocator routes, /healthz, /readyz, /metrics and the OpenAPI document.
func (s *Service) Handler() http.Handler {
	mux := http.NewServeMux()
	for _, r := range s.routes() {
		mux.Handle(r.method+" "+r.path, s.operation(r))
	}
	for path, methods := range methodsOf(s.routes()) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Allow", strings.Join(methods, ", "))
			write(w, r, http.StatusMethodNotAllowed, ipam.Refuse(ipam.ReasonBadRequest, "method %s is not allowed here: use %s", r.Method, strings.Join(methods, " or ")))
		})
	}
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := s.Ready(); err != nil {
			plain(w, http.StatusServiceUnavailable, "not ready: "+err.Error())
			return
		}
		plain(w, http.StatusOK, "ok")
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.Gatherer, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /openapi.json", serveOpenAPI)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		write(w, r, http.StatusNotFound, ipam.Refuse(ipam.ReasonNotFound, "there is no %s", r.URL.Path).WithHint("see /openapi.json"))
	})
	return requestID(s.recovered(mux))
}

// Server is an http.Server with the bounds that keep slow and large requests from doing harm.
func (s *Service) Server() *http.Server {
	return &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
		WriteTimeout:      allocator.MaxRequestTime + 15*time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug),
	}
}

// route is one operation of the service.
type route struct {
	method, path, name string
	// hasBody: the operation reads a JSON body.
	hasBody bool
	// handle returns the data and message of a success.
	handle func(s *Service, r *http.Request, body []byte) (data any, message string, err error)
}

func (s *Service) routes() []route {
	return []route{
		{http.MethodPost, Prefix, "allocate", true, (*Service).allocate},
		{http.MethodDelete, Prefix, "release", true, (*Service).release},
		{http.MethodDelete, Prefix + "/host/{host}", "releaseHost", false, (*Service).releaseHost},
		{http.MethodDelete, Prefix + "/ip/{address}", "releaseAddress", true, (*Service).releaseAddress},
		{http.MethodGet, Prefix, "list", false, (*Service).list},
		{http.MethodGet, Prefix + "/container/{container}", "inspectContainer", false, (*Service).inspectContainer},
		{http.MethodGet, Prefix + "/pod/{namespace}/{pod}", "inspectPod", false, (*Service).inspectPod},
		{http.MethodGet, Prefix + "/host/{host}", "inspectHost", false, (*Service).inspectHost},
		{http.MethodGet, Prefix + "/pool/{pool}", "inspectPool", false, (*Service).inspectPool},
		{http.MethodGet, Prefix + "/ip/{address}", "inspectAddress", false, (*Service).inspectAddress},
	}
}

func methodsOf(routes []route) map[string][]string {
	out := map[string][]string{}
	for _, r := range routes {
		out[r.path] = append(out[r.path], r.method)
	}
	for _, m := range out {
		slices.Sort(m)
	}
	return out
}

// operation wraps a route with what all have in common: readiness, the deadline, the body's bounds,
// the envelope and the metrics.
func (s *Service) operation(op route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		ctx, cancel := context.WithTimeout(r.Context(), allocator.MaxRequestTime)
		defer cancel()
		data, message, status, err := s.run(w, r.WithContext(ctx), op)
		if err == nil {
			respond(w, status, Envelope{Message: message, Result: true, Data: data, RequestID: idOf(r)})
			s.Metrics.observe(op.name, "", time.Since(began))
			return
		}
		refusal := asRefusal(err)
		if refusal.Reason == ipam.ReasonInternal {
			s.Log.Error("request failed", "operation", op.name, "error", err, "request_id", idOf(r))
		} else {
			s.Log.Debug("request refused", "operation", op.name, "reason", refusal.Reason, "message", refusal.Message, "request_id", idOf(r))
		}
		write(w, r, status, refusal)
		s.Metrics.observe(op.name, refusal.Reason, time.Since(began))
	})
}

func (s *Service) run(w http.ResponseWriter, r *http.Request, op route) (data any, message string, status int, err error) {
	var body []byte
	if op.hasBody {
		if body, status, err = readBody(w, r); err != nil {
			return nil, "", status, err
		}
	}
	if err := s.Ready(); err != nil {
		return nil, "", http.StatusServiceUnavailable, ipam.Refuse(ipam.ReasonUnavailable, "not ready: %v", err).WithHint("ask again")
	}
	data, message, err = op.handle(s, r, body)
	return data, message, statusOf(err), err
}

// statusOf maps an error to an HTTP status. Refusals have 200, because clients of the released
// allocator drop the body of anything else; 503 tells a client to ask another replica, or again.
func statusOf(err error) int {
	if err == nil {
		return http.StatusOK
	}
	switch asRefusal(err).Reason {
	case ipam.ReasonUnavailable, ipam.ReasonOutcomeUnknown:
		return http.StatusServiceUnavailable
	case ipam.ReasonInternal:
		return http.StatusInternalServerError
	default:
		return http.StatusOK
	}
}

func asRefusal(err error) *ipam.Refusal {
	var r *ipam.Refusal
	if errors.As(err, &r) {
		return r
	}
	return ipam.Refuse(ipam.ReasonInternal, "%v", err)
}

// write answers with a refusal.
func write(w http.ResponseWriter, r *http.Request, status int, refusal *ipam.Refusal) {
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	respond(w, status, Envelope{
		Code: codeOf(refusal.Reason), Message: refusal.Message, Reason: refusal.Reason, Hint: refusal.Hint, RequestID: idOf(r),
	})
}

func codeOf(reason ipam.Reason) int {
	for _, info := range ipam.ReasonTable() {
		if info.Reason == reason {
			return info.Code
		}
	}
	return 2
}

func respond(w http.ResponseWriter, status int, e Envelope) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(marshal(e), '\n')) // the client may have gone
}

func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n"))
}

type idKey struct{}

// requestID takes the caller's X-Request-Id, if it is short and printable, or makes one.
func requestID(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get("X-Request-Id")
		if id == "" || len(id) > maxRequestID || strings.ContainsFunc(id, func(c rune) bool { return c < ' ' || c > '~' }) {
			id = uuid.NewString()
		}
		w.Header().Set("X-Request-Id", id)
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), idKey{}, id)))
	})
}

func idOf(r *http.Request) string {
	id, _ := r.Context().Value(idKey{}).(string)
	return id
}

// recovered answers 500 where a handler panicked, and logs where.
func (s *Service) recovered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if p := recover(); p != nil {
				s.Log.Error("panic in a request", "panic", p, "path", r.URL.Path, "request_id", idOf(r), "stack", string(debug.Stack()))
				write(w, r, http.StatusInternalServerError, ipam.Refuse(ipam.ReasonInternal, "internal error; the log has more under request_id %s", idOf(r)))
			}
		}()
		next.ServeHTTP(w, r)
	})
}
