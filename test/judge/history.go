package judge

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/bcsnet/bcsnet/test/plugin"
)

// History is what the callers did and heard, for porcupine.
type History struct {
	mu    sync.Mutex
	began time.Time
	ops   []porcupine.Operation
}

// Change is one operation on one address: a container of a pod took it, or gave it up.
type Change struct {
	Addr, Pod, Container string
	Take                 bool
	// Beside: the container takes it beside another one of the pod, as while a virtual machine migrates live. Pod is
	// the machine then.
	Beside bool
}

// Never is the end of an operation of which nobody knows when it took effect, or whether it did.
const Never = time.Duration(math.MaxInt64)

// NewHistory makes an empty one that begins now.
func NewHistory() *History { return &History{began: time.Now()} }

// Now returns how long ago the history began.
func (h *History) Now() time.Duration { return time.Since(h.began) }

// Add notes what a client did between two times.
func (h *History) Add(client int, c Change, from, to time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: c, Call: int64(from), Return: int64(to)})
}

// holder is the state of an address. second is a container beside the first.
type holder struct{ pod, container, second string }

// register is one address: at any time it has one holder or none. It moves from container to container within
// a pod, never from pod to pod; a virtual machine counts as one pod, which has it in two containers at most. A release
// by a container that does not hold the address changes nothing: it came late, or somebody else released it before.
var register = porcupine.Model{
	Partition: plugin.ByAddress(func(input any) string { return input.(Change).Addr }),
	Init:      func() any { return holder{} },
	Step: func(state, input, _ any) (bool, any) {
		s, c := state.(holder), input.(Change)
		switch {
		case c.Take && c.Beside && s.pod == c.Pod && s.container != c.Container && s.second != c.Container:
			return s.second == "", holder{c.Pod, s.container, c.Container}
		case c.Take && c.Beside && s.pod == c.Pod:
			return true, s
		case c.Take:
			return s == holder{} || s.pod == c.Pod, holder{c.Pod, c.Container, ""}
		case s.second != "" && s.container == c.Container:
			return true, holder{s.pod, s.second, ""}
		case s.second != "" && s.second == c.Container:
			return true, holder{s.pod, s.container, ""}
		case s.container == c.Container:
			return true, holder{}
		default:
			return true, s
		}
	},
	DescribeOperation: func(input, _ any) string { return fmt.Sprintf("%+v", input) },
}

// Illegal writes out the history of the first address whose history is not that of a register; "" when
// there is none. A legal history is decided at once, one after the other; the time is for those that are not.
func (h *History) Illegal() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, ops := range register.Partition(h.ops) {
		result := porcupine.CheckOperationsTimeout(register, ops, 20*time.Second)
		if result == porcupine.Ok {
			continue
		}
		slices.SortFunc(ops, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
		var out strings.Builder
		fmt.Fprintf(&out, "%s: the history of %s, the last 200 of %d operations, µs:\n", result,
			ops[0].Input.(Change).Addr, len(ops))
		for _, op := range ops[max(0, len(ops)-200):] {
			fmt.Fprintf(&out, "%9d to %9d: %+v\n", op.Call/1000, op.Return/1000, op.Input)
		}
		return out.String()
	}
	return ""
}
