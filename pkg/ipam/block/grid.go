package block

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"net/netip"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// Max is the number of blocks that a pool may be split into.
const Max = 65536

// Grid cuts addresses into blocks of one length, which are numbered from 0 in address order.
type Grid struct {
	First netip.Addr
	Bits  int
	n     uint64
}

// NewGrid returns the aligned blocks from the first usable address to the last one. A range of usable addresses may
// begin or end inside a block.
func NewGrid(usable *netipx.IPSet, subnet netip.Prefix, length int) (g Grid, err error) {
	if length <= subnet.Bits() || length > subnet.Addr().BitLen() {
		return g, fmt.Errorf("blockSize %d is not between %d and %d: a block is a part of the subnet %s",
			length, subnet.Bits()+1, subnet.Addr().BitLen(), subnet)
	}
	ranges := usable.Ranges()
	if len(ranges) == 0 {
		return Grid{First: subnet.Addr(), Bits: length}, nil
	}
	g = Grid{First: netip.PrefixFrom(ranges[0].From(), length).Masked().Addr(), Bits: length}
	last, fits := g.offset(ranges[len(ranges)-1].To())
	if !fits || last >= Max {
		return Grid{}, fmt.Errorf("blockSize %d makes more than %d blocks of %s: use a shorter one, or several pools",
			length, Max, ipaddr.FormatRange(netipx.IPRangeFrom(ranges[0].From(), ranges[len(ranges)-1].To())))
	}
	g.n = last + 1
	return g, nil
}

// HostBits returns in how many bits the addresses of a block differ.
func (g Grid) HostBits() int { return g.First.BitLen() - g.Bits }

// offset returns how many blocks an address, which is of the same family, is behind the first one; fits is false if
// it lies before that, or the number is too large.
func (g Grid) offset(a netip.Addr) (n uint64, fits bool) {
	if a.Less(g.First) {
		return 0, false
	}
	x, y := a.As16(), g.First.As16()
	lo, borrow := bits.Sub64(binary.BigEndian.Uint64(x[8:]), binary.BigEndian.Uint64(y[8:]), 0)
	hi, _ := bits.Sub64(binary.BigEndian.Uint64(x[:8]), binary.BigEndian.Uint64(y[:8]), borrow)
	h := g.HostBits()
	if h >= 64 {
		return hi >> (h - 64), true
	}
	return hi<<(64-h) | lo>>h, hi>>h == 0
}

// NumberOf returns the number of the block that an address lies in; ok is false if it lies in none.
func (g Grid) NumberOf(a netip.Addr) (n uint64, ok bool) {
	if a.BitLen() != g.First.BitLen() {
		return 0, false
	}
	n, fits := g.offset(a)
	return n, fits && n < g.n
}

// Prefix returns the block of a number, which is below n.
func (g Grid) Prefix(n uint64) netip.Prefix {
	h := g.HostBits()
	b := g.First.As16()
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
	if g.First.Is4() {
		a = a.Unmap()
	}
	return netip.PrefixFrom(a, g.Bits)
}
