package sim_test

import (
	"math/rand/v2"

	"github.com/bcsnet/bcsnet/test/plugin"
)

// once is one request to one replica. An error says that there is no answer; the request may yet be served.
func (f *fixture) once(rng *rand.Rand, replica int, method, path string, body any) (plugin.Answer, error) {
	return f.callers.Once(f.ctx, rng, f.callers.URLs[replica], method, path, body)
}

// ask sends a request to a replica, and to the next one when it has no answer, until one of them serves it or
// refuses it for good. It gives up (ok false) when its caller says so, or the run ends.
func (f *fixture) ask(rng *rand.Rand, method, path string, body any, giveUp func() bool) (a plugin.Answer, ok bool) {
	return f.callers.Ask(f.ctx, rng, method, path, body, giveUp)
}
