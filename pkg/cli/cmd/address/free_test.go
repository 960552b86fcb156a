package address

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

func poolOf(t *testing.T, available ...string) ipam.Pool {
	t.Helper()
	plan, err := ipam.NewPlan(ipam.PlanSpec{Net: "10.0.0.0", Mask: 8, Gateway: "10.0.0.1", Available: available})
	if err != nil {
		t.Fatal(err)
	}
	return ipam.Pool{Name: "blue", Plan: plan}
}

func rowsOf(addrs ...string) (rows []resource.LeaseRow) {
	for _, a := range addrs {
		rows = append(rows, resource.LeaseRow{Lease: &lease.Lease{Addr: netip.MustParseAddr(a), State: lease.Active}})
	}
	return rows
}

func TestFreeAddresses(t *testing.T) {
	type part struct {
		rows  []string
		below string
	}
	for name, test := range map[string]struct {
		available, elsewhere []string
		parts                []part
		want                 []string // those that are free are marked
	}{
		"no objects":             {available: []string{"10.0.0.8-10.0.0.10"}, parts: []part{{}}, want: []string{"10.0.0.8 free", "10.0.0.9 free", "10.0.0.10 free"}},
		"all have objects":       {available: []string{"10.0.0.8", "10.0.0.9"}, parts: []part{{rows: []string{"10.0.0.8", "10.0.0.9"}}}, want: []string{"10.0.0.8", "10.0.0.9"}},
		"between, two ranges":    {available: []string{"10.0.0.8-10.0.0.9", "10.0.0.20"}, parts: []part{{rows: []string{"10.0.0.9"}}}, want: []string{"10.0.0.8 free", "10.0.0.9", "10.0.0.20 free"}},
		"outside of the pool":    {available: []string{"10.0.0.8"}, parts: []part{{rows: []string{"10.0.0.7", "10.0.0.9"}}}, want: []string{"10.0.0.7", "10.0.0.8 free", "10.0.0.9"}},
		"in parts":               {available: []string{"10.0.0.8-10.0.0.10"}, parts: []part{{rows: []string{"10.0.0.8"}, below: "10.0.0.10"}, {rows: []string{"10.0.0.10"}}}, want: []string{"10.0.0.8", "10.0.0.9 free", "10.0.0.10"}},
		"held by another pool":   {available: []string{"10.0.0.8-10.0.0.9"}, elsewhere: []string{"10.0.0.9"}, parts: []part{{}}, want: []string{"10.0.0.8 free"}},
		"more than can be shown": {available: []string{"10.2.0.0/15"}, parts: []part{{rows: []string{"10.2.0.0"}}}, want: []string{"10.2.0.0"}},
	} {
		f := newFree(poolOf(t, test.available...))
		f.elsewhere = func() (map[netip.Addr]bool, error) {
			held := map[netip.Addr]bool{}
			for _, a := range test.elsewhere {
				held[netip.MustParseAddr(a)] = true
			}
			return held, nil
		}
		var got []string
		for _, p := range test.parts {
			var below netip.Addr
			if p.below != "" {
				below = netip.MustParseAddr(p.below)
			}
			rows, err := f.between(rowsOf(p.rows...), below)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range rows {
				text := r.Addr.String()
				if r.State == lease.Available {
					text += " free"
				}
				got = append(got, text)
			}
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestFreeUnlisted(t *testing.T) {
	f := newFree(poolOf(t, "10.2.0.0/15"))
	if _, err := f.between(rowsOf("10.2.0.0", "10.3.0.0", "10.9.0.0"), netip.Addr{}); err != nil {
		t.Fatal(err)
	}
	if got, want := f.unlisted(), uint64(1<<17-2); got != want {
		t.Errorf("%d are not listed, want %d", got, want)
	}
	if got := newFree(poolOf(t, "10.2.0.0/16")).unlisted(); got != 0 {
		t.Errorf("of a pool that is listed whole %d are not listed", got)
	}
}
