package importer

import (
	"strings"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// markedContainer is how many bytes of the container's ID importReason writes.
const markedContainer = 12

// importReason returns the reason of an imported lease. It names the container, so that a later container of the pod,
// which got the address from this system, is known from the one that the other system gave it to.
func importReason(system, container string) string {
	if container == "" {
		return system + ": of a container that it does not name"
	}
	return system + ": container " + container[:min(len(container), markedContainer)]
}

// HeldByImport reports whether the holder of an address is the one that an import of the system found.
func HeldByImport(system string, l lease.Lease) bool {
	last, ok := l.History.Last()
	return l.State == lease.Active && l.Other == nil && ok && last.Verb == lease.VerbImport &&
		last.Reason == importReason(system, l.ContainerID)
}

// reservedBy reports whether an import of the system reserved an address, for a claim or for nobody, and nothing
// happened to it since.
func reservedBy(system string, l lease.Lease) bool {
	last, ok := l.History.Last()
	return l.State == lease.Reserved && ok && last.Verb == lease.VerbReserve &&
		strings.HasPrefix(last.Reason, system+": ")
}

// freedByHand reports whether somebody freed an address that was set aside, other than by taking the import back.
func freedByHand(system string, l lease.Lease) bool {
	last, ok := l.History.Last()
	return ok && last.Verb == lease.VerbUnreserve && last.Reason != system+givenBack
}

// asideBy reports whether an import of the system reserved an address for nobody, perhaps before somebody resolved
// what was contradictory.
func asideBy(system string, l lease.Lease) bool { return l.Claim == "" && reservedBy(system, l) }

// stillHas begins what an import writes of an address of ours that the other system has not given up.
const stillHas = ": it still has it for "

// stillThere reports whether an address is reserved because the other system still had it.
func stillThere(system string, l lease.Lease) bool {
	last, _ := l.History.Last()
	return asideBy(system, l) && strings.HasPrefix(last.Reason, system+stillHas)
}
