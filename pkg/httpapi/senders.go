package httpapi

import (
	"net/http"
	"sync"

	"github.com/bcsnet/bcsnet/pkg/access"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// mostOfSender bounds the memory of the bodies of one caller that have come in part, in bytes. The largest one of
// galaxy's fits in, with the buffer before its last one. What all callers share is many times that.
const mostOfSender = 2 * maxGalaxyBody

// senders count the memory of bodies that arrive by who sends them: a caller who begins many and ends none takes nobody
// else's room. Questions of schedulers do not count, and neither does what has no sender: what replicas forward was
// counted where it came, and this machine is trusted.
type senders struct {
	mu sync.Mutex
	by map[string]int64
}

// take counts bytes of a caller, and reports whether there was room for them.
func (s *senders) take(who string, bytes int64) bool {
	if who == "" {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by[who]+bytes > mostOfSender {
		return false
	}
	if s.by == nil {
		s.by = map[string]int64{}
	}
	s.by[who] += bytes
	return true
}

// giveBack counts bytes no longer.
func (s *senders) giveBack(who string, bytes int64) {
	if who == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by[who] -= bytes; s.by[who] <= 0 {
		delete(s.by, who)
	}
}

// senderOf returns by what the bodies of a caller are counted: by who he is, and on which node, or by his address.
func senderOf(r *http.Request) string {
	if forwardingOf(r).from != "" || r.TLS == nil && isLocal(r) {
		return ""
	}
	if c := connectionOf(r); c != nil && r.TLS != nil {
		if who := c.identity.Load(); who != nil {
			node, _ := access.NodeOf(who.user)
			return "user " + who.user.Username + " " + node
		}
	}
	source, _ := sourceOf(r)
	return "address " + source.String()
}

func tooManyOfSender() *ipam.Refusal {
	return ipam.Refuse(ipam.ReasonUnavailable, "bodies of this caller that have not ended yet take %d bytes, and more "+
		"are not kept", mostOfSender).WithHint("ask again when they have ended")
}
