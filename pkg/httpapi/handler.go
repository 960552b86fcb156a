package httpapi

import (
	"net/http"
	"slices"
	"strings"

	"github.com/bcsnet/bcsnet/pkg/serving/port"
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
