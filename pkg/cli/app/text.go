package app

import (
	"math"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
)

// MaxNamed bounds the names that a sentence lists.
const MaxNamed = humanize.MaxNamed

// Map returns what fn makes of each element, in their order.
func Map[T, R any](all []T, fn func(T) R) []R {
	out := make([]R, 0, len(all))
	for _, one := range all {
		out = append(out, fn(one))
	}
	return out
}

// Those returns a noun with its names: "host a", "2 hosts (a, b)".
func Those(noun string, names []string) string {
	if len(names) == 1 {
		return noun + " " + names[0]
	}
	return humanize.Plural(len(names), noun) + " (" + humanize.List(names) + ")"
}

// Age formats the time since t as kubectl does.
func (s *App) Age(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return duration.HumanDuration(max(0, s.Now().Sub(t)))
}

// Count formats a count of a pool's status, which saturates at 2^63-1.
func Count(n int64) string {
	if n == math.MaxInt64 {
		return humanize.Saturated
	}
	return strconv.FormatInt(n, 10)
}

// UnlessZero formats a number; zero is empty.
func UnlessZero(n int32) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(int(n))
}

// SortedOnce returns the names sorted and without duplicates.
func SortedOnce(names []string) []string { return slices.Compact(slices.Sorted(slices.Values(names))) }

// Saturated limits a count to 2^63-1, the maximum in objects.
func Saturated(n uint64) int64 { return int64(min(n, math.MaxInt64)) }
