package ledger

import (
	"encoding/hex"
	"strings"
)

// ID is an identifier in the fewest bytes: one written in hexadecimal takes half, whatever else
// stays as it is. Equal identifiers are equal.
type ID struct {
	Bytes  string
	packed bool
}

// PackHex packs hexadecimal digits, as container IDs are.
func PackHex(s string) ID {
	if s == "" || len(s)%2 != 0 || !lowerHex(s) {
		return ID{Bytes: s}
	}
	b, _ := hex.DecodeString(s) // cannot fail
	return ID{string(b), true}
}

func (c ID) hex() string {
	if !c.packed {
		return c.Bytes
	}
	return hex.EncodeToString([]byte(c.Bytes))
}

// PackUUID packs a UUID in its usual form, as pod UIDs are.
func PackUUID(s string) ID {
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return ID{Bytes: s}
	}
	digits := s[:8] + s[9:13] + s[14:18] + s[19:23] + s[24:]
	if !lowerHex(digits) {
		return ID{Bytes: s}
	}
	b, _ := hex.DecodeString(digits) // cannot fail
	return ID{string(b), true}
}

func (c ID) uuid() string {
	if !c.packed {
		return c.Bytes
	}
	s := hex.EncodeToString([]byte(c.Bytes))
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

func lowerHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }
