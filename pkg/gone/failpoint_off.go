//go:build !faults

package gone

// What a build with the tag faults breaks on purpose is whole here; the compiler leaves nothing of it.
const (
	// looksTwice: one look is not enough.
	looksTwice = true
	// readsLive: the API server has the last word.
	readsLive = true
	// sparesStatic: a static pod runs whether the API server knows of it or not.
	sparesStatic = true
	// asksHost: a host has to be in touch with the API server before what it ran is over.
	asksHost = true
)
