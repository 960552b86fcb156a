package ipam

import (
	"encoding/hex"
	"strings"
)

// compact is an identifier in the fewest bytes: one written in hexadecimal takes half, whatever else
// stays as it is. Equal identifiers are equal.
type compact struct {
	bytes  string
	packed bool
}

// compactHex packs hexadecimal digits, as container IDs are.
func compactHex(s string) compact {
	if s == "" || len(s)%2 != 0 || !lowerHex(s) {
		return compact{bytes: s}
	}
	b, _ := hex.DecodeString(s) // cannot fail
	return compact{string(b), true}
}

func (c compact) hex() string {
	if !c.packed {
		return c.bytes
	}
	return hex.EncodeToString([]byte(c.bytes))
}

// compactUUID packs a UUID in its usual form, as pod UIDs are.
func compactUUID(s string) compact {
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return compact{bytes: s}
	}
	digits := s[:8] + s[9:13] + s[14:18] + s[19:23] + s[24:]
	if !lowerHex(digits) {
		return compact{bytes: s}
	}
	b, _ := hex.DecodeString(digits) // cannot fail
	return compact{string(b), true}
}

func (c compact) uuid() string {
	if !c.packed {
		return c.bytes
	}
	s := hex.EncodeToString([]byte(c.bytes))
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

func lowerHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }
