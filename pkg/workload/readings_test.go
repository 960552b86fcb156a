package workload

import (
	"fmt"
	"strings"
	"testing"
)

// naming is a workload that names so many addresses, each apart from the others.
func naming(addresses int) sample {
	var parts []string
	for i := range addresses {
		parts = append(parts, fmt.Sprintf("10.0.%d.%d", i/120, 2*(i%120)))
	}
	return deployment().itself(notes{ownIP: strings.Join(parts, ",")})
}

// again decides what was decided before.
func (s sample) again(t testing.TB, known *readings) func() {
	t.Helper()
	decide := func() {
		if _, err := s.decideIn(nil, nil, known); err != nil {
			t.Fatal(err)
		}
	}
	decide()
	return decide
}

// TestReadAgain: what it costs to decide about the next pod of a workload does not grow with what its annotations say.
func TestReadAgain(t *testing.T) {
	small, large := testing.AllocsPerRun(20, naming(8).again(t, &readings{})),
		testing.AllocsPerRun(20, naming(1000).again(t, &readings{}))
	if large > small+5 {
		t.Errorf("%.0f allocations for 1,000 addresses, %.0f for 8", large, small)
	}
}

// TestReadingsAreBounded: values that all differ are forgotten.
func TestReadingsAreBounded(t *testing.T) {
	var known readings
	s := naming(1000)
	for i := range 3 * maxReadings / len(s.own.annotations[ownIP]) {
		s.own.annotations[ownIP] += fmt.Sprintf(",10.1.%d.%d", i/250, i%250)
		s.again(t, &known)()
	}
	sum := 0
	for r := range known.known {
		sum += len(r.value)
	}
	if sum > maxReadings || sum != known.bytes {
		t.Errorf("%d bytes are remembered and %d counted, want at most %d", sum, known.bytes, maxReadings)
	}
}

func BenchmarkDecide(b *testing.B) {
	for _, addresses := range []int{1, 64, 1024} {
		b.Run(fmt.Sprint(addresses), func(b *testing.B) {
			decide := naming(addresses).again(b, &readings{})
			b.ReportAllocs()
			for b.Loop() {
				decide()
			}
		})
	}
}
