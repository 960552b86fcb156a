package explain

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// MaxNamed is the number of things of one kind that a message spells out.
const MaxNamed = 5

// Share is the number of addresses that a host, namespace or claim has, the number that are on their way there, and the
// number that it may have.
type Share struct{ Has, Coming, Limit int }

// has returns "8", or "8 (and 1 on their way)". For a claim the text of its kind says what is on its way.
func (s Share) has() string {
	if s.Coming == 0 {
		return strconv.Itoa(s.Has)
	}
	return fmt.Sprintf("%d (and %d on their way)", s.Has, s.Coming)
}

// Stop is why a pool allocates nothing at all.
type Stop struct {
	Cause StopCause
	// Detail is the problem with the pool's spec, what a pool that is rebuilt waits for, the pool that one is carved
	// out of or whose blocks nobody may have yet, or what its parent is.
	Detail string
}

// StopCause is one of the causes of a Stop.
type StopCause uint8

// Causes of a Stop. The zero StopCause is that of a pool that does allocate addresses.
const (
	Serves StopCause = iota
	NotUsable
	Terminating
	Cordoned
	Rebuilding
	// Carving: the addresses are not handed over yet by the pool that they are carved out of.
	Carving
	// Splitting: the pool got its blocks after it allocated addresses itself, and gives none yet.
	Splitting
	// ByParent: the parent is cordoned or being deleted.
	ByParent
)

// Why returns in words why a pool allocates nothing.
func (s Stop) Why() string {
	switch s.Cause {
	case NotUsable:
		return "not usable: " + s.Detail
	case Terminating:
		return "being deleted"
	case Cordoned:
		return "cordoned"
	case Carving:
		return "still being carved out of pool " + s.Detail
	case Splitting:
		return "still being split into blocks"
	case ByParent:
		return "a child of " + s.Detail
	default:
		return "being rebuilt after its leases were lost, " + s.Detail
	}
}

// OfParent describes a parent that keeps its children from allocating addresses.
func (s Stop) OfParent(name string) string { return "pool " + name + ", which is " + s.Why() }

func (s Stop) cure() string {
	switch s.Cause {
	case Rebuilding:
		return "ask again: it takes five minutes at most; see: bcsnetctl pool describe {pool}"
	case Carving, Splitting:
		return "ask again; see what it waits for: bcsnetctl pool describe {pool}"
	case Cordoned:
		return "let it allocate addresses again: bcsnetctl pool uncordon {pool}"
	default:
		return "see: bcsnetctl pool describe {pool}"
	}
}

// PoolState are the counts of one pool that gave no address.
type PoolState struct {
	Pool   string
	Subnet netip.Prefix
	Stop   Stop
	// Free, Capacity, Active and Reserved count the pool's addresses; Cooling those that would be free but for the
	// cooldown, the first of which is free after NextFree.
	Free, Capacity   uint64
	Active, Reserved int
	// Gone counts those of the Active whose pods are gone as far as this replica has looked.
	Gone     int
	Cooling  uint64
	NextFree time.Duration
	// Blocks are those of a pool that is split into blocks, nil for any other.
	Blocks *BlockState
	// Elsewhere counts the addresses that other pools, which have them too, serve.
	Elsewhere map[string]uint64
	// Host is the share of the host, nil where it is not bounded; Namespaces are the shares of namespaces that are.
	Host       netip.Addr
	HostShare  *Share
	Namespaces []NamespaceShare
}

// NamespaceShare has the part of a pool that one namespace has.
type NamespaceShare struct {
	Namespace string
	Share
}

// gone reports whether addresses of the pools that were looked at are held for pods that are gone.
func (f *Facts) gone() bool {
	return slices.ContainsFunc(f.States, func(p PoolState) bool { return p.Gone > 0 })
}

func (f *Facts) states() string {
	var all []string
	for i := range f.States {
		all = append(all, f.States[i].String())
	}
	if f.More > 0 {
		all = append(all, fmt.Sprintf("and %d more pools", f.More))
	}
	return strings.Join(all, "; ")
}

// BlockState counts the blocks of a pool for a namespace that has none with a free address.
type BlockState struct {
	// Namespace that asks for a block, and how many it has.
	Namespace string
	Has       int
	// Length is the prefix length of the blocks. All is their number: Owned ones are a namespace's, Held ones
	// nobody's with addresses that somebody has, Void ones have no address.
	Length, All, Owned, Held, Void int
	// ByItself: the pool gives blocks without being told.
	ByItself bool
}

func (b *BlockState) text(p *PoolState) string {
	why := "has no free block"
	if !b.ByItself {
		why = "assigns no block automatically"
	}
	return fmt.Sprintf("pool %s (%s) %s: %s", p.Pool, p.Subnet, why, b)
}

// String returns the counts in words.
func (b *BlockState) String() string {
	text := fmt.Sprintf("of its %d blocks (/%d), %d are owned by namespaces", b.All, b.Length, b.Owned)
	if b.Has > 0 {
		text += fmt.Sprintf(", %d of them by %s", b.Has, b.Namespace)
	}
	if b.Held > 0 {
		text += fmt.Sprintf(", %d hold addresses of others", b.Held)
	}
	if b.Void > 0 {
		text += fmt.Sprintf(", %d have no usable address", b.Void)
	}
	if left := b.All - b.Owned - b.Held - b.Void; left > 0 && b.ByItself {
		text += fmt.Sprintf(", %d have no free address", left)
	}
	return text
}

// String returns the counts in words.
func (p *PoolState) String() string {
	if p.Stop.Cause != Serves {
		return fmt.Sprintf("pool %s is %s", p.Pool, p.Stop.Why())
	}
	if p.Blocks != nil {
		return p.Blocks.text(p)
	}
	active := fmt.Sprintf("%d active", p.Active)
	if p.Gone > 0 {
		active += fmt.Sprintf(" (%d for pods that are gone)", p.Gone)
	}
	text := fmt.Sprintf("pool %s (%s) has %d of %d addresses free, %s, %d reserved",
		p.Pool, p.Subnet, p.Free, p.Capacity, active, p.Reserved)
	if known := p.Free + uint64(p.Active+p.Reserved) + p.Cooling; p.Capacity > known {
		text += fmt.Sprintf(", %d otherwise in use", p.Capacity-known)
	}
	switch p.Cooling {
	case 0:
	case 1:
		text += ", 1 is cooling and free in " + FormatSpan(p.NextFree)
	default:
		text += fmt.Sprintf(", %d are cooling, the next is free in %s", p.Cooling, FormatSpan(p.NextFree))
	}
	text += p.elsewhere()
	if p.HostShare != nil {
		text += fmt.Sprintf(", host %s has %s of the %d that one host may have", p.Host, p.HostShare.has(),
			p.HostShare.Limit)
	}
	return text + p.namespaces()
}

func (p *PoolState) namespaces() string {
	var b strings.Builder
	for _, n := range p.Namespaces {
		fmt.Fprintf(&b, ", namespace %s has %s of the %d that it may have", n.Namespace, n.has(), n.Limit)
	}
	return b.String()
}

func (p *PoolState) elsewhere() string {
	var to []string
	for pool, n := range p.Elsewhere {
		to = append(to, fmt.Sprintf("%d served by pool %s, which has them, too", n, pool))
	}
	if len(to) == 0 {
		return ""
	}
	slices.Sort(to)
	return ", " + strings.Join(to, ", ")
}

// FirstFew names the first few of some things.
func FirstFew(all []string, what string) string {
	if n := len(all) - MaxNamed; n > 0 {
		return strings.Join(all[:MaxNamed], ", ") + ", and " + strconv.Itoa(n) + " more " + what
	}
	return strings.Join(all, ", ")
}

// FormatSpan writes a length of time in hours, minutes and seconds, of which a part counts as a whole.
func FormatSpan(d time.Duration) string {
	text := (d + time.Second - 1).Truncate(time.Second).String()
	for _, zero := range []string{"m0s", "h0m"} { // 1h0m0s is 1h
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-len("0s")]
		}
	}
	return text
}
