package rest

import (
	"net/http"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// StatusOf returns the HTTP status of a refusal. Everything that is not the fault of the request is a server error,
// because galaxy has no other status for it.
func StatusOf(why *ipam.Refusal) int {
	switch why.Reason {
	case ipam.ReasonBadRequest, ipam.ReasonMissingField, ipam.ReasonBadAddress, ipam.ReasonAddressInUse:
		return http.StatusBadRequest
	case ipam.ReasonUnauthenticated:
		return http.StatusUnauthorized
	case ipam.ReasonPlainHTTP, ipam.ReasonNotPermitted:
		return http.StatusForbidden
	case ipam.ReasonTooManyRequests:
		return http.StatusTooManyRequests
	case ipam.ReasonNotFound:
		return http.StatusNotFound
	default:
		return http.StatusInternalServerError
	}
}
