package claim

import (
	"errors"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// failure is why something could not be done for a claim, such as to take its addresses although there may be some.
type failure struct{ reason, message string }

// failures are why it could not be done the last time, and what the claim's status says of that.
type failures struct {
	last  string
	shown *failure
}

// next returns the failures after another attempt. What the status says is the error that lasts: it came twice, one
// after the other. It stays in the words of the first time, which the others would only vary: each other status would
// have the claim looked at again at once.
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
