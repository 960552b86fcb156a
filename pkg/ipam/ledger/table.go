package ledger

import "iter"

// table finds records by the hash of one of their keys. Its chains go through the records themselves, so that an entry
// takes one or two words; in a map it would take eight. A table does not shrink.
type table struct {
	Heads []*Record // none, or a power of two that is at least Size
	Size  int
	hash  func(*Record) uint64
	next  func(*Record) **Record
}

// first returns the head of the chain of a hash; the records of other hashes are on it too.
func (t *table) first(hash uint64) *Record {
	if len(t.Heads) == 0 {
		return nil
	}
	return t.Heads[hash&uint64(len(t.Heads)-1)]
}

// add enters a record.
func (t *table) add(r *Record) {
	if t.Size == len(t.Heads) {
		t.grow()
	}
	t.Size++
	t.push(r)
}

func (t *table) push(r *Record) {
	head := &t.Heads[t.hash(r)&uint64(len(t.Heads)-1)]
	*t.next(r), *head = *head, r
}

// remove takes out a record that is in the table.
func (t *table) remove(r *Record) {
	at := &t.Heads[t.hash(r)&uint64(len(t.Heads)-1)]
	for *at != r {
		at = t.next(*at)
	}
	*at, *t.next(r) = *t.next(r), nil
	t.Size--
}

func (t *table) grow() {
	old := t.Heads
	t.Heads = make([]*Record, max(16, 2*len(old)))
	for _, r := range old {
		for r != nil {
			next := *t.next(r)
			t.push(r)
			r = next
		}
	}
}

// All returns the records in no order. The one at hand may be removed.
func (t *table) All() iter.Seq[*Record] {
	return func(yield func(*Record) bool) {
		for _, r := range t.Heads {
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
