package httpapi

import (
	_ "embed"
	"net/http"
	"time"

	"sigs.k8s.io/yaml"

	galaxyrest "github.com/bcsnet/bcsnet/pkg/compat/galaxy/rest"
	"github.com/bcsnet/bcsnet/pkg/serving/scrape"
)

// pages returns the pages beside the allocator's routes, without the envelope; all by GET.
func (s *Service) pages() map[string]http.Handler {
	return map[string]http.Handler{
		"/healthz": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			plain(w, http.StatusOK, "ok")
		}),
		"/readyz":       http.HandlerFunc(s.readyz),
		"/version":      http.HandlerFunc(s.version),
		"/info":         http.HandlerFunc(s.info),
		"/metrics":      scrape.Page(s.options.Gatherer),
		"/openapi.json": openAPIHandler(),
		// The paths under which galaxy serves its API description.
		galaxyrest.SwaggerList: swaggerHandler(func(list, _ any) any { return list }),
		galaxyrest.SwaggerV1:   swaggerHandler(func(_, v1 any) any { return v1 }),
	}
}

// Pages returns a handler of some of the pages beside the allocator's routes: /healthz, /readyz, /version, /info,
// /metrics, /openapi.json, /apidocs.json.
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

// able returns the reason why /readyz fails; nil if requests can be decided.
func (s *Service) able() error {
	if err := s.options.Ready(); err != nil || s.options.Trouble == nil {
		return err
	}
	return s.options.Trouble()
}

func (s *Service) version(w http.ResponseWriter, r *http.Request) {
	page(w, s.options.Version(r.Context()))
}

func (s *Service) info(w http.ResponseWriter, _ *http.Request) {
	out := Info{
		Replica: ThisReplica{
			ReplicaInfo: infoOf(s.options.Peers.Self()), Leading: s.options.Peers.Leading(), Ready: s.able() == nil,
		},
		Replicas: []ReplicaInfo{},
	}
	if leader, ok := s.options.Peers.Leader(); ok {
		out.Leader = &LeaderInfo{ReplicaInfo: infoOf(leader.Identity)}
		if !leader.Since.IsZero() {
			out.Leader.Since = leader.Since.UTC().Format(time.RFC3339)
		}
	}
	for _, i := range s.options.Peers.Replicas() {
		out.Replicas = append(out.Replicas, infoOf(i))
	}
	_, why := s.options.Forwarder.target()
	out.Forwarding = Forwarding{Active: why == "", Reason: why}
	if version := s.options.Index.Feed.Seen(); version > 0 {
		out.Store = &StoreInfo{Version: version, Doubtful: s.options.Index.Feed.Returning() ||
			!s.options.Leases.Follows()}
		if at := s.options.Leases.Noticed(); !at.IsZero() {
			out.Store.PutBack = &at
		}
	}
	page(w, out)
}

// page writes an answer without the envelope.
func page(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(marshal(v), '\n')) // the client may be gone
}

// answeredBy adds the name of the replica to every answer. A forwarded answer keeps the name of the replica that gave
// it.
func (s *Service) answeredBy(next http.Handler) http.Handler {
	id := s.options.Peers.Self().ID()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(headerAnsweredBy, id)
		next.ServeHTTP(w, r)
	})
}

//go:embed openapi.yaml
var openAPIYAML []byte

func openAPI() []byte {
	out, err := yaml.YAMLToJSON(openAPIYAML)
	if err != nil {
		panic(err) // a test covers it
	}
	return out
}

func openAPIHandler() http.Handler {
	document := openAPI()
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(document) // the client may be gone
	})
}
