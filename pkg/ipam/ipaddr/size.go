package ipaddr

import (
	"encoding/binary"
	"math"
	"math/big"
	"net/netip"

	"go4.org/netipx"
)

// maxRange is the size of a /64.
//
//nolint:gochecknoglobals // a constant in all but name
var maxRange = new(big.Int).Lsh(big.NewInt(1), 64)

// sizeOf returns the number of addresses from a to b, both included, of one family.
func sizeOf(a, b netip.Addr) *big.Int {
	x, y := a.As16(), b.As16()
	n := new(big.Int).Sub(new(big.Int).SetBytes(y[:]), new(big.Int).SetBytes(x[:]))
	return n.Add(n, big.NewInt(1))
}

// Size returns the number of addresses in a range; it saturates at 2^64-1.
func Size(r netipx.IPRange) uint64 {
	n := sizeOf(r.From(), r.To())
	if !n.IsUint64() {
		return math.MaxUint64
	}
	return n.Uint64()
}

// SizeOfSet returns the number of addresses in a set; it saturates at 2^64-1.
func SizeOfSet(s *netipx.IPSet) uint64 {
	var n uint64
	for _, r := range s.Ranges() {
		n = AddSaturated(n, Size(r))
	}
	return n
}

// TooLarge reports whether a set has more addresses than a /64. Neighbouring entries of a list are one range, and
// several ranges can be more than a /64 together.
func TooLarge(set *netipx.IPSet) bool {
	if SizeOfSet(set) < math.MaxUint64 {
		return false
	}
	total := new(big.Int)
	for _, r := range set.Ranges() {
		total.Add(total, sizeOf(r.From(), r.To()))
	}
	return total.Cmp(maxRange) > 0
}

// AddSaturated returns a+b, or 2^64-1 where that is less.
func AddSaturated(a, b uint64) uint64 {
	if a+b < a {
		return math.MaxUint64
	}
	return a + b
}

// Sliced cuts a range into parts that can be written: ParseRange takes none that is larger than a /64, and neighbours
// that were written apart make one together.
func Sliced(r netipx.IPRange) (parts []netipx.IPRange) {
	for sizeOf(r.From(), r.To()).Cmp(maxRange) > 0 {
		last := netipx.PrefixLastIP(netip.PrefixFrom(r.From(), 64))
		parts = append(parts, netipx.IPRangeFrom(r.From(), last))
		r = netipx.IPRangeFrom(last.Next(), r.To())
	}
	return append(parts, r)
}

// Distance returns b-a, for addresses of one family that are less than 2^64 apart.
func Distance(a, b netip.Addr) uint64 {
	x, y := a.As16(), b.As16()
	return binary.BigEndian.Uint64(y[8:]) - binary.BigEndian.Uint64(x[8:])
}

// Advance returns a+n.
func Advance(a netip.Addr, n uint64) netip.Addr {
	if a.Is4() {
		b := a.As4()
		binary.BigEndian.PutUint32(b[:], binary.BigEndian.Uint32(b[:])+uint32(n))
		return netip.AddrFrom4(b)
	}
	b := a.As16()
	low := binary.BigEndian.Uint64(b[8:])
	if low+n < low {
		binary.BigEndian.PutUint64(b[:8], binary.BigEndian.Uint64(b[:8])+1)
	}
	binary.BigEndian.PutUint64(b[8:], low+n)
	return netip.AddrFrom16(b)
}
