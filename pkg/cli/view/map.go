package view

import (
	"cmp"
	"maps"
	"math"
	"net/netip"
	"slices"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

const (
	// maxCells bounds the cells of a map, unless the user asks for smaller blocks.
	maxCells = 4096
	// maxSpread bounds the cells of a complete map; larger maps omit rows without held addresses.
	maxSpread = 1 << 16
)

// rowBits returns the binary logarithm of the cells per row, by the length of an address in bits. IPv6 addresses leave
// less room in 80 columns.
func rowBits(length int) int {
	if length > 32 {
		return 5
	}
	return 6
}

// Cell is one block of addresses, or a single one.
type Cell struct {
	Block netip.Prefix
	// Usable counts the addresses that the pool allocates; Active, Reserved and Problems count held ones.
	Usable                     uint64
	Active, Reserved, Problems int
	// Cooling counts addresses in cooldown.
	Cooling int
	// Who is the holder of a single address in use. Kept says for whom or why a single one is reserved.
	Who, Kept string
}

// Taken counts the addresses that are not free.
func (c Cell) Taken() int { return c.Active + c.Reserved + c.Problems + c.Cooling }

// CellState is the gravest state in a cell.
type CellState string

// States of a cell.
const (
	CellNone     CellState = "none"
	CellFree     CellState = "free"
	CellCooling  CellState = "cooling"
	CellReserved CellState = "reserved"
	CellActive   CellState = "active"
	CellProblem  CellState = "problem"
)

// State returns the gravest state in a cell.
func (c Cell) State() CellState {
	switch {
	case c.Problems > 0:
		return CellProblem
	case c.Active > 0:
		return CellActive
	case c.Reserved > 0:
		return CellReserved
	case c.Cooling > 0:
		return CellCooling
	case c.Usable > 0:
		return CellFree
	default:
		return CellNone
	}
}

// Shades is the number of shades besides free.
const Shades = 4

// Shade returns the shade for the taken share: 0 if nothing is taken, Shades for the last quarter. More may be taken
// than the pool allocates, if addresses drain.
func (c Cell) Shade() int {
	if c.Taken() == 0 {
		return 0
	}
	share := float64(c.Taken()) / math.Max(float64(c.Usable), float64(c.Taken()))
	return int(math.Ceil(share * Shades))
}

// Row is one line of cells.
type Row struct {
	From  netip.Addr
	Cells []Cell
}

// Map shows which addresses of a pool are taken.
type Map struct {
	Pool string
	// Bits is the prefix length of a block. Single: a block is one address.
	Bits   int
	Single bool
	// PerRow is the maximum number of cells per row.
	PerRow int
	Rows   []Row
	// Sparse: rows without held addresses are left out.
	Sparse bool
	// Usable counts the addresses that the pool allocates, filled the taken ones among them.
	Usable, filled uint64
	// Active, Reserved and Cooling count normal addresses. Problems has all others, sorted.
	Active, Reserved, Cooling int
	Problems                  []lease.Lease
}

// Free counts the free addresses.
func (m Map) Free() int64 { return int64(min(m.Usable-m.filled, math.MaxInt64)) }

// Within returns a pool that has only the addresses in a prefix.
func Within(p ipam.Pool, within netip.Prefix) ipam.Pool {
	p.Plan.Usable = ipaddr.Intersect(p.Plan.Usable, ipaddr.SetOf(netipx.RangeOfPrefix(within)))
	p.Plan.Subnet = within
	return p
}

// BlockBits chooses the prefix length of blocks: single addresses if there are at most maxCells.
func BlockBits(p ipam.Pool) int {
	longest := p.Plan.Subnet.Addr().BitLen()
	if ipaddr.SizeOfSet(p.Plan.Usable) <= maxCells {
		return longest
	}
	for bits := longest; bits > p.Plan.Subnet.Bits(); bits-- {
		if spread(p, bits) <= maxCells {
			return bits
		}
	}
	return p.Plan.Subnet.Bits()
}

// spread bounds the number of blocks that the ranges of a pool overlap.
func spread(p ipam.Pool, bits int) uint64 {
	var n uint64
	shift := p.Plan.Subnet.Addr().BitLen() - bits
	for _, r := range p.Plan.Usable.Ranges() {
		n += 1 + (ipaddr.Size(r)-1)>>shift
		if n > maxSpread {
			return n
		}
	}
	return n
}

// NewMap makes the map of a pool in blocks of a prefix length. taken has the held addresses and those in cooldown.
func NewMap(p ipam.Pool, taken []lease.Lease, bits int) Map {
	longest := p.Plan.Subnet.Addr().BitLen()
	m := Map{
		Pool: p.Name, Bits: bits, Single: bits == longest, PerRow: 1 << rowBits(longest),
		Usable: ipaddr.SizeOfSet(p.Plan.Usable),
	}
	m.Sparse = spread(p, bits) > maxSpread || longest > 32 && m.Usable > maxSpread
	length := max(0, bits-rowBits(longest), min(bits, p.Plan.Subnet.Bits()))
	rowOf := func(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, length).Masked() }
	rows := map[netip.Prefix]map[netip.Prefix]*Cell{}
	for _, l := range taken {
		if l.Addr.BitLen() != longest {
			continue // of an earlier subnet of the pool
		}
		row, block := rowOf(l.Addr), netip.PrefixFrom(l.Addr, bits).Masked()
		if rows[row] == nil {
			rows[row] = map[netip.Prefix]*Cell{}
		}
		if rows[row][block] == nil {
			rows[row][block] = &Cell{}
		}
		m.count(rows[row][block], p, l)
	}
	if !m.Sparse {
		for _, r := range p.Plan.Usable.Ranges() {
			for row := rowOf(r.From()); row.IsValid() && row.Addr().Compare(r.To()) <= 0; row = after(row) {
				if rows[row] == nil {
					rows[row] = map[netip.Prefix]*Cell{}
				}
			}
		}
	}
	first := func(a, b netip.Prefix) int { return cmp.Or(a.Addr().Compare(b.Addr()), a.Bits()-b.Bits()) }
	for _, row := range slices.SortedFunc(maps.Keys(rows), first) {
		m.Rows = append(m.Rows, m.row(p, row, rows[row]))
	}
	return m
}

// count adds a lease to its cell.
func (m *Map) count(c *Cell, p ipam.Pool, l lease.Lease) {
	switch reason := l.Reservation().Reason; {
	case l.State == lease.Active:
		c.Who = l.Who()
	case l.IsRetained():
		c.Kept = resource.RetainedText(l)
	case l.IsQuarantined():
		c.Kept = resource.StatusQuarantined
	default:
		c.Kept = reason
	}
	if p.Plan.Usable.Contains(l.Addr) {
		m.filled++
	}
	switch {
	case l.State == lease.Available:
		c.Cooling++
		m.Cooling++
	case Troubled(p, l):
		c.Problems++
		m.Problems = append(m.Problems, l)
	case l.State == lease.Active:
		c.Active++
		m.Active++
	default:
		c.Reserved++
		m.Reserved++
	}
}

// Troubled reports whether an address drains, is being deleted, or is held on a host that may not draw from the pool.
func Troubled(p ipam.Pool, l lease.Lease) bool {
	return !p.Usable().Contains(l.Addr) || l.Deleting || l.State == lease.Active && l.Host.IsValid() && !p.Draws(l.Host)
}

// row returns a row of cells. held has its cells with held addresses.
func (m *Map) row(p ipam.Pool, row netip.Prefix, held map[netip.Prefix]*Cell) Row {
	usable := ipaddr.Intersect(p.Plan.Usable, ipaddr.SetOf(netipx.RangeOfPrefix(row)))
	out := Row{From: row.Addr()}
	for i := range 1 << (m.Bits - row.Bits()) {
		c := Cell{}
		block := nth(row, m.Bits, i)
		if h := held[block]; h != nil {
			c = *h
		}
		c.Block = block
		switch {
		case !m.Single:
			c.Usable = ipaddr.SizeOfSet(ipaddr.Intersect(usable, ipaddr.SetOf(netipx.RangeOfPrefix(block))))
		case usable.Contains(block.Addr()):
			c.Usable = 1
		}
		out.Cells = append(out.Cells, c)
	}
	return out
}

// nth returns the i-th block of a row.
func nth(row netip.Prefix, bits, i int) netip.Prefix {
	bytes := row.Addr().AsSlice()
	for at := bits - 1; at >= row.Bits(); at-- {
		if i&1 == 1 {
			bytes[at/8] |= 1 << (7 - at%8)
		}
		i >>= 1
	}
	a, _ := netip.AddrFromSlice(bytes) // as long as it was
	return netip.PrefixFrom(a, bits)
}

// after returns the next prefix of the same length; invalid after the last one.
func after(p netip.Prefix) netip.Prefix {
	next := netipx.PrefixLastIP(p).Next()
	if !next.IsValid() {
		return netip.Prefix{}
	}
	return netip.PrefixFrom(next, p.Bits())
}
