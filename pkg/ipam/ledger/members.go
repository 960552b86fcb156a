package ledger

// PoolMembers has the addresses by the pool that their objects name: every entry is a member of exactly one pool.
type PoolMembers struct{ ByPool map[string]*Members }

// Members are the addresses whose objects name one pool. The pool need not exist.
type Members struct {
	Records          map[*Record]struct{}
	Active, Reserved int
	// Retained are the reserved ones that are for a claim.
	Retained int
	// Draining are the held ones that are no longer in the pool's plan.
	Draining map[*Record]struct{}
}

// Tally counts what members have.
type Tally struct{ Objects, Active, Reserved, Retained, Draining int }

// Add adds what members have, or takes it off.
func (t *Tally) Add(m *Members, by int) {
	t.Objects += by * len(m.Records)
	t.Active += by * m.Active
	t.Reserved += by * m.Reserved
	t.Retained += by * m.Retained
	t.Draining += by * len(m.Draining)
}
