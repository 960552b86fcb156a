package faults_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"os"
	"sync/atomic"
	"time"

	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
	"github.com/bcsnet/bcsnet/test/judge"
)

// sandbox is a container of a pod that has an address, or wants one.
type sandbox struct {
	client             int // who writes its history
	id, namespace, pod string
	uid                string
	host               int
	// started is when its ADD began, in nanoseconds since 1970.
	started atomic.Int64
	// anew: each repeated ADD is a new call of the plugin. Of a lease that was created again from the report of its pod
	// it is not known which container has it, and a call that began before is refused.
	anew bool
	told bool // its requests say truly when they began; with FAULTS_UNTOLD those of one host say nothing
	// wrong is how far the clock of its host is ahead: its requests say what cannot be true.
	wrong   time.Duration
	network string // that its ADD names; empty for none
	ifName  string
	owner   string // in place of a pod; empty for a pod
	// by is which address of its host asks for it.
	by int
	// asked is the address by which it got its own.
	asked string
	byUID bool // its requests name the pod's UID
	addr  netip.Addr
	// until is when it has ended for certain, by the history, where its pod is no more; zero for any other.
	until time.Duration
	// over is set before anything is sent that ends it.
	over atomic.Bool
}

func (s *slot) newSandbox() *sandbox {
	b := s.container(s.rng.Uint64(), s.rng.Uint64(), namespace, s.name, s.uid, s.host)
	b.client, b.byUID = s.number, s.rng.IntN(4) > 0
	return b
}

// container is a new sandbox of a pod on a host; random numbers begin its ID.
func (r *round) container(a, b uint64, namespace, pod, uid string, host int) *sandbox {
	wrong := clockError(host)
	made := &sandbox{
		id: fmt.Sprintf("%016x%016x%032x", a, b, r.numbers.Add(1)), namespace: namespace, pod: pod, uid: uid, host: host,
		told: wrong == 0 && (host > 0 || os.Getenv("FAULTS_UNTOLD") == ""), wrong: wrong, byUID: true,
		ifName: "eth0", by: int(a % 3),
	}
	made.begin()
	return made
}

// begin has its ADD begin now.
func (b *sandbox) begin() { b.started.Store(time.Now().UnixNano()) }

// clockError is how far the clock of a host is ahead. One is eight hours behind, as one that takes local time for UTC.
func clockError(host int) time.Duration {
	switch host {
	case hosts - 1:
		return -8 * time.Hour
	case hosts - 2:
		return 2 * time.Hour
	}
	return 0
}

// who is its pod as leases name it.
func (b *sandbox) who() string { return b.namespace + "/" + b.pod }

// add is an ADD of a sandbox.
func (r *round) add(b *sandbox) wire.AllocateRequest {
	return wire.AllocateRequest{
		Host: r.caller(b), ContainerID: b.id, IfName: b.ifName, PodName: b.pod, PodNamespace: b.namespace,
		PodUID: b.named(), StartedAt: b.at(time.Unix(0, b.started.Load())), CNINetwork: cniNetwork,
		Network: b.network, Owner: b.owner,
	}
}

// del is a DEL of a sandbox.
func (r *round) del(b *sandbox) wire.ReleaseRequest {
	return wire.ReleaseRequest{
		Host: r.caller(b), ContainerID: b.id, IfName: b.ifName, PodName: b.pod, PodNamespace: b.namespace,
		PodUID: b.named(), StartedAt: b.at(time.Now()), Owner: b.owner,
	}
}

// named is the UID that its requests name.
func (b *sandbox) named() string {
	if b.byUID {
		return b.uid
	}
	return ""
}

// at is a time as its requests tell it, if they do.
func (b *sandbox) at(t time.Time) string {
	if !b.told && b.wrong == 0 {
		return ""
	}
	return store.FormatTime(t.Add(b.wrong))
}

// holds reports whether a lease is the sandbox's. A request without the pod's UID may be held under that of the
// pod's predecessor until the next one.
func (b *sandbox) holds(l lease.Lease) bool {
	return l.State == lease.Active && l.ContainerID == b.id && l.PodName == b.pod && (!b.byUID || l.PodUID == b.uid)
}

// note writes down that a sandbox took an address, or gave it up, between two times.
func (r *round) note(b *sandbox, a netip.Addr, take bool, from, to time.Duration) {
	pod := b.uid + b.owner
	if b.ifName != "eth0" { // no address moves from interface to interface
		pod += "/" + b.ifName
	}
	r.history.Add(b.client, judge.Change{Addr: a.String(), Pod: pod, Container: b.id, Take: take}, from, to)
}

// last is the last look at the address of a sandbox that is about to end: it was its own until now.
func (r *round) last(b *sandbox) {
	awaited := r.ledger.Awaits(b.addr) // what is read next may be from before the holder was restored
	live, err := r.site.read(r.ctx, b.addr)
	if err == nil {
		r.ledger.Seen(live) // it may have been the holder's for no longer than until its host had ended it
	}
	if err == nil && !b.holds(live) && r.ledger.Holds(b.addr, b.id) && !awaited {
		r.Wrong("live pod %s (container %.8s) lost %s: version %d is %s, container %.8s of %s; history %v",
			b.who(), b.id, b.addr, live.Version, live.State, live.ContainerID, live.Who(), live.History.Entries())
	}
	r.ledger.End(b.addr, b.id)
	b.over.Store(true)
}

// DEL releases a sandbox, which may be gone from the given time on.
func (r *round) DEL(b *sandbox, rng *rand.Rand, from time.Duration) {
	a, ok := r.callers.Ask(r.ctx, rng, http.MethodDelete, "", func() any { return r.del(b) }, never)
	to := r.history.Now()
	switch {
	case !ok:
		to = judge.Never
	case a.Code != 0:
		r.Wrong("DEL of container %.8s of %s is refused: %s: %s", b.id, b.who(), a.Reason, a.Message)
	default:
		r.Count("operation DEL")
	}
	if b.addr.IsValid() {
		r.note(b, b.addr, false, from, to)
	}
}
