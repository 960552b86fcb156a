package lease

import "net/netip"

// Outdated counts leases of a pool by what they were given and what the pool says now.
type Outdated struct {
	now Settings
	// differs has what is known of each text: there are few.
	differs map[Given][]string
	// Leases is the number of leases with other settings than the pool has now, By their number by the name of each
	// setting. Unknown is the number of leases with unknown settings.
	Leases, Unknown int
	By              map[string]int
}

// NewOutdated returns the counts for a pool with these settings.
func NewOutdated(now Settings) *Outdated {
	return &Outdated{now: now, differs: map[Given][]string{}, By: map[string]int{}}
}

// Add counts a lease, if it is in use.
func (o *Outdated) Add(l Lease) {
	names, known := o.Of(l)
	switch {
	case l.State != Active:
		return
	case len(names) > 0:
		o.Leases++
	case !known:
		o.Unknown++
	}
	for _, name := range names {
		o.By[name]++
	}
}

// Of returns the names of the settings in which a lease was given something else than the pool says now: of two
// attachments, what the first of them that differs was given. known is false if that is not known of one of them.
func (o *Outdated) Of(l Lease) (names []string, known bool) {
	known = true
	for side := range l.Attachments() {
		differs, seen := o.differs[side.Given]
		if !seen {
			differs = side.Given.Differs(o.now)
			o.differs[side.Given] = differs
		}
		if len(differs) > 0 {
			return differs, true
		}
		known = known && side.Given.Known()
	}
	return nil, known
}

// UsedGateway returns the gateway that the holder was given; that of the pool if it is not known, or nobody has the
// address.
func (l Lease) UsedGateway() netip.Addr {
	if s, ok := l.Given.Settings(Settings{}); ok {
		return s.Gateway
	}
	return l.Gateway
}
