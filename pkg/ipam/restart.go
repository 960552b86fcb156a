package ipam

import "errors"

// ErrRestarted says that the index was made anew while somebody waited for it to reach a version.
var ErrRestarted = errors.New("the store was put back to an older state")

// Restart takes a full list of a store that was put back to an older state, whatever the versions. What was held
// by what was known before, and is not in the list, or free in it, or of an earlier holder, counts as lost. Who waits for a version
// is told, and no write is in doubt any more: it was for a store that is no more.
func (x *Index) Restart(all []Lease, version uint64) {
	x.update(func() (changes []change) {
		for _, w := range x.waiters {
			w.done <- ErrRestarted
		}
		x.waiters, x.seen = nil, version
		clear(x.deleted)
		listed := make(map[*record]struct{}, len(all))
		for _, l := range all {
			old, r := x.record(l.Addr), pack(l)
			c := x.put(old, r, true)
			changes = append(changes, c)
			listed[c.new] = struct{}{}
		}
		for r := range x.byAddr.all() {
			if _, ok := listed[r]; !ok {
				changes = x.drop(changes, r)
			}
		}
		for a, h := range x.holds {
			if h.Doubt {
				x.forgetHold(a)
				x.doubts--
				x.refresh(a)
			}
		}
		return changes
	})
}
