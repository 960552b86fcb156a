package usage

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bcsnet/bcsnet/pkg/cli/clitest"
	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
	"github.com/bcsnet/bcsnet/pkg/cli/view"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// cooled is an address that was given up, as view.NewMap is told of it while it rests.
func cooled(addr string) lease.Lease {
	return lease.Lease{Addr: netip.MustParseAddr(addr), Params: lease.Params{Pool: "blue"}}
}

func deleting(l lease.Lease) lease.Lease {
	l.Deleting = true
	return l
}

func TestHeatMap(t *testing.T) {
	const good = "10.0.0.11"
	v4 := clitest.Pool(t, "10.1.0.0/24", "10.1.0.1", "10.1.0.0/29", "10.1.0.66")
	tests := map[string]struct {
		pool  ipam.Pool
		taken []lease.Lease
		bits  int
		want  []string
	}{
		"free":         {v4, nil, 32, []string{"10.1.0.0   ......", "10.1.0.64   ."}},
		"taken":        {v4, []lease.Lease{clitest.Active("10.1.0.2", good), clitest.Reserved("10.1.0.66")}, 32, []string{"10.1.0.0   #.....", "10.1.0.64   r"}},
		"cooling":      {v4, []lease.Lease{cooled("10.1.0.2"), clitest.Active("10.1.0.3", good)}, 32, []string{"10.1.0.0   ~#....", "10.1.0.64   ."}},
		"no host":      {v4, []lease.Lease{clitest.Active("10.1.0.2", "")}, 32, []string{"10.1.0.0   #.....", "10.1.0.64   ."}},
		"foreign":      {v4, []lease.Lease{clitest.Active("10.1.0.2", "10.0.0.99")}, 32, []string{"10.1.0.0   x.....", "10.1.0.64   ."}},
		"deleting":     {v4, []lease.Lease{deleting(clitest.Active("10.1.0.2", good))}, 32, []string{"10.1.0.0   x.....", "10.1.0.64   ."}},
		"draining":     {v4, []lease.Lease{clitest.Active("10.1.0.200", good)}, 32, []string{"10.1.0.0   ......", "10.1.0.64   .", "10.1.0.192         x"}},
		"other family": {v4, []lease.Lease{clitest.Active("fd00::2", good)}, 32, []string{"10.1.0.0   ......", "10.1.0.64   ."}},
		"blocks of 4": {
			v4, []lease.Lease{clitest.Active("10.1.0.2", good), clitest.Active("10.1.0.4", good)}, 30,
			[]string{"10.1.0.0 +-              ."},
		},
		"one block": {v4, []lease.Lease{clitest.Active("10.1.0.2", good)}, 24, []string{"10.1.0.0 -"}},
		"smaller than a row": {
			clitest.Pool(t, "10.1.0.16/29", "10.1.0.17", "10.1.0.16/29"), []lease.Lease{clitest.Active("10.1.0.22", good)}, 32,
			[]string{"10.1.0.16   ....#"},
		},
		"end of the space": {
			clitest.Pool(t, "223.255.255.192/26", "223.255.255.193", "223.255.255.248/29"), nil, 32,
			[]string{"223.255.255.192 " + strings.Repeat(" ", 56) + "......."},
		},
		"sparse": {
			clitest.Pool(t, "fd00::/64", "fd00::1", "fd00::/64"), []lease.Lease{clitest.Active("fd00::2:41", good)}, 128,
			[]string{"fd00::2:40 .#" + strings.Repeat(".", 30)},
		},
		"sparse and empty": {clitest.Pool(t, "fd00::/64", "fd00::1", "fd00::/64"), nil, 76, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			m := view.NewMap(tc.pool, tc.taken, tc.bits)
			var got []string
			for _, r := range m.Rows {
				line := r.From.String() + " "
				for _, c := range r.Cells {
					line += mark(m, terminal.Terminal{}, c)
				}
				got = append(got, strings.TrimRight(line, " "))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestBlockBits(t *testing.T) {
	tests := map[string]struct {
		pool ipam.Pool
		want int
	}{
		"small":             {clitest.Pool(t, "10.1.0.0/24", "10.1.0.1", "10.1.0.0/24"), 32},
		"4,093 of 4,096":    {clitest.Pool(t, "10.1.0.0/20", "10.1.0.1", "10.1.0.0/20"), 32},
		"twice that":        {clitest.Pool(t, "10.0.0.0/19", "10.0.0.1", "10.0.0.0/19"), 31},
		"65,536":            {clitest.Pool(t, "10.1.0.0/16", "10.1.0.1", "10.1.0.0/16"), 28},
		"part of a subnet":  {clitest.Pool(t, "10.0.0.0/8", "10.0.0.1", "10.1.0.0/16"), 28},
		"all of IPv4's /8":  {clitest.Pool(t, "10.0.0.0/8", "10.0.0.1", "10.0.0.0/8"), 20},
		"the largest":       {clitest.Pool(t, "fd00::/64", "fd00::1", "fd00::/64"), 76},
		"few in IPv6":       {clitest.Pool(t, "fd00::/64", "fd00::1", "fd00::20-fd00::29"), 128},
		"65,536 in the /64": {clitest.Pool(t, "fd00::/64", "fd00::1", "fd00::1:0-fd00::1:ffff"), 124},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := view.BlockBits(tc.pool); got != tc.want {
				t.Errorf("got /%d, want /%d", got, tc.want)
			}
		})
	}
}

func TestShade(t *testing.T) {
	for share, want := range map[[2]int]int{
		{0, 16}: 0, {1, 16}: 1, {4, 16}: 1, {5, 16}: 2, {12, 16}: 3, {13, 16}: 4, {16, 16}: 4, {3, 0}: 4,
	} {
		if got := (view.Cell{Active: share[0], Usable: uint64(share[1])}).Shade(); got != want {
			t.Errorf("%d of %d: shade %d, want %d", share[0], share[1], got, want)
		}
	}
}

// TestHeatMapWidth: the map of an IPv4 pool fits into 80 columns.
func TestHeatMapWidth(t *testing.T) {
	p := clitest.Pool(t, "223.255.255.0/24", "223.255.255.1", "223.255.255.0/24")
	for _, bits := range []int{32, 28} {
		var b bytes.Buffer
		draw(view.NewMap(p, []lease.Lease{clitest.Active("223.255.255.20", "10.0.0.99")}, bits), &b,
			terminal.Terminal{Utf8: true})
		for line := range strings.Lines(b.String()) {
			if n := len([]rune(strings.TrimSpace(line))); n > 80 {
				t.Errorf("%d columns: %s", n, line)
			}
		}
	}
}
