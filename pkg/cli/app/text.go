package app

import (
	"math"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
)

// MaxNamed is how many names a sentence spells out.
const MaxNamed = humanize.MaxNamed

// Those names one thing or several: "host a", "2 hosts (a, b)".
func Those(noun string, names []string) string {
	if len(names) == 1 {
		return noun + " " + names[0]
	}
	return humanize.Plural(len(names), noun) + " (" + humanize.List(names) + ")"
}

// Age formats how long ago something was, as kubectl does.
func (s *App) Age(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return duration.HumanDuration(max(0, s.Now().Sub(t)))
}

// Count writes a count of a pool's status, which saturates.
func Count(n int64) string {
	if n == math.MaxInt64 {
		return humanize.Saturated
	}
	return strconv.FormatInt(n, 10)
}

// UnlessZero returns a number as text; zero is empty.
func UnlessZero(n int32) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(int(n))
}

// SortedOnce returns names in order, each once.
func SortedOnce(names []string) []string { return slices.Compact(slices.Sorted(slices.Values(names))) }

// Saturated returns a count as objects hold it: at most 2^63-1.
func Saturated(n uint64) int64 { return int64(min(n, math.MaxInt64)) }
