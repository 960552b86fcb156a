package client

import (
	"errors"
	"fmt"
	"strings"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// Refusal is the allocator's answer that it refused the request.
type Refusal struct {
	ipam.Refusal
	// Retry reports whether the same request can succeed later although nobody changes anything.
	Retry bool
}

// newRefusal returns a Refusal. A reason that this release does not know comes from a newer allocator and may be
// temporary.
func newRefusal(reason ipam.Reason, message, hint string) *Refusal {
	r := &Refusal{ipam.Refusal{Reason: reason, Message: message, Hint: hint}, true}
	for _, info := range ipam.ReasonTable() {
		if info.Reason == reason {
			r.Retry = info.Retry
		}
	}
	return r
}

// Unanswered is the error of a call that no replica answered in time.
type Unanswered struct {
	// Why has the error of each replica's last try, with its URL.
	Why []error
}

// Error returns one line that names each replica.
func (u *Unanswered) Error() string {
	if len(u.Why) == 0 {
		return "the time was over before a replica could be asked"
	}
	texts := make([]string, 0, len(u.Why))
	for _, err := range u.Why {
		texts = append(texts, err.Error())
	}
	return strings.Join(texts, "; ")
}

// Unwrap returns the error of each replica.
func (u *Unanswered) Unwrap() []error { return u.Why }

// ErrForeign is the error of an answer that does not come from the allocator or does not match the request.
var ErrForeign = errors.New("this is not an answer of bcsnet's allocator")

// ErrToken is the error of a request whose token was rejected.
var ErrToken = errors.New("the token was rejected (401)")

func foreign(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrForeign, fmt.Sprintf(format, args...))
}
