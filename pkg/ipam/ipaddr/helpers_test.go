package ipaddr

import (
	"testing"

	"go4.org/netipx"
)

// message is the text of an error, empty for none.
func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func mustRange(t testing.TB, s string) netipx.IPRange {
	t.Helper()
	r, err := ParseRange(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func mustSet(t testing.TB, entries ...string) *netipx.IPSet {
	t.Helper()
	var ranges []netipx.IPRange
	for _, e := range entries {
		ranges = append(ranges, mustRange(t, e))
	}
	return SetOf(ranges...)
}
