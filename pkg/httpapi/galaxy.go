package httpapi

import (
	"encoding/json"
	"log/slog"
	"net/http"

	galaxyrest "github.com/bcsnet/bcsnet/pkg/compat/galaxy/rest"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// galaxyRoutes returns the routes of galaxy-ipam. The leader answers all: only it knows for how long pods have been
// gone, which determines releasable addresses in lists, and releases.
func (s *Service) galaxyRoutes() []route {
	return []route{
		{
			http.MethodGet, "/v1/ip", "listIPs", galaxyrest.Parameters(), false, true,
			permission{"list", allocations, byNobody, everywhere}, galaxyrest.Rows, s.listIPs, nil,
		},
		{
			http.MethodPost, "/v1/ip", galaxyRelease, nil, true, true,
			permission{"delete", allocations, byNobody, everywhere}, nil, s.releaseIPs, nil,
		},
		{
			http.MethodGet, "/v1/pool/{name}", "getSharedPool", nil, false, true,
			permission{"get", claims, byNobody, ofController}, nil, s.getSharedPool, nil,
		},
		{
			http.MethodDelete, "/v1/pool/{name}", "deleteSharedPool", nil, false, true,
			permission{"delete", claims, byNobody, ofController}, nil, s.deleteSharedPool, nil,
		},
		{
			http.MethodPost, "/v1/pool", "setSharedPool", nil, true, true,
			permission{"update", claims, byNobody, ofController}, nil, s.setSharedPool, nil,
		},
	}
}

// maxGalaxyBody has room for the largest page of addresses in the form of a list.
const maxGalaxyBody = 8 << 20

// maxGalaxyItems bounds the items of a list that are parsed. galaxyrest bounds the addresses in one release.
const maxGalaxyItems = 4 * galaxyrest.MaxSize

// galaxyCodec answers in galaxy's form: the HTTP status shows success or failure, and refusals repeat it in the body
// with a message. Unknown query parameters are ignored.
type galaxyCodec struct{}

func (galaxyCodec) maxBody() int64 { return maxGalaxyBody }

func (galaxyCodec) checkQuery(*http.Request, []string) error { return nil }

// status returns galaxy's status, except for a refusal because of too many requests: as when a replica is not ready,
// the client should retry.
func (galaxyCodec) status(why *ipam.Refusal) int {
	if why.Reason == ipam.ReasonOverloaded {
		return http.StatusServiceUnavailable
	}
	return galaxyrest.StatusOf(why)
}

func (galaxyCodec) done(w http.ResponseWriter, _ *http.Request, data any, _ string) {
	status := http.StatusOK
	if s, ok := data.(interface{ Status() int }); ok {
		status = s.Status()
	}
	respondIndented(w, status, data)
}

func (galaxyCodec) refuse(w http.ResponseWriter, _ *http.Request, status int, why *ipam.Refusal) {
	respondIndented(w, status, galaxyrest.Response{Code: status, Message: why.Message})
}

// respondIndented answers with galaxy's line breaks, which scripts rely on.
func respondIndented(w http.ResponseWriter, status int, v any) {
	body, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		panic(err) // plain structs of strings and numbers
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // the client may be gone
}

func (s *Service) listIPs(r *http.Request, _ []byte) (any, string, error) {
	out, err := s.options.Galaxy.ListIPs(r.Context(), r.URL.RawQuery)
	return out, "", err
}

func (s *Service) releaseIPs(r *http.Request, body []byte) (any, string, error) {
	if n := commas(body, 2); n > maxGalaxyItems {
		return nil, "", ipam.Refuse(ipam.ReasonBadRequest, "the lists of the request have %d items, more than %d", n+1,
			maxGalaxyItems)
	}
	var in galaxyrest.ReleaseIPRequest
	if err := s.bodies.decode(r, body, &in); err != nil {
		return nil, "", err
	}
	out, released, err := s.options.Galaxy.ReleaseIPs(r.Context(), in,
		lease.Change{Verb: lease.VerbRelease, By: forwardingOf(r).author()})
	s.logReleased(r, released)
	return out, "", err
}

func (s *Service) getSharedPool(r *http.Request, _ []byte) (any, string, error) {
	out, err := s.options.Galaxy.GetPool(r.Context(), r.PathValue("name"))
	return out, "", err
}

func (s *Service) deleteSharedPool(r *http.Request, _ []byte) (any, string, error) {
	out, err := s.options.Galaxy.DeletePool(r.Context(), r.PathValue("name"))
	if err == nil {
		s.logDone(r, "a shared pool was deleted; it keeps its addresses", slog.String("shared_pool",
			r.PathValue("name")))
	}
	return out, "", err
}

func (s *Service) setSharedPool(r *http.Request, body []byte) (any, string, error) {
	var in galaxyrest.SetPoolRequest
	if err := s.bodies.decode(r, body, &in); err != nil {
		return nil, "", err
	}
	out, short, err := s.options.Galaxy.SetPool(r.Context(), in)
	if err == nil {
		attrs := []slog.Attr{
			slog.String("shared_pool", in.Name), slog.Int("size", *in.Size), slog.Int("has", out.RealPoolSize),
		}
		if short != nil {
			attrs = append(attrs, slog.String("reason", string(short.Reason)), slog.String("why", short.Message))
		}
		s.logDone(r, "a shared pool was set", attrs...)
	}
	return out, "", err
}

// swaggerHandler serves one of galaxy's documents; it names the server as the client does.
func swaggerHandler(which func(list, v1 any) any) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme := "http://"
		if r.TLS != nil {
			scheme = "https://"
		}
		respondIndented(w, http.StatusOK, which(galaxyrest.SwaggerDocuments(scheme+r.Host)))
	})
}
