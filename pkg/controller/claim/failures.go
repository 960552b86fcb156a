package claim

import (
	"errors"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// failure is why something could not be done for a claim, such as taking its addresses.
type failure struct{ reason, message string }

// failures has the reason of the last failure, and the failure that the claim's status shows.
type failures struct {
	last  string
	shown *failure
}

// next returns the failures after another attempt. The status shows an error that lasts: one that came twice in a row.
// It keeps the message of the first time, which later ones would only vary: each other status would have the claim
// reconciled again at once.
func (f failures) next(err error) failures {
	if err == nil {
		return failures{}
	}
	now := failure{string(ipam.ReasonInternal), err.Error()}
	if refusal, ok := errors.AsType[*ipam.Refusal](err); ok {
		now = failure{string(refusal.Reason), refusal.Message}
	}
	if f.last == now.reason && (f.shown == nil || f.shown.reason != now.reason) {
		f.shown = &now
	}
	f.last = now.reason
	return f
}
