package holding

import (
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Waiting has the names of objects that wait for addresses to become free.
type Waiting struct {
	mu    sync.Mutex
	names sets.Set[string]
}

// Set records whether an object waits.
func (w *Waiting) Set(name string, waits bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if delete(w.names, name); waits {
		if w.names == nil {
			w.names = sets.Set[string]{}
		}
		w.names.Insert(name)
	}
}

// Wake returns the objects that wait, because some addresses are free now. Each is returned once, until it waits again.
func (w *Waiting) Wake() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.names) == 0 { // nearly always
		return nil
	}
	all := w.names.UnsortedList()
	w.names = nil
	return all
}

// Frees reports whether a change of the index makes an address free.
func Frees(old, l lease.Lease) bool {
	return l.State == lease.Available && (old.State != lease.Available || old.Version == 0)
}
