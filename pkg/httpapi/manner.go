package httpapi

import (
	"net/http"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// manner is how the routes of one API are asked and answer.
type manner interface {
	maxBody() int64
	checkQuery(r *http.Request, known []string) error
	// status is the HTTP status of a refusal.
	status(why *ipam.Refusal) int
	done(w http.ResponseWriter, r *http.Request, data any, message string)
	refuse(w http.ResponseWriter, r *http.Request, status int, why *ipam.Refusal)
}

// envelopes is the manner of the allocator.
type envelopes struct{}

func (envelopes) maxBody() int64 { return maxBody }

func (envelopes) checkQuery(r *http.Request, known []string) error { return checkQuery(r, known) }

// status is 200, because clients of the released allocator drop the body of anything else; 503 tells a client to ask
// another replica, or again; after Overloaded, again.
func (envelopes) status(why *ipam.Refusal) int {
	switch why.Reason {
	case ipam.ReasonUnavailable, ipam.ReasonOverloaded, ipam.ReasonOutcomeUnknown:
		return http.StatusServiceUnavailable
	case ipam.ReasonInternal:
		return http.StatusInternalServerError
	default:
		return http.StatusOK
	}
}

func (envelopes) done(w http.ResponseWriter, r *http.Request, data any, message string) {
	respond(w, http.StatusOK, Envelope{Message: message, Result: true, Data: data, RequestID: idOf(r)})
}

func (envelopes) refuse(w http.ResponseWriter, r *http.Request, status int, why *ipam.Refusal) {
	respond(w, status, Envelope{
		Code: codeOf(why.Reason), Message: why.Message, Reason: why.Reason, Hint: why.Hint, RequestID: idOf(r),
	})
}
