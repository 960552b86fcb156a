package sim_test

import (
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// written judges every version of every address in the moment in which it is stored.
func (f *fixture) written(resource string, body []byte, gone bool) {
	if resource != "bcsnetips" {
		return
	}
	l, err := leaseOf(body)
	if err != nil {
		f.verdict.Wrong("a BCSNetIP cannot be read: %v", err)
		return
	}
	if gone {
		l = lease.Lease{Addr: l.Addr, Version: l.Version}
	}
	f.verdict.Count("written version")
	f.note("version %d: %s is %s, container %.8s of %s (%s), which began at %s", l.Version, l.Addr, l.State, l.ContainerID,
		l.Who(), l.PodUID, store.FormatTime(l.StartedAt))
	f.ledger.Seen(l)
	f.mu.Lock()
	defer f.mu.Unlock()
	before, known := f.last[l.Addr]
	if gone {
		delete(f.last, l.Addr)
		return
	}
	f.last[l.Addr] = l
	// After a restore the lease of a container is written again, behind what the copy's holder did: that is no new one.
	had := l.Addr.String() + " " + l.ContainerID
	again := f.given[had]
	f.given[had] = again || l.State == lease.Active
	switch {
	case l.State == lease.Active && !l.HeldFinalizer:
		f.verdict.Wrong("%s is held by %s without a finalizer: who deletes its object takes it", l.Addr, l.Who())
	case !known || l.State != lease.Active || before.State != lease.Available || l.ContainerID == "":
	case before.Deleting:
		f.verdict.Wrong("%s was given to container %.8s of %s while its object was being deleted", l.Addr, l.ContainerID,
			l.Who())
	case l.Pool == coolPool && !again && anothers(before, l) && l.Updated.Sub(before.Updated) < cooldown:
		f.verdict.Wrong("%s was given to container %.8s of %s %s after it was released; it rests for %s",
			l.Addr, l.ContainerID, l.Who(), l.Updated.Sub(before.Updated), cooldown)
	}
}

// anothers reports whether an address that was released was another pod's: the same one need not wait.
func anothers(before, now lease.Lease) bool {
	all := before.History.Entries()
	return len(all) > 0 && all[0].Holder != "" && all[0].Holder != lease.PastHolder(now.Who())
}

// The addresses of a pool rest for a while.
const (
	coolPool = "beta"
	cooldown = 3 * time.Second
)
