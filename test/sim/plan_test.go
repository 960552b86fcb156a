package sim_test

import (
	"slices"
	"time"
)

// plan is all that a run follows from: what it does is drawn from the seed, but for what is left out.
type plan struct {
	Seed    uint64 `json:"seed"`
	Seconds int    `json:"seconds"`
	Slots   int    `json:"slots"`
	// Clocks says that those of the replicas differ.
	Clocks bool `json:"clocks"`
	// Sticky says that some pods keep their addresses.
	Sticky bool `json:"sticky"`
	// Restores says that the store is put back to earlier copies.
	Restores bool `json:"restores"`
	// Losses says that the API server loses a namespace at the end of the run, and not of one in four.
	Losses bool `json:"losses"`
	// Without names slots and faults that are left out, "slot 3" or "replica-1 7".
	Without []string `json:"without,omitempty"`
}

func (p plan) has(name string) bool { return !slices.Contains(p.Without, name) }

func (p plan) length() time.Duration { return time.Duration(p.Seconds) * time.Second }

// long reports whether a run has time for what takes minutes.
func (p plan) long() bool { return p.Seconds > short }

// short is the number of seconds that the run of make test lasts.
const short = 10

// settled is by when pods and leases must agree after the last fault and the last pod that goes: a lease whose request
// named no UID waits five minutes for what the next pod of the name reports.
const settled = 8 * time.Minute
