package httpapi

import (
	"net/http"
	"sync"

	"github.com/bcsnet/bcsnet/pkg/access"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// mostOfSender bounds the memory of one caller's partly received bodies, in bytes. The largest body of galaxy fits,
// with the buffer before its last one. The memory that all callers share is many times larger.
const mostOfSender = 2 * maxGalaxyBody

// senders counts the memory of arriving bodies by sender, so that a caller that begins many and ends none does not use
// up the others' memory. Schedulers' questions do not count, and neither do requests without a sender: forwarded
// requests were counted at the first replica, and this machine is trusted.
type senders struct {
	mu sync.Mutex
	by map[string]int64
}

// take counts bytes for a caller, and reports whether there was room for them.
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

// giveBack stops counting bytes.
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

// senderOf returns the key by which the bodies of a caller are counted: the user and node, or the address.
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
