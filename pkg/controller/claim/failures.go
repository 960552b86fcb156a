package claim

import (
	"errors"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// failure is the reason why an operation for a claim failed, such as taking its addresses.
type failure struct{ reason, message string }

// failures has the reason of the last failure, and the failure shown in the claim's status.
type failures struct {
	last  string
	shown *failure
}

// next returns the failures after another attempt. The status shows only an error that occurs twice in a row. It keeps
// the first message, because later ones would only vary it, and each changed status would cause another reconciliation
// at once.
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
