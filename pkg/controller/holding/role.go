package holding

import (
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// deniedTime is the time for which reads must be refused until their role counts as missing: an API server that has
// just started refuses everything until it has read the roles.
const deniedTime = 30 * time.Second

// Role tells whether the role for reading a kind is missing. Nobody must wait for the list of that kind then.
type Role struct {
	// refused is the time of the first of the last refusals in a row, in nanoseconds; 0 for none.
	refused atomic.Int64
	missing atomic.Bool
}

// Missing reports whether reads were refused for deniedTime.
func (r *Role) Missing() bool { return r.missing.Load() }

// Tried records the outcome of a read, and reports whether the role counts as missing from now on.
func (r *Role) Tried(err error) (first bool) {
	if !apierrors.IsForbidden(err) {
		r.refused.Store(0)
		return false
	}
	now := time.Now()
	r.refused.CompareAndSwap(0, now.UnixNano())
	return now.Sub(time.Unix(0, r.refused.Load())) >= deniedTime && !r.missing.Swap(true)
}
