package controller

import (
	"context"
	"errors"
	"net/http"
	"net/http/pprof"
	"strconv"
	"time"

	"github.com/bcsnet/bcsnet/pkg/access"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// maxProfile bounds the time of one CPU profile or trace.
const maxProfile = time.Minute

// withProfiles returns a handler that serves Go's profiles below /debug/pprof/ beside other pages. A caller must send a
// token for the allocator's audience, and RBAC must allow its user to get profiles in the group of the CRDs.
func withProfiles(pages http.Handler, gate *access.Gate) http.Handler {
	const prefix = "/debug/pprof/"
	mux := http.NewServeMux()
	mux.Handle("/", pages)
	for name, profile := range map[string]http.HandlerFunc{
		"": pprof.Index, "cmdline": pprof.Cmdline, "profile": pprof.Profile, "symbol": pprof.Symbol,
		"trace": pprof.Trace,
	} {
		mux.HandleFunc("GET "+prefix+name, func(w http.ResponseWriter, r *http.Request) {
			who, err := gate.Identify(r)
			if err == nil {
				err = gate.Allow(r.Context(), who, access.Question{Verb: "get", Resource: "profiles"})
			}
			if err != nil {
				status := http.StatusForbidden
				if refusal, ok := errors.AsType[*ipam.Refusal](err); ok &&
					refusal.Reason == ipam.ReasonUnauthenticated {
					status = http.StatusUnauthorized
				}
				http.Error(w, err.Error(), status)
				return
			}
			seconds, err := strconv.ParseFloat(r.FormValue("seconds"), 64)
			if err == nil && seconds > maxProfile.Seconds() {
				http.Error(w, "seconds is more than 60", http.StatusBadRequest)
				return
			}
			// The limits of the port are meant for a page. A profile may take longer, and pprof would refuse it because
			// of the server's limit.
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(2 * maxProfile))
			profile(w, r.WithContext(context.WithValue(r.Context(), http.ServerContextKey, nil)))
		})
	}
	return mux
}
