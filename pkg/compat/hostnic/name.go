package hostnic

import (
	"net/netip"
	"strings"
)

// cidrAt returns the CIDR at the end of the name of a block, as in 4100-172-16-3-0-26, whatever stands before it: a
// tunnel's number in hostnic's names, the pool in ours. An IPv6 address is written out in full, as in ours. ok is false
// where there is none, or one with bits beyond its length.
func cidrAt(name string) (block netip.Prefix, ok bool) {
	parts := strings.Split(name, "-")
	for _, family := range []struct {
		parts, width int // width is that of each part; 0 for any
		between      string
	}{{8, 4, ":"}, {4, 0, "."}} {
		n := len(parts) - family.parts - 1
		if n < 0 {
			continue
		}
		addr := parts[n : len(parts)-1]
		if family.width > 0 && !allOf(addr, family.width) {
			continue
		}
		block, err := netip.ParsePrefix(strings.Join(addr, family.between) + "/" + parts[len(parts)-1])
		if err == nil && block == block.Masked() && !block.Addr().Is4In6() {
			return block, true
		}
	}
	return block, false
}

// allOf reports whether texts have one length.
func allOf(texts []string, length int) bool {
	for _, t := range texts {
		if len(t) != length {
			return false
		}
	}
	return true
}
