package hostnic

import (
	"net/netip"
	"strings"
)

// cidrAt returns the CIDR at the end of a block's name, as in 4100-172-16-3-0-26. The prefix is a tunnel's number in
// hostnic's names, and the pool in ours. IPv6 addresses are written out in full. ok is false if there is no CIDR, or
// one with bits beyond its length.
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

// allOf reports whether all texts have the given length.
func allOf(texts []string, length int) bool {
	for _, t := range texts {
		if len(t) != length {
			return false
		}
	}
	return true
}
