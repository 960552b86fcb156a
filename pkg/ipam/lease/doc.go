// Package lease has the lease of one address as a value: its states, its holder, its history, and the transitions from
// each state to the next. A transition decides only by the lease. It knows no pool, no index and no object.
package lease
