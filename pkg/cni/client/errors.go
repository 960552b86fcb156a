package client

import (
	"errors"
	"fmt"
	"strings"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// Refusal is the allocator's answer that it was not done.
type Refusal struct {
	ipam.Refusal
	// Retry: the same request can succeed later without anybody changing anything.
	Retry bool
}

// newRefusal makes a Refusal. A reason that this release does not know is one of a newer allocator; it may pass.
func newRefusal(reason ipam.Reason, message, hint string) *Refusal {
	r := &Refusal{ipam.Refusal{Reason: reason, Message: message, Hint: hint}, true}
	for _, info := range ipam.ReasonTable() {
		if info.Reason == reason {
			r.Retry = info.Retry
		}
	}
	return r
}

// Unanswered is that no replica answered in time.
type Unanswered struct {
	// Why has what became of each replica's last try, with its URL.
	Why []error
}

// Error returns one line that names each replica.
func (u *Unanswered) Error() string {
	if len(u.Why) == 0 {
		return "no replica was asked, as the time was over"
	}
	texts := make([]string, 0, len(u.Why))
	for _, err := range u.Why {
		texts = append(texts, err.Error())
	}
	return strings.Join(texts, "; ")
}

// Unwrap returns what became of each replica.
func (u *Unanswered) Unwrap() []error { return u.Why }

// ErrForeign is the error of an answer that is not one of the allocator to this question.
var ErrForeign = errors.New("this is no answer of bcsnet's allocator")

// ErrToken is the error of a request whose token was not taken.
var ErrToken = errors.New("the token was not taken (401)")

func foreign(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrForeign, fmt.Sprintf(format, args...))
}
