package ipam

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"net/netip"
	"strconv"
	"strings"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// MaxBlocks is how many blocks a pool may be split into.
const MaxBlocks = 65536

// maxName is how long the name of a pool may be, in bytes.
const maxName = 253

// BlockName returns the name of a block of a pool: <pool>-<a-b-c-d>-<length>; an IPv6 address is written out in full.
// Every replica calls a block the same, so that the API server decides who makes it.
func BlockName(parent string, block netip.Prefix) string {
	addr := strings.ReplaceAll(ipaddr.ObjectName(block.Addr()), ".", "-")
	return parent + "-" + addr + "-" + strconv.Itoa(block.Bits())
}

// checkBlockNames returns an error where blocks of a pool would have names that no pool may have. The last one has the
// longest.
func checkBlockNames(parent string, subnet netip.Prefix, length int) error {
	last := netip.PrefixFrom(netipx.PrefixLastIP(subnet), length).Masked()
	if over := len(BlockName(parent, last)) - maxName; over > 0 {
		return fmt.Errorf("its name is too long for those of its blocks, which are called like %s: it may have %d "+
			"characters", BlockName("POOL", last), len(parent)-over)
	}
	return nil
}

// IsBlockName reports whether a pool is called as a block of another one is, of just those addresses.
func IsBlockName(name, parent string, block netip.Prefix) bool {
	return parent != "" && block.IsValid() && name == BlockName(parent, block)
}

// grid cuts addresses into blocks of one length, which are numbered from 0 in address order.
type grid struct {
	first netip.Addr
	bits  int
	n     uint64
}

// newGrid returns the blocks that have any of some usable addresses, and those between them. The blocks are aligned: a
// range that begins or ends inside a block has a part of it.
func newGrid(usable *netipx.IPSet, subnet netip.Prefix, length int) (g grid, err error) {
	if length <= subnet.Bits() || length > subnet.Addr().BitLen() {
		return g, fmt.Errorf("blockSize %d is not between %d and %d: a block is a part of the subnet %s",
			length, subnet.Bits()+1, subnet.Addr().BitLen(), subnet)
	}
	ranges := usable.Ranges()
	if len(ranges) == 0 {
		return grid{first: subnet.Addr(), bits: length}, nil
	}
	g = grid{first: netip.PrefixFrom(ranges[0].From(), length).Masked().Addr(), bits: length}
	last, fits := g.offset(ranges[len(ranges)-1].To())
	if !fits || last >= MaxBlocks {
		return grid{}, fmt.Errorf("blockSize %d makes more than %d blocks of %s: use a shorter one, or several pools",
			length, MaxBlocks, ipaddr.FormatRange(netipx.IPRangeFrom(ranges[0].From(), ranges[len(ranges)-1].To())))
	}
	g.n = last + 1
	return g, nil
}

// hostBits returns in how many bits the addresses of a block differ.
func (g grid) hostBits() int { return g.first.BitLen() - g.bits }

// offset returns how many blocks an address, which is of the same family, is behind the first one; fits is false where
// it lies before that, or the number is too large.
func (g grid) offset(a netip.Addr) (n uint64, fits bool) {
	if a.Less(g.first) {
		return 0, false
	}
	x, y := a.As16(), g.first.As16()
	lo, borrow := bits.Sub64(binary.BigEndian.Uint64(x[8:]), binary.BigEndian.Uint64(y[8:]), 0)
	hi, _ := bits.Sub64(binary.BigEndian.Uint64(x[:8]), binary.BigEndian.Uint64(y[:8]), borrow)
	h := g.hostBits()
	if h >= 64 {
		return hi >> (h - 64), true
	}
	return hi<<(64-h) | lo>>h, hi>>h == 0
}

// number returns the number of the block that an address lies in; ok is false where it lies in none.
func (g grid) number(a netip.Addr) (n uint64, ok bool) {
	if a.BitLen() != g.first.BitLen() {
		return 0, false
	}
	n, fits := g.offset(a)
	return n, fits && n < g.n
}

// block returns the block of a number, which is below n.
func (g grid) block(n uint64) netip.Prefix {
	h := g.hostBits()
	b := g.first.As16()
	var hi, lo uint64
	if h >= 64 {
		hi = n << (h - 64)
	} else {
		hi, lo = n>>(64-h), n<<h
	}
	sum, carry := bits.Add64(binary.BigEndian.Uint64(b[8:]), lo, 0)
	top, _ := bits.Add64(binary.BigEndian.Uint64(b[:8]), hi, carry)
	binary.BigEndian.PutUint64(b[8:], sum)
	binary.BigEndian.PutUint64(b[:8], top)
	a := netip.AddrFrom16(b)
	if g.first.Is4() {
		a = a.Unmap()
	}
	return netip.PrefixFrom(a, g.bits)
}
