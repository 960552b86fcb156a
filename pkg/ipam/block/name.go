package block

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// maxName is the maximum length of the name of a pool, in bytes.
const maxName = 253

// Name returns the name of a block of a pool: <pool>-<a-b-c-d>-<length>; an IPv6 address is written out in full.
// Every replica calls a block the same, so that the API server decides who makes it.
func Name(parent string, block netip.Prefix) string {
	addr := strings.ReplaceAll(ipaddr.ObjectName(block.Addr()), ".", "-")
	return parent + "-" + addr + "-" + strconv.Itoa(block.Bits())
}

// CheckNames returns an error if blocks of a pool would have names that no pool may have. The last one has the
// longest.
func CheckNames(parent string, subnet netip.Prefix, length int) error {
	last := netip.PrefixFrom(netipx.PrefixLastIP(subnet), length).Masked()
	if over := len(Name(parent, last)) - maxName; over > 0 {
		return fmt.Errorf("its name is too long for the names of its blocks, such as %s: it may have %d "+
			"characters", Name("POOL", last), len(parent)-over)
	}
	return nil
}

// IsName reports whether a pool is called as a block of another one is, of just those addresses.
func IsName(name, parent string, block netip.Prefix) bool {
	return parent != "" && block.IsValid() && name == Name(parent, block)
}

// OfName returns the addresses of the block of a pool that is called so; invalid if none is.
func OfName(name, parent string) netip.Prefix {
	rest, ok := strings.CutPrefix(name, parent+"-")
	at := strings.LastIndexByte(rest, '-')
	if !ok || at < 0 {
		return netip.Prefix{}
	}
	a, err := ipaddr.ParseObjectName(rest[:at])
	if err != nil {
		a, err = ipaddr.ParseObjectName(strings.ReplaceAll(rest[:at], "-", "."))
	}
	bits, wrong := strconv.Atoi(rest[at+1:])
	if block := netip.PrefixFrom(a, bits); err == nil && wrong == nil && IsName(name, parent, block) {
		return block
	}
	return netip.Prefix{}
}
