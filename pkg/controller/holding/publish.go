package holding

import (
	"log/slog"
	"sync"
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
