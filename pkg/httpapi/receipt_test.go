package httpapi

import (
	"net/netip"
	"strings"
	"testing"
	"time"
)

// TestReadReceipt: a receipt counts as it was signed, and by the replicas' secret alone.
func TestReadReceipt(t *testing.T) {
	t.Parallel()
	secret := []byte("secret")
	given := receipt{netip.MustParseAddr("2001:db8::9"), 4711, time.Unix(1_800_000_000, 0)}
	text := given.String() + "," + given.sign(secret)
	if got, ok := readReceipt(text, secret); !ok || got != given {
		t.Errorf("%s: %v, %t", text, got, ok)
	}
	for name, c := range map[string]struct {
		text   string
		secret []byte
	}{
		"none":            {"", secret},
		"another version": {strings.Replace(text, "4711", "4712", 1), secret},
		"another address": {strings.Replace(text, "::9", "::8", 1), secret},
		"another time":    {strings.Replace(text, "1800000000", "1800000001", 1), secret},
		"another secret":  {text, []byte("other")},
		"no secret":       {text, nil},
		"no signature":    {given.String() + ",", secret},
		"too long":        {text + "," + text, secret},
	} {
		if _, ok := readReceipt(c.text, c.secret); ok {
			t.Errorf("%s: %q counts", name, c.text)
		}
	}
}
