package usage

import (
	"cmp"
	"maps"
	"math"
	"net/netip"
	"slices"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

const (
	// maxCells is how many cells a heat map has at most unless somebody asks for more.
	maxCells = 4096
	// maxSpread is how many cells a heat map may have; beyond that only rows that hold something are shown.
	maxSpread = 1 << 16
)

// rowBits returns the binary logarithm of the cells in a row of a heat map, by the length of an address. An IPv6
// address before a row leaves less room in 80 columns.
func rowBits(length int) int {
	if length > 32 {
		return 5
	}
	return 6
}

// heatCell is one block of addresses, at best a single one.
type heatCell struct {
	block netip.Prefix
	// usable are the addresses that the pool hands out; the others are those that are not Available.
	usable                     uint64
	active, reserved, problems int
	// cooling are free, but for the pool's cooldown.
	cooling int
	// who has the address, where the block is a single one.
	who string
}

func (c heatCell) taken() int { return c.active + c.reserved + c.problems + c.cooling }

// heatRow is one line of cells.
type heatRow struct {
	from  netip.Addr
	cells []heatCell
}

// heatMap shows which addresses of a pool are taken.
type heatMap struct {
	pool string
	// bits is the prefix length of a block.
	bits   int
	single bool
	// perRow is how many cells a row has at most.
	perRow int
	rows   []heatRow
	// sparse: rows that hold nothing are left out.
	sparse bool
	// usable are the addresses that the pool hands out, and filled those of them that are taken.
	usable, filled uint64
	// active, reserved and cooling count what is as it should be; problems is the rest, in order.
	active, reserved, cooling int
	problems                  []lease.Lease
}

func (m heatMap) free() int64 { return int64(min(m.usable-m.filled, math.MaxInt64)) }

// blockBits chooses the size of the blocks: single addresses where they are few enough.
func blockBits(p ipam.Pool) int {
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

// spread counts how many blocks of a size the ranges of a pool reach into, at most.
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

// newHeatMap draws up the map of a pool from the addresses that are taken or rest, in blocks of a prefix length.
func newHeatMap(p ipam.Pool, taken []lease.Lease, bits int) heatMap {
	longest := p.Plan.Subnet.Addr().BitLen()
	m := heatMap{
		pool: p.Name, bits: bits, single: bits == longest, perRow: 1 << rowBits(longest),
		usable: ipaddr.SizeOfSet(p.Plan.Usable),
	}
	m.sparse = spread(p, bits) > maxSpread || longest > 32 && m.usable > maxSpread
	length := max(0, bits-rowBits(longest), min(bits, p.Plan.Subnet.Bits()))
	rowOf := func(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, length).Masked() }
	rows := map[netip.Prefix]map[netip.Prefix]*heatCell{}
	for _, l := range taken {
		if l.Addr.BitLen() != longest {
			continue // of a subnet that the pool had before
		}
		row, block := rowOf(l.Addr), netip.PrefixFrom(l.Addr, bits).Masked()
		if rows[row] == nil {
			rows[row] = map[netip.Prefix]*heatCell{}
		}
		if rows[row][block] == nil {
			rows[row][block] = &heatCell{}
		}
		m.count(rows[row][block], p, l)
	}
	if !m.sparse {
		for _, r := range p.Plan.Usable.Ranges() {
			for row := rowOf(r.From()); row.IsValid() && row.Addr().Compare(r.To()) <= 0; row = after(row) {
				if rows[row] == nil {
					rows[row] = map[netip.Prefix]*heatCell{}
				}
			}
		}
	}
	first := func(a, b netip.Prefix) int { return cmp.Or(a.Addr().Compare(b.Addr()), a.Bits()-b.Bits()) }
	for _, row := range slices.SortedFunc(maps.Keys(rows), first) {
		m.rows = append(m.rows, m.row(p, row, rows[row]))
	}
	return m
}

// count enters a lease into its cell.
func (m *heatMap) count(c *heatCell, p ipam.Pool, l lease.Lease) {
	if l.State == lease.Active {
		c.who = l.Who()
	}
	if p.Plan.Usable.Contains(l.Addr) {
		m.filled++
	}
	switch {
	case l.State == lease.Available:
		c.cooling++
		m.cooling++
	case troubled(p, l):
		c.problems++
		m.problems = append(m.problems, l)
	case l.State == lease.Active:
		c.active++
		m.active++
	default:
		c.reserved++
		m.reserved++
	}
}

// troubled reports whether an address drains, is being deleted, or is held by a host that may not draw from the pool.
func troubled(p ipam.Pool, l lease.Lease) bool {
	return !p.Usable().Contains(l.Addr) || l.Deleting || l.State == lease.Active && l.Host.IsValid() && !p.Draws(l.Host)
}

// row returns a line of cells, with those that hold something.
func (m *heatMap) row(p ipam.Pool, row netip.Prefix, held map[netip.Prefix]*heatCell) heatRow {
	usable := ipaddr.Intersect(p.Plan.Usable, ipaddr.SetOf(netipx.RangeOfPrefix(row)))
	out := heatRow{from: row.Addr()}
	for i := range 1 << (m.bits - row.Bits()) {
		c := heatCell{}
		block := nth(row, m.bits, i)
		if h := held[block]; h != nil {
			c = *h
		}
		c.block = block
		switch {
		case !m.single:
			c.usable = ipaddr.SizeOfSet(ipaddr.Intersect(usable, ipaddr.SetOf(netipx.RangeOfPrefix(block))))
		case usable.Contains(block.Addr()):
			c.usable = 1
		}
		out.cells = append(out.cells, c)
	}
	return out
}

// nth returns the block of a length at place i of a row.
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

// after returns the next prefix of a length, invalid behind the last.
func after(p netip.Prefix) netip.Prefix {
	next := netipx.PrefixLastIP(p).Next()
	if !next.IsValid() {
		return netip.Prefix{}
	}
	return netip.PrefixFrom(next, p.Bits())
}
