package limiter

import "slices"

// line has the waiting callers by key. The keys take turns.
type line struct {
	queues map[string][]*waiter
	turn   []string // keys with a queue, the next one first
	n      int
}

func (l *line) add(key string, w *waiter) {
	if len(l.queues[key]) == 0 {
		l.turn = append(l.turn, key)
	}
	l.queues[key] = append(l.queues[key], w)
	l.n++
}

// next removes the waiter whose turn it is; nil if nobody waits.
func (l *line) next() *waiter {
	if len(l.turn) == 0 {
		return nil
	}
	key := l.turn[0]
	l.turn = l.turn[1:]
	q := l.queues[key]
	w := q[0]
	if q = q[1:]; len(q) > 0 {
		l.queues[key] = q
		l.turn = append(l.turn, key)
	} else {
		delete(l.queues, key)
	}
	l.n--
	return w
}

// remove removes a waiter; false if it is no longer in line.
func (l *line) remove(key string, w *waiter) bool {
	at := slices.Index(l.queues[key], w)
	if at < 0 {
		return false
	}
	l.n--
	if l.queues[key] = slices.Delete(l.queues[key], at, at+1); len(l.queues[key]) == 0 {
		delete(l.queues, key)
		l.turn = slices.DeleteFunc(l.turn, func(k string) bool { return k == key })
	}
	return true
}

// ahead returns the number of waiters of this line that go before a caller that comes now: all of its own key, and of
// each other key at most one per turn of its own key.
func (l *line) ahead(key string) int {
	own := len(l.queues[key])
	all := own
	for other, q := range l.queues {
		if other != key {
			all += min(len(q), own+1)
		}
	}
	return all
}
