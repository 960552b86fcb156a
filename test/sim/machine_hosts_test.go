package sim_test

import (
	"net/http"
	"time"

	"github.com/bcsnet/bcsnet/test/judge"
)

// losesHost ends one of the two pods of a machine with its host: the machine is off, and an operator says so, often
// twice. Its half of the address ends, and the other pod has the address. The host comes back with a late DEL, or with
// none. What is left of the pod's object goes.
func (m *machine) losesHost(p *slot, b *sandbox, from time.Duration) {
	m.fault("host of a machine released")
	for range 1 + m.rng.IntN(2) {
		a, ok := m.ask(m.rng, http.MethodDelete, "/host/"+host(p.host), nil, func() bool { return !m.loading() })
		if ok && a.Code != 0 {
			m.verdict.Wrong("release of host %s is refused: %s: %s", host(p.host), a.Reason, a.Message)
		}
	}
	p.deletePod()
	if m.rng.IntN(3) == 0 && m.forgetful() {
		m.still = time.Now().Add(2 * time.Minute) // an ADD that was on its way may be collected
		p.noteChange(b, b.addrs, false, from, judge.Never)
		return
	}
	p.lateDEL(b, time.Duration(m.rng.IntN(3000))*time.Millisecond, from)
}

// losesTouch has the host of one of the two pods of a machine cut off. The pod is deleted by force, and its container
// runs on, with the address, until the host is back and has heard of it.
func (m *machine) losesTouch(p *slot) {
	m.fault("host of a machine cut off")
	m.outage(m.rng, p.host, p.orphaned)
	wait(moment(m.rng, 0, ending))
}
