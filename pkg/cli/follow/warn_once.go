package follow

import "sync"

// warnOnce records which sources cannot be read. The user gets one warning for all sources of a list, because they
// mostly fail for the same reason.
type warnOnce struct {
	mu sync.Mutex
	of map[int]bool // sources that cannot be read
}

// about records whether a source can be read, and reports whether the user needs a warning.
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
