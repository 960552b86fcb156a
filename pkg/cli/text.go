package cli

import (
	"math"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
)

// maxNamed is how many names a sentence spells out.
const maxNamed = humanize.MaxNamed

// those names one thing or several: "host a", "2 hosts (a, b)".
func those(noun string, names []string) string {
	if len(names) == 1 {
		return noun + " " + names[0]
	}
	return humanize.Plural(len(names), noun) + " (" + humanize.List(names) + ")"
}

// age is how long ago something was, as kubectl says it.
func (s *session) age(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return duration.HumanDuration(max(0, s.now().Sub(t)))
}

// count writes a count of a pool's status, which saturates.
func count(n int64) string {
	if n == math.MaxInt64 {
		return humanize.Saturated
	}
	return strconv.FormatInt(n, 10)
}

func unlessZero(n int32) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(int(n))
}

// sortedOnce are names in order, each once.
func sortedOnce(names []string) []string { return slices.Compact(slices.Sorted(slices.Values(names))) }
