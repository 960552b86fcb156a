package allocator

import (
	"net/netip"
	"sync"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// maxVanished bounds what is remembered of pods that are gone. Beyond it all wait anew.
const maxVanished = 4096

// vanished remembers since when pods of leases are known to be gone, where nothing else shows it.
type vanished struct {
	mu sync.Mutex
	by map[vanishedKey]sighting
}

// vanishedKey is a pod that had an address; while a virtual machine migrates there are two.
type vanishedKey struct {
	addr   netip.Addr
	podUID string
}

type sighting struct {
	version uint64
	at      time.Time
}

func newVanished() *vanished { return &vanished{by: map[vanishedKey]sighting{}} }

// since returns when somebody first asked for an address whose pod is gone; now for the first one.
func (v *vanished) since(l lease.Lease, now time.Time) time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	key := vanishedKey{l.Addr, l.PodUID}
	s, ok := v.by[key]
	if !ok || s.version != l.Bound() {
		if len(v.by) >= maxVanished {
			clear(v.by)
		}
		s = sighting{l.Bound(), now}
		v.by[key] = s
	}
	return s.at
}
