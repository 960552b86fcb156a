package ipam

// poolMembers has the addresses by the pool that their objects name: every entry is a member of one pool.
type poolMembers struct{ byPool map[string]*members }

// members are the addresses whose object names one pool, whether or not that pool exists.
type members struct {
	records          map[*record]struct{}
	active, reserved int
	// kept are the reserved ones that are for a claim.
	retained int
	// draining are the held ones that are no longer in the pool's plan.
	draining map[*record]struct{}
}

// drains says whether a held address is outside what its pool, if there is one, has now.
func (x *state) drains(r *record) bool {
	p := x.pools[r.params.Value().Pool]
	return p != nil && p.Valid() && r.state != Available && !p.Plan.Usable.Contains(r.addr)
}

// findDraining looks at all addresses of a pool whose plan has changed.
func (x *state) findDraining(pool string) {
	m := x.byPool[pool]
	if m == nil {
		return
	}
	clear(m.draining)
	for r := range m.records {
		if x.drains(r) {
			m.draining[r] = struct{}{}
		}
	}
}

func (x *state) count(r *record, by int) {
	name := r.params.Value().Pool
	m := x.byPool[name]
	if m == nil {
		m = &members{records: map[*record]struct{}{}, draining: map[*record]struct{}{}}
		x.byPool[name] = m
	}
	if by > 0 {
		m.records[r] = struct{}{}
		if x.drains(r) {
			m.draining[r] = struct{}{}
		}
	} else {
		delete(m.records, r)
		delete(m.draining, r)
	}
	switch r.state {
	case Active:
		m.active += by
	case Reserved:
		if m.reserved += by; r.claim() != "" {
			m.retained += by
		}
	case Available:
	}
	if r.state != Available {
		x.countOverlaps(name, r.addr, by)
	}
	if len(m.records) == 0 {
		delete(x.byPool, name)
	}
}

// servesItsOwn says whether a pool serves each address whose object names it.
func (x *state) servesItsOwn(pool string) bool {
	p, m := x.pools[pool], x.byPool[pool]
	return p != nil && p.Valid() && len(p.overlaps) == 0 && (m == nil || len(m.draining) == 0)
}
