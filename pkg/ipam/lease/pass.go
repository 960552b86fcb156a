package lease

import "time"

// Pass gives the address of an owner to another owner of the same namespace that has it beside the first one already:
// Services can share an address. It is refused (ok false) for an address that no owner has.
func Pass(l Lease, to string, now time.Time) (next Lease, ok bool) {
	if l.State != Active || l.Owner == "" || l.Owner == to {
		return l, false
	}
	next = l
	next.History = l.History.Add(past(l, now, Change{}))
	// An earlier release by the new owner did not mean this address.
	next.Owner, next.StartedAt, next.Updated, next.BoundVersion = to, now, l.given(now), 0
	return next, true
}
