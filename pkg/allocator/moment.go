package allocator

import (
	"net/netip"
	"time"

	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
)

// maxAge bounds how long a request was under way before it arrived: kubelet gives up a sandbox after four minutes,
// twice its runtime-request-timeout, and with it the plugin. A clock by which a request is older is wrong.
const maxAge = 5 * time.Minute

// moment has when a request began.
type moment struct {
	// clock is the host by whose clock the start was told; invalid when the caller is on no host.
	clock netip.Addr
	// told is the start by the clock of the caller's host; zero when the request does not state it.
	told time.Time
	// arrived is by the API server's time.
	arrived time.Time
}

// counts returns the time from which a request counts beside those of other hosts, and beside those that a lease does
// not remember in full. The host's time counts where it can be true: the arrival is known to clockError only, and
// what is after it by no more may be true. A clock that is further ahead counts by its bound: whatever of two
// requests is later by their host's clock and by their arrivals counts as later. A clock that is more than maxAge
// behind is ignored, as if the request had no time of the host.
func (m moment) counts() time.Time {
	latest := m.arrived.Add(clockError)
	switch {
	case m.told.IsZero(), m.arrived.Sub(m.told) > maxAge && !failpoint.Broken("clock"):
		return m.arrived
	case m.told.After(latest):
		return latest
	}
	return m.told
}

// after reports whether a request began after another one. Of two requests of one host the host's clock decides,
// however wrong it is, unless it was set in between: then the times lag behind the arrivals by different amounts. The
// clock of one host says nothing about a request of another one: between these each counts by its bounds.
func (m moment) after(o moment) bool {
	if told := !m.told.IsZero() && !o.told.IsZero(); told && (m.clock == o.clock || failpoint.Broken("future")) &&
		(m.lag()-o.lag()).Abs() <= maxAge {
		return m.told.After(o.told)
	}
	return m.counts().After(o.counts())
}

func (m moment) lag() time.Duration { return m.arrived.Sub(m.told) }

// clockError bounds how far apart two processes may take the API server's time to be: it sends its time in whole
// seconds.
const clockError = 2 * time.Second
