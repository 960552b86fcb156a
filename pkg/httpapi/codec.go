package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// codec parses the requests of one API and writes its answers.
type codec interface {
	maxBody() int64
	checkQuery(r *http.Request, known []string) error
	// status returns the HTTP status of a refusal.
	status(why *ipam.Refusal) int
	done(w http.ResponseWriter, r *http.Request, data any, message string)
	refuse(w http.ResponseWriter, r *http.Request, status int, why *ipam.Refusal)
}

// envelopeCodec is the codec of the allocator's API.
type envelopeCodec struct{}

func (envelopeCodec) maxBody() int64 { return maxBody }

func (envelopeCodec) checkQuery(r *http.Request, known []string) error { return checkQuery(r, known) }

// status returns 200 for most refusals, because clients of the released allocator drop the body of any other status.
// 503 makes a client ask another replica, or the same one again; after Overloaded, the same one.
// 429 makes it wait.
func (envelopeCodec) status(why *ipam.Refusal) int {
	switch why.Reason {
	case ipam.ReasonUnavailable, ipam.ReasonOverloaded, ipam.ReasonOutcomeUnknown:
		return http.StatusServiceUnavailable
	case ipam.ReasonInternal:
		return http.StatusInternalServerError
	case ipam.ReasonTooManyRequests:
		return http.StatusTooManyRequests
	case ipam.ReasonUnauthenticated:
		return http.StatusUnauthorized
	case ipam.ReasonPlainHTTP, ipam.ReasonNotPermitted:
		return http.StatusForbidden
	default:
		return http.StatusOK
	}
}

func (envelopeCodec) done(w http.ResponseWriter, r *http.Request, data any, message string) {
	respond(w, http.StatusOK, wire.Envelope{Message: message, Result: true, Data: data, RequestID: idOf(r)})
}

func (envelopeCodec) refuse(w http.ResponseWriter, r *http.Request, status int, why *ipam.Refusal) {
	respond(w, status, wire.Envelope{
		Code: codeOf(why.Reason), Message: why.Message, Reason: why.Reason, Hint: why.Hint, RequestID: idOf(r),
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

func respond(w http.ResponseWriter, status int, e wire.Envelope) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(marshal(e), '\n')) // the client may be gone
}

func marshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // plain structs of strings and numbers
	}
	return b
}

func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n"))
}

const maxRequestID = 128

type idKey struct{}

// requestID uses the caller's X-Request-Id, if it is short and printable, or creates one.
func requestID(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get("X-Request-Id")
		if id == "" || len(id) > maxRequestID || strings.ContainsFunc(id, func(c rune) bool {
			return c < ' ' || c > '~'
		}) {
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
