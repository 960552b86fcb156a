package follow

import "sync"

// warnOnce remembers which sources cannot be read, so that one warning is given for all of a list: what keeps one from
// being read mostly keeps all.
type warnOnce struct {
	mu sync.Mutex
	of map[int]bool // the sources that cannot be read
}

// about notes whether a source can be read, and reports whether the user is to be warned of it.
func (c *warnOnce) about(source int, unread bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := unread && len(c.of) == 0
	if unread {
		c.of[source] = true
	} else {
		delete(c.of, source)
	}
	return first
}
