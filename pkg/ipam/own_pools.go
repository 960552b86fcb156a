package ipam

import "time"

// What this process writes of pools, and what the watch delivers of them, come in any order: an answer may be overtaken
// by events of the same write and of later ones, up to the end of the pool. It may itself overtake events of an
// earlier pool of the name.

// makingPools are the pools that this process is making, by name.
type makingPools map[string]*making

// making is how many requests to make a pool are under way, and when the last one of the name was made that has ended
// meanwhile.
type making struct {
	n    int
	gone time.Time
}

// ended notes the end of a pool, for answers that come after it.
func (m makingPools) ended(p Pool) {
	if one := m[p.Name]; one != nil && one.gone.Before(p.Created) {
		one.gone = p.Created
	}
}

// MakePool says that this process is about to make a pool. add takes the pool that has the name then, unless the index
// has one of the name that is as new or newer, or had it and it has ended. done says that the attempt is over.
func (x *Pools) MakePool(name string) (add func(Pool), done func()) {
	x.core.mu.Lock()
	defer x.core.mu.Unlock()
	one := x.core.state.pools.making[name]
	if one == nil {
		one = &making{}
		x.core.state.pools.making[name] = one
	}
	one.n++
	return func(p Pool) { x.addPool(p, one) }, func() {
		x.core.mu.Lock()
		defer x.core.mu.Unlock()
		if one.n--; one.n == 0 {
			delete(x.core.state.pools.making, name)
		}
	}
}

func (x *Pools) addPool(p Pool, one *making) {
	x.core.mu.Lock()
	defer x.core.mu.Unlock()
	if known, ok := x.core.state.pools.byName[p.Name]; ok && !known.given.Created.Before(p.Created) ||
		!one.gone.Before(p.Created) {
		return
	}
	x.takePool(p)
}

// EndPool keeps a pool that this process deleted from handing out anything from now on. It changes nothing else of it:
// the watch may have delivered the deletion before, with a later generation, or even the end. created tells it from a
// later pool of the name.
func (x *Pools) EndPool(name string, created time.Time) {
	x.core.mu.Lock()
	defer x.core.mu.Unlock()
	known, ok := x.core.state.pools.byName[name]
	if !ok || known.given.Terminating || !known.given.Created.Equal(created) {
		return
	}
	p := known.given
	p.Terminating = true
	x.takePool(p)
}

// WatchedPool takes a pool that the watch delivered, unless this process made a later one of the name: that would be of
// its earlier owner again.
func (x *Pools) WatchedPool(p Pool) {
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
	known, ok := x.core.state.pools.byName[name]
	return ok && known.given.Created.After(created)
}
