package sim_test

import (
	"fmt"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// sandbox is a container of a pod that has addresses, or wants some.
type sandbox struct {
	id, pod, uid string
	host         int
	started      atomic.Pointer[time.Time] // when its ADD began
	ahead        time.Duration             // the clock of its host, when it began
	namespace    string
	byUID        bool   // its requests name the pod's UID
	machine      string // the virtual machine that it is of; empty for any other
	ifNames      []string
	addrs        []netip.Addr
	// over is set before anything is sent that ends it.
	over atomic.Bool
}

func (s *slot) newSandbox() *sandbox {
	b := &sandbox{
		id: fmt.Sprintf("%016x%016x%016x%016x", s.rng.Uint64(), s.rng.Uint64(), s.rng.Uint64(), s.steps), pod: s.name,
		uid: s.uid, host: s.host,
		ahead: s.clock(s.host), namespace: s.namespace, byUID: s.rng.IntN(4) > 0,
		machine: s.machine, ifNames: s.interfaces(),
	}
	b.begin()
	return b
}

// begin has its next ADD be a new call of the plugin.
func (b *sandbox) begin() {
	now := time.Now()
	b.started.Store(&now)
}

// add is the ADD of an interface, del the DEL.
func (b *sandbox) add(ifName string) wire.AllocateRequest {
	r := wire.AllocateRequest{
		Host: host(b.host), ContainerID: b.id, IfName: ifName, PodName: b.pod, PodNamespace: b.namespace,
		StartedAt: store.FormatTime(b.started.Load().Add(b.ahead)),
	}
	if b.byUID {
		r.PodUID = b.uid
	}
	return r
}

// del says when it began by the clock that the host has now.
func (b *sandbox) del(ifName string, ahead time.Duration) wire.ReleaseRequest {
	r := wire.ReleaseRequest{
		Host: host(b.host), ContainerID: b.id, IfName: ifName, PodName: b.pod, PodNamespace: b.namespace,
		StartedAt: store.FormatTime(time.Now().Add(ahead)),
	}
	if b.byUID {
		r.PodUID = b.uid
	}
	return r
}

// holds reports whether a lease is the sandbox's. A request without the pod's UID may be held under that of the
// pod's predecessor until the next one.
func (b *sandbox) holds(l lease.Lease) bool {
	return l.State == lease.Active && l.ContainerID == b.id && l.PodName == b.pod && (!b.byUID || l.PodUID == b.uid)
}
