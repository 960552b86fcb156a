package index

import (
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/memory"
)

// MakePool says that this process is about to make a pool. add takes the pool that has the name then, unless the index
// has one of the name that is as new or newer, or had it and it has ended. done says that the attempt is over.
func (x *Pools) MakePool(name string) (add func(ipam.Pool), done func()) {
	x.core.mu.Lock()
	defer x.core.mu.Unlock()
	one := x.core.state.Pools.Making[name]
	if one == nil {
		one = &memory.Making{}
		x.core.state.Pools.Making[name] = one
	}
	one.N++
	return func(p ipam.Pool) { x.addPool(p, one) }, func() {
		x.core.mu.Lock()
		defer x.core.mu.Unlock()
		if one.N--; one.N == 0 {
			delete(x.core.state.Pools.Making, name)
		}
	}
}

func (x *Pools) addPool(p ipam.Pool, one *memory.Making) {
	x.core.mu.Lock()
	defer x.core.mu.Unlock()
	if known, ok := x.core.state.Pools.ByName[p.Name]; ok && !known.Given.Created.Before(p.Created) ||
		!one.Gone.Before(p.Created) {
		return
	}
	x.takePool(p)
}

// EndPool keeps a pool that this process deleted from allocating anything from now on. It changes nothing else of it:
// the watch may have delivered the deletion before, with a later generation, or even the end. created tells it from a
// later pool of the name.
func (x *Pools) EndPool(name string, created time.Time) {
	x.core.mu.Lock()
	defer x.core.mu.Unlock()
	known, ok := x.core.state.Pools.ByName[name]
	if !ok || known.Given.Terminating || !known.Given.Created.Equal(created) {
		return
	}
	p := known.Given
	p.Terminating = true
	x.takePool(p)
}

// WatchedPool takes a pool that the watch delivered, unless this process made a later one of the name: that would be of
// its earlier owner again.
func (x *Pools) WatchedPool(p ipam.Pool) {
	x.core.mu.Lock()
	defer x.core.mu.Unlock()
	if !x.isLater(p.Name, p.Created) {
		x.takePool(p)
	}
}

// WatchedPoolEnd forgets a pool that was made at a time, as the watch says, unless this process made a later one of the
// name.
func (x *Pools) WatchedPoolEnd(name string, created time.Time) {
	x.core.mu.Lock()
	defer x.core.mu.Unlock()
	if !x.isLater(name, created) {
		x.dropPool(name)
	}
}

// isLater reports whether there is a pool of a name that was made after a time. Times have whole seconds. The caller
// holds the lock from before this until its change, as an answer may come between.
func (x *Pools) isLater(name string, created time.Time) bool {
	known, ok := x.core.state.Pools.ByName[name]
	return ok && known.Given.Created.After(created)
}
