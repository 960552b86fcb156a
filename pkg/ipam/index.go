package ipam

import "sync"

// Index is the memory of the allocator: every address that has an object, every pool, and which addresses are free. It
// is fed from the watch of the objects and from the writes of this process, and is nothing but their digest: it is
// rebuilt from the objects at any time. Its own methods choose addresses for requests; the others come with its views.
type Index struct {
	*guarded
	feed
	leaseView
	poolView
}

// guarded is what the index knows, with the lock that guards all of it. The views take the lock; nothing below them
// does.
type guarded struct {
	mu sync.RWMutex
	picker
}

// NewIndex makes an empty index.
func NewIndex() *Index {
	g := &guarded{picker: picker{bounds{newState()}}}
	return &Index{guarded: g, feed: feed{guarded: g}, leaseView: leaseView{g}, poolView: poolView{g}}
}
