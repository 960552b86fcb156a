package plugin

import "github.com/anishathalye/porcupine"

// ByAddress parts a history into those of single addresses, which are judged apart: of says which one the input
// of an operation is about.
func ByAddress(of func(input any) string) func([]porcupine.Operation) [][]porcupine.Operation {
	return func(history []porcupine.Operation) (out [][]porcupine.Operation) {
		by := map[string][]porcupine.Operation{}
		for _, op := range history {
			by[of(op.Input)] = append(by[of(op.Input)], op)
		}
		for _, ops := range by {
			out = append(out, ops)
		}
		return out
	}
}
