package resource

import (
	"errors"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// TestAddEntriesIsUnion: what was added is in the pool and was not before, nothing else changed, no other
// pool has it, and what was there stays in front as it was written, but for ranges that an entry continues.
func TestAddEntriesIsUnion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pool := func(name string) *v1.BCSNetPool {
			p := &v1.BCSNetPool{Spec: v1.BCSNetPoolSpec{
				Net: "10.0.0.0", Mask: 24, Gateway: "10.0.0.1",
				AvailableIPs: rapid.SliceOfN(anEntry(), 0, 5).Draw(t, name),
				ExcludeIPs:   rapid.SliceOfN(anEntry(), 0, 1).Draw(t, name+" excluded"),
			}}
			p.Name = name
			return p
		}
		p, other := pool("p"), store.Pool(pool("other"))
		entries, err := ParseEntries(rapid.SliceOfN(anEntry(), 1, 3).Draw(t, "add"))
		if err != nil {
			t.Skip("the new entries overlap each other")
		}
		before, err := ipam.NewPlan(store.PlanSpec(p))
		if err != nil {
			t.Fatal(err)
		}
		a, err := AddEntries(p, []ipam.Pool{other}, entries)
		if err != nil {
			var f *app.Failure
			if !errors.As(err, &f) || f.Reason == "" {
				t.Fatalf("an error without a reason: %v", err)
			}
			return
		}
		stay := slices.DeleteFunc(slices.Clone(p.Spec.AvailableIPs), func(entry string) bool { return continued(entry, entries) })
		kept := slices.DeleteFunc(slices.Clone(a.List), func(entry string) bool { return !slices.Contains(stay, entry) })
		if !slices.Equal(stay, kept) {
			t.Fatalf("of %q there is %q", stay, a.List)
		}
		next := p.DeepCopy()
		next.Spec.AvailableIPs = a.List
		after, err := ipam.NewPlan(store.PlanSpec(next))
		if err != nil {
			t.Fatal(err)
		}
		want := ipaddr.SetOf(slices.Concat(before.Usable.Ranges(), a.Added.Ranges())...)
		if !after.Usable.Equal(want) {
			t.Fatalf("usable %s, want %s", ipaddr.FormatSet(after.Usable), ipaddr.FormatSet(want))
		}
		if shared := ipaddr.Intersect(a.Added, other.Plan.Usable); len(shared.Ranges()) > 0 {
			t.Fatalf("the other pool has %s", ipaddr.FormatSet(shared))
		}
		for _, e := range entries {
			for _, r := range ipaddr.Subtract(ipaddr.SetOf(e.IPRange), after.Usable).Ranges() {
				for addr := r.From(); addr.Compare(r.To()) <= 0; addr = addr.Next() {
					if !unusable(next, addr) {
						t.Fatalf("%s of %s is missing", addr, e.Text)
					}
				}
			}
		}
	})
}

// continued reports whether a range is continued by entries, or by those that continue these.
func continued(text string, entries []Entry) bool {
	all := SetOfEntries([]string{text})
	for range entries {
		for _, e := range entries {
			if r := ipaddr.SetOf(append(all.Ranges(), e.IPRange)...); len(r.Ranges()) == 1 {
				all = r
			}
		}
	}
	return !all.Equal(SetOfEntries([]string{text}))
}

// TestAddEntriesJoinsNeighbours: an entry that continues a range makes it longer, and one that closes a gap joins two.
func TestAddEntriesJoinsNeighbours(t *testing.T) {
	tests := map[string]struct {
		have, add []string
		want      []string
	}{
		"behind":            {[]string{"10.0.0.20-10.0.0.29"}, []string{"10.0.0.30-10.0.0.39"}, []string{"10.0.0.20-10.0.0.39"}},
		"before":            {[]string{"10.0.0.20-10.0.0.29"}, []string{"10.0.0.10-10.0.0.19"}, []string{"10.0.0.10-10.0.0.29"}},
		"one":               {[]string{"10.0.0.20-10.0.0.29"}, []string{"10.0.0.30"}, []string{"10.0.0.20-10.0.0.30"}},
		"one beside one":    {[]string{"10.0.0.20"}, []string{"10.0.0.21"}, []string{"10.0.0.20", "10.0.0.21"}},
		"CIDRs":             {[]string{"10.0.0.32/28"}, []string{"10.0.0.48/28"}, []string{"10.0.0.32-10.0.0.63"}},
		"apart":             {[]string{"10.0.0.20-10.0.0.29"}, []string{"10.0.0.31-10.0.0.39"}, []string{"10.0.0.20-10.0.0.29", "10.0.0.31-10.0.0.39"}},
		"a gap":             {[]string{"10.0.0.20-10.0.0.29", "10.0.0.5", "10.0.0.40-10.0.0.49"}, []string{"10.0.0.30-10.0.0.39"}, []string{"10.0.0.20-10.0.0.49", "10.0.0.5"}},
		"a gap, the higher": {[]string{"10.0.0.40-10.0.0.49", "10.0.0.5", "10.0.0.20-10.0.0.29"}, []string{"10.0.0.30-10.0.0.39"}, []string{"10.0.0.20-10.0.0.49", "10.0.0.5"}},
		"new ones in a row": {nil, []string{"10.0.0.20-10.0.0.29", "10.0.0.30-10.0.0.39"}, []string{"10.0.0.20-10.0.0.39"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := &v1.BCSNetPool{Spec: v1.BCSNetPoolSpec{Net: "10.0.0.0", Mask: 24, Gateway: "10.0.0.1", AvailableIPs: tc.have}}
			entries, err := ParseEntries(tc.add)
			if err != nil {
				t.Fatal(err)
			}
			a, err := AddEntries(p, nil, entries)
			if err != nil || !slices.Equal(a.List, tc.want) {
				t.Errorf("%q, %v", a.List, err)
			}
		})
	}
	six := []string{"2001:db8:0:0:ffff:ffff:ffff:fff0-2001:db8:0:0:ffff:ffff:ffff:ffff"}
	if got := joined(slices.Clone(six), Entry{ipaddr.SetOf(SetOfEntries([]string{"2001:db8:0:1::/112"}).Ranges()...).Ranges()[0], "next"}); len(got) != 2 {
		t.Errorf("a range beyond one /64: %q", got)
	}
}

// unusable addresses are those that no pool like p hands out.
func unusable(p *v1.BCSNetPool, a netip.Addr) bool {
	return SetOfEntries(p.Spec.ExcludeIPs).Contains(a) || a == netip.MustParseAddr(p.Spec.Gateway) ||
		a == netip.MustParseAddr("10.0.0.0") || a == netip.MustParseAddr("10.0.0.255")
}

func TestAddEntriesToAPoolThatIsWrong(t *testing.T) {
	p := &v1.BCSNetPool{Spec: v1.BCSNetPoolSpec{
		Net: "10.0.0.0", Mask: 24, Gateway: "10.0.0.1", AvailableIPs: []string{"10.9.0.1"},
	}}
	p.Name = "p"
	entries, err := ParseEntries([]string{"10.0.0.5"})
	if err != nil {
		t.Fatal(err)
	}
	var f *app.Failure
	if _, err := AddEntries(p, nil, entries); !errors.As(err, &f) || f.Reason != app.ReasonPoolInvalid {
		t.Errorf("got %v, want %s", err, app.ReasonPoolInvalid)
	}
}
