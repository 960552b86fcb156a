package httpapi

import (
	"net/http"
	"slices"
	"strings"
	"time"

	galaxyrest "github.com/bcsnet/bcsnet/pkg/compat/galaxy/rest"
	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/serving/scrape"
)

// route is one operation of the allocator.
type route struct {
	method, path, name string
	// query are the parameters that the operation knows.
	query []string
	// hasBody: the operation reads a JSON body.
	hasBody bool
	// forward: a follower has the leader answer.
	forward bool
	// access is who may ask.
	access permission
	// rows is how many rows a list may have at most; nil of what is no list.
	rows func(query string) int
	// handle returns the data and message of a success.
	handle func(s *Service, r *http.Request, body []byte) (data any, message string, err error)
	// frees reports whether a release frees an address by what this replica knows; nil for what is never refused so.
	frees func(s *Service, r *http.Request, body []byte) bool
}

// adds reports whether it takes addresses: many may ask at once.
func (op route) adds() bool { return op.method == http.MethodPost && op.path == wire.Prefix }

// collectNetwork is the operation whose body names all attachments of a host.
const collectNetwork = "collectNetwork"

func routes() []route {
	return []route{
		{
			http.MethodPost, wire.Prefix, "allocate", nil, true, true, permission{"create", allocations, byHost, ofSubject}, nil,
			(*Service).allocate, nil,
		},
		{
			http.MethodDelete, wire.Prefix, "release", nil, true, true,
			permission{"delete", allocations, byHost, ofSubject}, nil, (*Service).release, (*Service).releaseFrees,
		},
		{
			http.MethodDelete, wire.Prefix + "/host/{host}", "releaseHost", nil, false, true,
			permission{"create", hostReleases, byHost, everywhere}, nil, (*Service).releaseHost, nil,
		},
		{
			http.MethodDelete, wire.Prefix + "/ip/{address}", "releaseAddress", nil, true, true,
			permission{"delete", allocations, byLease, everywhere}, nil, (*Service).releaseAddress,
			(*Service).releaseAddressFrees,
		},
		{
			http.MethodPost, wire.Prefix + "/gc", collectNetwork, nil, true, true,
			permission{"create", collections, byHost, everywhere}, nil, (*Service).collectNetwork, nil,
		},
		{
			http.MethodPost, wire.Prefix + "/ip/{address}/conflict", "reportConflict", nil, true, true,
			permission{"create", conflicts, byLease, everywhere}, nil, (*Service).reportConflict, nil,
		},
		{
			http.MethodGet, wire.Prefix, "list", slices.Concat(filters(), paging()), false, false,
			permission{"list", allocations, byLease, ofSubject}, pageRows, (*Service).list, nil,
		},
		{
			http.MethodGet, wire.Prefix + "/container/{container}", "inspectContainer",
			slices.Concat([]string{"ifName"}, paging()),
			false, false, permission{"list", allocations, byLease, everywhere}, nil, (*Service).inspectContainer, nil,
		},
		{
			http.MethodGet, wire.Prefix + "/pod/{namespace}/{pod}", "inspectPod", paging(), false, false,
			permission{"list", allocations, byLease, ofSubject}, pageRows, (*Service).inspectPod, nil,
		},
		{
			http.MethodGet, wire.Prefix + "/host/{host}", "inspectHost", paging(), false, false,
			permission{"list", allocations, byHost, everywhere}, pageRows, (*Service).inspectHost, nil,
		},
		{
			http.MethodGet, wire.Prefix + "/pool/{pool}", "inspectPool", paging(), false, false,
			permission{"list", allocations, byLease, everywhere}, pageRows, (*Service).inspectPool, nil,
		},
		{
			http.MethodGet, wire.Prefix + "/ip/{address}", "inspectAddress", nil, false, false,
			permission{"get", allocations, byNobody, everywhere}, nil, (*Service).inspectAddress, nil,
		},
	}
}

// pages returns what is served beside the allocator, without the envelope; all by GET.
func (s *Service) pages() map[string]http.Handler {
	return map[string]http.Handler{
		"/healthz":      http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok") }),
		"/readyz":       http.HandlerFunc(s.readyz),
		"/version":      http.HandlerFunc(s.version),
		"/info":         http.HandlerFunc(s.info),
		"/metrics":      scrape.Page(s.Gatherer),
		"/openapi.json": openAPIHandler(),
		// Where galaxy has its description.
		galaxyrest.SwaggerList: swaggerHandler(func(list, _ any) any { return list }),
		galaxyrest.SwaggerV1:   swaggerHandler(func(_, v1 any) any { return v1 }),
	}
}

// Pages returns a handler of some of the pages that Handler serves beside the allocator: /healthz, /readyz,
// /version, /info, /metrics, /openapi.json, /apidocs.json.
func (s *Service) Pages(paths ...string) http.Handler {
	all, mux := s.pages(), http.NewServeMux()
	for _, path := range paths {
		mux.Handle(http.MethodGet+" "+path, all[path])
	}
	return mux
}

func (s *Service) readyz(w http.ResponseWriter, _ *http.Request) {
	if err := s.able(); err != nil {
		plain(w, http.StatusServiceUnavailable, "not ready: "+err.Error())
		return
	}
	plain(w, http.StatusOK, "ok")
}

// able returns why /readyz fails; nil when requests can be decided.
func (s *Service) able() error {
	if err := s.Ready(); err != nil || s.Trouble == nil {
		return err
	}
	return s.Trouble()
}

// Handler serves the allocator routes, those of galaxy, the scheduler extender, /healthz, /readyz, /version, /info,
// /metrics and the documents that describe them.
func (s *Service) Handler() http.Handler {
	s.troubles.Interval, s.openly.Interval, s.memory, s.lists = time.Second, time.Minute, newMemoryLimit(), newLists()
	s.rates = newRates()
	mux := http.NewServeMux()
	methods := map[string][]string{}
	handle := func(method, path string, h http.Handler) {
		mux.Handle(method+" "+path, h)
		if methods[path] = append(methods[path], method); method == http.MethodGet {
			methods[path] = append(methods[path], http.MethodHead) // the mux serves it along with GET
		}
	}
	for _, op := range routes() {
		var c codec = envelopeCodec{}
		if op.name == collectNetwork {
			c = attachmentsCodec{}
		}
		handle(op.method, op.path, s.operation(op, c))
	}
	for _, op := range galaxyRoutes() {
		handle(op.method, op.path, s.operation(op, galaxyCodec{}))
		if parent, ok := strings.CutSuffix(op.path, "{name}"); ok { // an empty name is refused as one
			handle(op.method, parent+"{$}", s.operation(op, galaxyCodec{}))
		}
	}
	for path, op := range extenderRoutes() {
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
	return s.answeredBy(requestID(s.door(s.screen(mux))))
}

// otherMethods answers for a path the methods that it does not have.
func (s *Service) otherMethods(allowed []string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		if r.Method == http.MethodOptions {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		s.refuse(w, r, noOperation, http.StatusMethodNotAllowed, ipam.Refuse(ipam.ReasonBadRequest,
			"method %s is not allowed here: use %s", clip(r.Method), strings.Join(allowed, " or ")), envelopeCodec{})
	})
}

func (s *Service) noSuchPath(w http.ResponseWriter, r *http.Request) {
	s.refuse(w, r, noOperation, http.StatusNotFound,
		ipam.Refuse(ipam.ReasonNotFound, "there is no %s", clip(r.URL.Path)).WithHint("see /openapi.json"), envelopeCodec{})
}
