package allocator

import (
	"sync"
	"time"

	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

const (
	tombstoneLife = 10 * time.Minute
	// maxTombstones bounds the tombstones of all callers together.
	maxTombstones = 65536
	// tombstoneSweep is the interval in which tombstones of silent callers are checked.
	tombstoneSweep = time.Minute
)

// tombstones remember which containers were deleted and which owners gave up what they held, for ten minutes and
// within bounds: an ADD that began before the DEL must not bring an address back. One that began after it is
// not concerned. A tombstone reaches as far as the caller of its DEL may act, and no further: it bars no ADD whose
// address that DEL could not have released. Each caller has tombstones of its own. If there are too many, the oldest
// of the caller that has most are dropped, so that nobody drops those of others by sending DELs without end.
type tombstones struct {
	mu    sync.Mutex
	by    map[caller]*callerTombstones
	count int // what all callers have in their order
	swept time.Time
	now   func() time.Time
}

// callerTombstones are the tombstones of one caller.
type callerTombstones struct {
	by    map[tombstoneKey]tombstone
	order []placedTombstone // oldest first
}

type tombstone struct {
	began moment
	put   time.Time
}

// placedTombstone is an entry of the order in which tombstones expire.
type placedTombstone struct {
	tombstoneKey
	put time.Time
}

func newTombstones(now func() time.Time) *tombstones {
	return &tombstones{by: map[caller]*callerTombstones{}, now: now}
}

// put remembers a DEL that began at the given moment.
func (t *tombstones) put(r ReleaseRequest, began moment) {
	if failpoint.Broken("marks") {
		return
	}
	holders, callers := r.holders(), r.callers()
	if failpoint.Broken("reach") {
		callers, r.Namespace = []caller{{}}, ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	for _, c := range callers {
		for _, h := range holders {
			if t.by[c] == nil {
				t.by[c] = &callerTombstones{by: map[tombstoneKey]tombstone{}}
			}
			t.by[c].put(tombstoneKey{h, r.Namespace, r.IfName, r.Network}, tombstone{began, now})
			t.count++
		}
		t.expire(c, now)
	}
	if now.Sub(t.swept).Abs() >= tombstoneSweep {
		t.swept = now
		for c := range t.by {
			t.expire(c, now)
		}
	}
	for t.count > maxTombstones {
		t.drop(t.largest(callers))
	}
}

func (o *callerTombstones) put(k tombstoneKey, d tombstone) {
	if old, ok := o.by[k]; ok && old.began.after(d.began) {
		d.began = old.began
	}
	o.by[k] = d
	o.order = append(o.order, placedTombstone{k, d.put})
}

// expire drops those of a caller that are too old.
func (t *tombstones) expire(c caller, now time.Time) {
	for of := t.by[c]; of != nil && now.Sub(of.order[0].put) >= tombstoneLife; of = t.by[c] {
		t.drop(c)
	}
}

// drop drops the oldest of a caller.
func (t *tombstones) drop(c caller) {
	of := t.by[c]
	oldest := of.order[0]
	of.order = of.order[1:]
	if of.by[oldest.tombstoneKey].put.Equal(oldest.put) {
		delete(of.by, oldest.tombstoneKey)
	}
	if t.count--; len(of.order) == 0 {
		delete(t.by, c)
	}
}

// largest returns the caller that has most. One that has more than half of all, and sends on, is found at once; a look
// at all callers is taken only while there are too many tombstones.
func (t *tombstones) largest(sent []caller) (most caller) {
	n := 0
	for _, c := range sent {
		if of := t.by[c]; of != nil && (len(of.order) > maxTombstones/2 || failpoint.Broken("share")) {
			return c
		}
	}
	for c, of := range t.by {
		if len(of.order) > n {
			most, n = c, len(of.order)
		}
	}
	return most
}

// overtook reports whether a DEL overtook the ADD of a holder that began at the given moment.
func (t *tombstones) overtook(h lease.Holder, network string, began moment) bool {
	switch {
	case h.ContainerID != "":
		if t.deleted(deletedHolder{ofContainer, h.ContainerID}, h, network, began) {
			return true
		}
	case h.Owner != "":
		if t.deleted(deletedHolder{ofBareOwner, h.Owner}, h, network, began) {
			return true
		}
	}
	return h.Owner != "" && t.deleted(deletedHolder{ofOwner, h.Owner}, h, network, began)
}

// deleted reports whether there is a tombstone by one of the names of a holder for an ADD that began at the given
// moment, of a caller that may act for the holder.
func (t *tombstones) deleted(name deletedHolder, h lease.Holder, network string, began moment) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	for _, c := range [...]caller{{}, {namespace: h.Namespace}, {host: h.Host}} {
		of := t.by[c]
		if of == nil {
			continue
		}
		for _, k := range [...]tombstoneKey{
			{name, "", h.IfName, network}, {name, "", h.IfName, ""}, {name, "", "", network}, {name, "", "", ""},
			{name, h.Namespace, h.IfName, network}, {name, h.Namespace, h.IfName, ""}, {name, h.Namespace, "", network},
			{name, h.Namespace, "", ""},
		} {
			if d, ok := of.by[k]; ok && now.Sub(d.put) < tombstoneLife && !began.after(d.began) {
				return true
			}
		}
	}
	return false
}
