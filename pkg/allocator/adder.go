package allocator

import (
	"net/netip"
	"sync/atomic"

	"github.com/bcsnet/bcsnet/pkg/gone"
)

// Adder answers ADD: it takes a request through the phases of the protocol, which are its methods.
type Adder struct {
	engine     *engine
	writer     *writer
	blocks     *blockMaker
	holdings   *holdings
	succession *succession
	departures *departures
	answers    *answers
	catchUps   *catchUps
	// constraints finds those of pods; nil if no pod has any.
	constraints ConstraintsFinder
	again       atomic.Uint64
}

func newAdder(
	e *engine, w *writer, blocks *blockMaker, held *holdings, constraints ConstraintsFinder, rule gone.Rule,
) *Adder {
	given := &answers{engine: e}
	return &Adder{
		engine: e, writer: w, blocks: blocks, holdings: held, answers: given, constraints: constraints,
		succession: &succession{engine: e, answers: given, rule: rule, vanished: newVanished()},
		departures: &departures{engine: e, waits: newWaitQueue()},
		catchUps:   &catchUps{feed: e.index.Feed, leases: e.leases, turn: make(chan struct{}, 1)},
	}
}

// AdmitMigrations lets pods that virtual machines migrate to get second attachments of addresses. Call it before the
// feed runs.
func (a *Adder) AdmitMigrations(m Migrations) { a.succession.migrations = m }

// PreferHostGateways lets a host replace the gateway of the pool: by the HostGateway of its request, else by what of
// returns for it, which is invalid for none. Call it before the feed runs.
func (a *Adder) PreferHostGateways(of func(host netip.Addr) netip.Addr) { a.answers.gatewayOf = of }

// Stats has the counts of an allocator since it was made, and of what is open now.
type Stats struct {
	// Again counts the attempts that began anew because the index had changed meanwhile.
	Again uint64
	// InDoubt counts the addresses of which the outcome of a write is unknown.
	InDoubt int
}

// Stats reads the counts.
func (a *Adder) Stats() Stats {
	return Stats{Again: a.again.Load(), InDoubt: len(a.engine.index.Unknown(""))}
}
