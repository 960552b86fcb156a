package resource

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

func TestRemoveEntries(t *testing.T) {
	for name, test := range map[string]struct {
		list, remove, want []string
	}{
		"the middle of a range": {
			list: []string{"10.0.0.20-10.0.0.29"}, remove: []string{"10.0.0.25"},
			want: []string{"10.0.0.20-10.0.0.24", "10.0.0.26-10.0.0.29"},
		},
		"the sign of the range stays": {
			list: []string{"10.0.0.20~10.0.0.29"}, remove: []string{"10.0.0.21-10.0.0.28"},
			want: []string{"10.0.0.20", "10.0.0.29"},
		},
		"a tilde stays where a range is left": {
			list: []string{"10.0.0.20~10.0.0.29"}, remove: []string{"10.0.0.20"},
			want: []string{"10.0.0.21~10.0.0.29"},
		},
		"a CIDR becomes ranges": {
			list: []string{"10.0.0.16/28"}, remove: []string{"10.0.0.24/30"},
			want: []string{"10.0.0.16-10.0.0.23", "10.0.0.28-10.0.0.31"},
		},
		"other entries stay as they are written, in their order": {
			list: []string{"10.0.0.99", "10.0.0.64/30", "10.0.0.5~10.0.0.6"}, remove: []string{"10.0.0.5-10.0.0.6"},
			want: []string{"10.0.0.99", "10.0.0.64/30"},
		},
		"several entries with the same address": {
			list: []string{"10.0.0.5", "10.0.0.4-10.0.0.6"}, remove: []string{"10.0.0.5"},
			want: []string{"10.0.0.4", "10.0.0.6"},
		},
		"what cannot be read stays": {
			list: []string{"ten", "10.0.0.5"}, remove: []string{"10.0.0.0/24"},
			want: []string{"ten"},
		},
		"IPv6": {
			list: []string{"2001:db8::/64"}, remove: []string{"2001:db8::1"},
			want: []string{"2001:db8::", "2001:db8::2-2001:db8::ffff:ffff:ffff:ffff"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := RemoveEntries(test.list, SetOfEntries(test.remove))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestRemoveEntriesIsSubtraction: what is left is the set less what was removed, entries that are not
// touched stay, and no two neighbours of what is left of one entry could be one.
func TestRemoveEntriesIsSubtraction(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(anEntry(), 0, 8).Draw(t, "list")
		removed := SetOfEntries(rapid.SliceOfN(anEntry(), 1, 4).Draw(t, "remove"))
		left := RemoveEntries(list, removed)

		want := ipaddr.Subtract(SetOfEntries(list), removed)
		if got := SetOfEntries(left); !got.Equal(want) {
			t.Fatalf("left %s, want %s", ipaddr.FormatSet(got), ipaddr.FormatSet(want))
		}
		rest := left
		for _, entry := range list {
			r, err := ipaddr.ParseRange(entry)
			if err != nil {
				t.Fatal(err)
			}
			if !removed.OverlapsRange(r) {
				if len(rest) == 0 || rest[0] != entry {
					t.Fatalf("%s is not touched, but where it should be there is %v", entry, rest)
				}
				rest = rest[1:]
				continue
			}
			n := len(ipaddr.Subtract(ipaddr.SetOf(r), removed).Ranges())
			if n > len(rest) {
				t.Fatalf("%s should be %d entries, there are %v", entry, n, rest)
			}
			if strings.Contains(entry, "~") && slices.ContainsFunc(rest[:n],
				func(e string) bool { return strings.Contains(e, "-") }) {
				t.Fatalf("%s became %v", entry, rest[:n])
			}
			rest = rest[n:]
		}
		if len(rest) > 0 {
			t.Fatalf("%v is too much", rest)
		}
	})
}

// anEntry is an entry of an address list in a small subnet, in any notation.
func anEntry() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		addr := func(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(n)}) }
		a := rapid.IntRange(0, 63).Draw(t, "a")
		switch b := rapid.IntRange(a, 63).Draw(t, "b"); rapid.IntRange(0, 3).Draw(t, "notation") {
		case 0:
			return addr(a).String()
		case 1:
			return fmt.Sprintf("%s-%s", addr(a), addr(b))
		case 2:
			return fmt.Sprintf("%s~%s", addr(a), addr(b))
		default:
			bits := rapid.IntRange(26, 32).Draw(t, "bits")
			return netip.PrefixFrom(addr(a), bits).Masked().String()
		}
	})
}
