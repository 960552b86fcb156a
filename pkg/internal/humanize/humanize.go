// Package humanize puts numbers and names into sentences, the same way in every message.
package humanize

import (
	"math"
	"strconv"
	"strings"
)

// Saturated stands for a count that is too large for a status.
const Saturated = "2^63+"

// MaxNamed bounds the names in a sentence.
const MaxNamed = 5

// Plural returns a number and its noun: "1 address", "2 addresses".
func Plural[N int | int64 | uint64](n N, noun string) string {
	number := strconv.FormatUint(uint64(n), 10)
	if uint64(n) >= math.MaxInt64 {
		number = Saturated
	}
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "s"):
		return number + " " + noun + "es"
	default:
		return number + " " + noun + "s"
	}
}

// OneOr returns the form of a word that goes with a number.
func OneOr[N int | int64 | uint64](n N, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// List returns the first few names, and the number of the others.
func List(names []string) string {
	if n := len(names) - MaxNamed; n > 0 {
		return strings.Join(names[:MaxNamed], ", ") + " and " + strconv.Itoa(n) + " more"
	}
	return strings.Join(names, ", ")
}
