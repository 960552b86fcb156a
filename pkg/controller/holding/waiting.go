package holding

import (
	"sync"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Waiting has the names of objects that wait for addresses to become free.
type Waiting struct {
	mu sync.Mutex
	// pools has the pool that each waits for; empty for any.
	pools map[string]string
}

// Set records whether an object waits.
func (w *Waiting) Set(name string, waits bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if delete(w.pools, name); waits {
		w.wait(name, "")
	}
}

// For records that an object waits for a pool.
func (w *Waiting) For(name, pool string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wait(name, pool)
}

// wait does what For does. The caller must hold the lock.
func (w *Waiting) wait(name, pool string) {
	if w.pools == nil {
		w.pools = map[string]string{}
	}
	w.pools[name] = pool
}

// Wake returns the objects that wait, because some addresses of a pool are free now; of any pool, if it is empty. Each
// is returned once, until it waits again.
func (w *Waiting) Wake(pool string) (all []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, waitsFor := range w.pools { // nearly always none
		if pool == "" || waitsFor == "" || waitsFor == pool {
			all = append(all, name)
			delete(w.pools, name)
		}
	}
	return all
}

// Frees reports whether a change of the index makes an address free.
func Frees(old, l lease.Lease) bool {
	return l.State == lease.Available && (old.State != lease.Available || old.Version == 0)
}
