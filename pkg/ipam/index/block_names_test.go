package index

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

// TestBlockNames: blocks have names that the API server takes; a pool whose own name is too long for that says so, and
// gives none.
func TestBlockNames(t *testing.T) {
	for name, tc := range map[string]struct {
		subnet string
		length int
		most   int
		called string
	}{
		"IPv4":       {"10.0.0.0/24", 27, 239, "POOL-10-0-0-224-27"},
		"IPv4, long": {"100.100.0.0/16", 24, 236, "POOL-100-100-255-0-24"},
		"IPv6":       {"fd00::/64", 112, 209, "POOL-fd00-0000-0000-0000-ffff-ffff-ffff-0000-112"},
	} {
		t.Run(name, func(t *testing.T) {
			available := []string{tc.subnet}
			if !netip.MustParsePrefix(tc.subnet).Addr().Is4() {
				available = []string{"fd00::/112"}
			}
			p := pool(t, strings.Repeat("p", tc.most), tc.subnet, available, splitInto(tc.length))
			if p, _ := indexOf(p).Pools.Get(p.Name); !p.Valid() {
				t.Errorf("with %d characters: %s", tc.most, p.Problem)
			}
			p.Name += "p"
			want := fmt.Sprintf("its name is too long for the names of its blocks, such as %s: "+
				"it may have %d characters", tc.called, tc.most)
			x := indexOf(p)
			if p, _ := x.Pools.Get(p.Name); p.Problem != want || x.Pools.Blocks(p.Name).All > 0 {
				t.Errorf("got %q, want %q", p.Problem, want)
			}
		})
	}
}
