package allocator

import (
	"errors"
	"fmt"
	"net/netip"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/store"
)

func unavailable(err error) *ipam.Refusal {
	return ipam.Refuse(ipam.ReasonUnavailable, "the request ran out of time: %v", err).WithHint("ask again")
}

func unknown(addr netip.Addr, err error) *ipam.Refusal {
	return ipam.Refuse(ipam.ReasonOutcomeUnknown, "the API server did not say whether it stored address %s: %v", addr,
		err).
		WithHint("ask again: the same request settles it")
}

// swapFailed sorts the errors of a compare-and-swap: errStale after a conflict, else a refusal, or an error that is not
// a fault of the request.
func swapFailed(addr netip.Addr, err error) error {
	var read *store.ReadError
	var expired *store.ExpiredError
	switch {
	case errors.As(err, &read):
		return readFailed(read.Err)
	case errors.As(err, &expired):
		return unavailable(expired.Err)
	case errors.Is(err, store.ErrContended):
		return ipam.Refuse(ipam.ReasonUnavailable, "other writers of address %s were faster %d times in a row", addr,
			store.MaxConflicts).
			WithHint("ask again")
	case errors.Is(err, store.ErrConflict):
		return errStale
	case errors.Is(err, store.ErrUnknown):
		return unknown(addr, err)
	default:
		return writeFailed(err)
	}
}

func readFailed(err error) *ipam.Refusal {
	if apierrors.IsForbidden(err) {
		return forbidden(err)
	}
	return ipam.Refuse(ipam.ReasonUnavailable, "reading from the API server: %v", err).WithHint("ask again")
}

func writeFailed(err error) error {
	var refusal *ipam.Refusal
	switch {
	case errors.As(err, &refusal):
		return refusal
	case errors.Is(err, store.ErrOverloaded):
		return ipam.Refuse(ipam.ReasonOverloaded, "nothing was changed: %v", err).
			WithHint("ask again, not before the time that Retry-After tells")
	case errors.Is(err, store.ErrUnavailable), apierrors.IsUnauthorized(err):
		return ipam.Refuse(ipam.ReasonUnavailable, "writing to the API server: %v", err).WithHint("ask again")
	case apierrors.IsForbidden(err):
		return forbidden(err)
	default:
		return fmt.Errorf("writing to the API server: %w", err)
	}
}

// forbidden returns why the API server answered 403. It does so, too, while the objects are being deleted together with
// their kind: no role is missing then.
func forbidden(err error) *ipam.Refusal {
	if store.IsTerminating(err) {
		return ipam.Refuse(ipam.ReasonUnavailable, "%v", err).WithHint("%s", store.HintTerminating)
	}
	return ipam.Refuse(ipam.ReasonForbidden, "%v", err).WithHint("check the controller's ClusterRole")
}
