package resource

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	"go4.org/netipx"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// Entry is an entry of an address list, with its text.
type Entry struct {
	netipx.IPRange
	Text string
}

// ParseEntries parses entries of an address list. The error is one of usage.
func ParseEntries(args []string) ([]Entry, error) {
	var out []Entry
	for _, arg := range args {
		arg = objectWord(arg)
		r, err := ipaddr.ParseRange(arg)
		if err != nil {
			return nil, notation(err)
		}
		out = append(out, Entry{r, strings.TrimSpace(arg)})
	}
	if a, b, found := ipaddr.FirstOverlap(RangesOf(out)); found {
		return nil, app.Usagef("%s and %s overlap", ipaddr.FormatRange(a), ipaddr.FormatRange(b)).
			WithHint("name every address once")
	}
	return out, nil
}

// ParseSets parses addresses, ranges and CIDRs, and drops duplicates. It fails above maxBulk addresses. The error is
// one of usage.
func ParseSets(args []string) ([]netip.Addr, error) {
	var ranges []netipx.IPRange
	for _, arg := range args {
		arg = AddressWord(arg)
		r, err := ipaddr.ParseRange(arg)
		if err != nil {
			end := strings.IndexAny(arg, "-~/")
			if _, first := ipaddr.ParseAddr(arg[:max(end, 0)]); first != nil { // not even the beginning of a range
				return nil, noAddress(arg)
			}
			return nil, notation(err)
		}
		ranges = append(ranges, r)
	}
	set := ipaddr.SetOf(ranges...)
	if err := NotTooMany(ipaddr.SizeOfSet(set)); err != nil {
		return nil, err
	}
	var out []netip.Addr
	for _, r := range set.Ranges() {
		out = append(out, AddressesOf([]Entry{{IPRange: r}})...)
	}
	return out, nil
}

// NotTooMany refuses more than maxBulk addresses.
func NotTooMany(n uint64) error {
	if n > maxBulk {
		return app.Usagef("these are %s: one call takes at most %d", humanize.Plural(n, "address"), maxBulk).
			WithHint("name them in several calls")
	}
	return nil
}

// notation returns the error for a malformed entry.
func notation(err error) error {
	return app.Usagef("%v", err).WithHint("write addresses as 10.0.0.20, 10.0.0.20-10.0.0.29 or 10.0.0.32/28")
}

// noAddress returns the error for a word that is not an address.
func noAddress(word string) error {
	return app.Usagef("%q is not an IP address", word).WithHint("by pod, container or name: bcsnetctl ip find TEXT")
}

// RangesOf returns the ranges of entries.
func RangesOf(entries []Entry) []netipx.IPRange {
	return app.Map(entries, func(e Entry) netipx.IPRange { return e.IPRange })
}

// RemoveEntries removes addresses from an address list. Entries without these addresses and invalid entries stay as
// they are. Others are replaced in place by as few ranges as possible, with the same sign between their ends.
func RemoveEntries(list []string, remove *netipx.IPSet) []string {
	var out []string
	for _, have := range list {
		r, err := ipaddr.ParseRange(have)
		if err != nil || !remove.OverlapsRange(r) {
			out = append(out, have)
			continue
		}
		for _, left := range ipaddr.Subtract(ipaddr.SetOf(r), remove).Ranges() {
			text := ipaddr.FormatRange(left)
			if strings.Contains(have, "~") {
				text = strings.Replace(text, "-", "~", 1)
			}
			out = append(out, text)
		}
	}
	return out
}

// SetOfEntries returns the addresses of an address list. It ignores invalid entries.
func SetOfEntries(list []string) *netipx.IPSet {
	var ranges []netipx.IPRange
	for _, have := range list {
		if r, err := ipaddr.ParseRange(have); err == nil {
			ranges = append(ranges, r)
		}
	}
	return ipaddr.SetOf(ranges...)
}

// Addresses formats the number of addresses in a set.
func Addresses(s *netipx.IPSet) string { return humanize.Plural(ipaddr.SizeOfSet(s), "address") }

// maxSpelled bounds the length of a set in a sentence.
const maxSpelled = 120

// Spell formats a set. It cuts a long one.
func Spell(s *netipx.IPSet) string {
	text := ipaddr.FormatSet(s)
	if len(text) <= maxSpelled {
		return text
	}
	return text[:strings.LastIndex(text[:maxSpelled], ",")+1] + " ..."
}

// Arguments formats a set as arguments of a command.
func Arguments(s *netipx.IPSet) string {
	return strings.ReplaceAll(Spell(s), ", ", " ")
}

// ParseHosts parses IPs of hosts and drops duplicates. The error is one of usage.
func ParseHosts(args []string) ([]netip.Addr, error) {
	return parseEach(args, func(arg string) error {
		return app.Usagef("host %q is not an IP address",
			arg).WithHint("a host is named by its IP; see them: bcsnetctl host list")
	})
}

// ParseAddresses parses single addresses and drops duplicates. The error is one of usage.
func ParseAddresses(args []string) ([]netip.Addr, error) {
	return parseEach(AddressWords(args), noAddress)
}

// AddressWord returns the address in a word. So that output can be piped into commands, the word may be an object's
// name, with or without its kind as -o name prints it, or an address with a prefix length as ip describe prints it. It
// returns other words, including CIDRs, unchanged.
func AddressWord(word string) string {
	if a, bits, err := ipaddr.ParseHost(word); err == nil && bits > 0 && bits < a.BitLen() {
		return a.String()
	}
	return objectWord(word)
}

// objectWord does the same for addresses of pools, but keeps a prefix length, which may belong to a mistyped CIDR.
func objectWord(word string) string {
	name := strings.TrimPrefix(strings.TrimSpace(word), "bcsnetip."+v1.GroupVersion.Group+"/")
	if a, err := ipaddr.ParseObjectName(name); err == nil {
		return a.String()
	}
	return word
}

// AddressWords applies AddressWord to each of the words.
func AddressWords(words []string) []string {
	out := make([]string, len(words))
	for i, word := range words {
		out[i] = AddressWord(word)
	}
	return out
}

func parseEach(args []string, wrong func(arg string) error) ([]netip.Addr, error) {
	var out []netip.Addr
	seen := map[netip.Addr]bool{}
	for _, arg := range args {
		a, err := ipaddr.ParseAddr(arg)
		if err != nil {
			return nil, wrong(arg)
		}
		if !seen[a] {
			out, seen[a] = append(out, a), true
		}
	}
	return out, nil
}

// SortAddrs sorts addresses in place.
func SortAddrs(all []netip.Addr) { slices.SortFunc(all, netip.Addr.Compare) }

// maxBulk bounds the addresses that one call reserves or releases.
const maxBulk = 4096

// FitLengths refuses an address with another prefix length than its pool, such as 10.0.0.5/25, because one of the two
// is mistyped. It reads the pools only if a word has a length.
func FitLengths(ctx context.Context, s *app.App, words []string) error {
	var pools []Pool
	for _, word := range words {
		a, bits, err := ipaddr.ParseHost(word)
		if err != nil || bits == 0 || bits == a.BitLen() {
			continue
		}
		if pools == nil {
			if pools, err = AllPools(ctx, s); err != nil {
				return err
			}
		}
		name, _ := IndexOf(s, pools).Pools.PoolOf(a)
		for _, p := range pools {
			if p.Name == name && int(p.Spec.Mask) != bits {
				return app.Usagef("%s has the length /%d, and pool %s of %s the length /%d", word, bits, name, a,
					p.Spec.Mask).
					WithHint("write %s", a)
			}
		}
	}
	return nil
}
