package ipam

import "iter"

// table finds records by the hash of one of their keys. Its chains go through the records themselves,
// so that an entry takes one or two words, where a map takes eight. It does not shrink.
type table struct {
	heads []*record // none, or a power of two that is not below size
	size  int
	hash  func(*record) uint64
	next  func(*record) **record
}

// first returns the head of the chain of a hash; the records of other hashes are on it too.
func (t *table) first(hash uint64) *record {
	if len(t.heads) == 0 {
		return nil
	}
	return t.heads[hash&uint64(len(t.heads)-1)]
}

// add enters a record.
func (t *table) add(r *record) {
	if t.size == len(t.heads) {
		t.grow()
	}
	t.size++
	t.push(r)
}

func (t *table) push(r *record) {
	head := &t.heads[t.hash(r)&uint64(len(t.heads)-1)]
	*t.next(r), *head = *head, r
}

// remove takes out a record that is in the table.
func (t *table) remove(r *record) {
	at := &t.heads[t.hash(r)&uint64(len(t.heads)-1)]
	for *at != r {
		at = t.next(*at)
	}
	*at, *t.next(r) = *t.next(r), nil
	t.size--
}

func (t *table) grow() {
	old := t.heads
	t.heads = make([]*record, max(16, 2*len(old)))
	for _, r := range old {
		for r != nil {
			next := *t.next(r)
			t.push(r)
			r = next
		}
	}
}

// all returns the records in no order. The one at hand may be removed.
func (t *table) all() iter.Seq[*record] {
	return func(yield func(*record) bool) {
		for _, r := range t.heads {
			for r != nil {
				next := *t.next(r)
				if !yield(r) {
					return
				}
				r = next
			}
		}
	}
}
