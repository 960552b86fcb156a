package ledger

// Add adds what members have, or takes it off.
func (t *Tally) Add(m *Members, by int) {
	t.Objects += by * len(m.Records)
	t.Active += by * m.Active
	t.Reserved += by * m.Reserved
	t.Retained += by * m.Retained
	t.Draining += by * len(m.Draining)
}
