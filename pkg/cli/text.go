package cli

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// plural is "1 address", "2 addresses".
func plural[N int | int64 | uint64](n N, noun string) string {
	number := strconv.FormatUint(uint64(n), 10)
	if uint64(n) >= math.MaxInt64 {
		number = saturated
	}
	switch {
	case n == 1:
		return "1 " + noun
	case noun[len(noun)-1] == 's':
		return number + " " + noun + "es"
	default:
		return number + " " + noun + "s"
	}
}

// saturated stands for counts that a status has no room for.
const saturated = "2^63+"

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
		return saturated
	}
	return strconv.FormatInt(n, 10)
}

func unlessZero(n int32) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(int(n))
}

// maxNamed is how many names a sentence spells out.
const maxNamed = 5

// shortList names the first few.
func shortList(names []string) string {
	if n := len(names) - maxNamed; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), n)
	}
	return strings.Join(names, ", ")
}

// oneOr is the form of a word that goes with a number.
func oneOr[N int | int64 | uint64](n N, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// sortedOnce are names in order, each once.
func sortedOnce(names []string) []string { return slices.Compact(slices.Sorted(slices.Values(names))) }
