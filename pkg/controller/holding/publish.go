package holding

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/bcsnet/bcsnet/pkg/controller/conditions"
)

// retry is the time after which an object that cannot be written is tried again: somebody has to change a role or its
// kind first.
const retry = time.Minute

// Publisher decides what follows a write into an object of somebody else: an error in it does not stop our own work.
type Publisher struct {
	// What names the objects in messages, such as "IPAMClaims".
	What string
	Log  *slog.Logger

	mu sync.Mutex
	// warned is the time at which a problem was last logged.
	warned time.Time
}

// Wrote returns the time after which to try a write again, by its error; 0 if that is not needed.
func (p *Publisher) Wrote(name string, err error) (again time.Duration) {
	switch {
	case err == nil, apierrors.IsNotFound(err): // it was deleted meanwhile
		return 0
	case apierrors.IsConflict(err): // the watch delivers a newer version
		return conditions.WriteDelay
	}
	p.Log.Debug("an object is not up to date", "of", p.What, "object", name, "error", err)
	if p.mayWarn() {
		p.Log.Warn(p.What+" cannot be written; they are tried again every minute", "object", name, "error", err)
	}
	return retry
}

// mayWarn reports whether to log a problem: only one is logged per interval, however many objects there are.
func (p *Publisher) mayWarn() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.warned) < 10*retry {
		return false
	}
	p.warned = time.Now()
	return true
}

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
