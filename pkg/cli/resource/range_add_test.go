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
// pool has it, and what was there stays in front as it was written.
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
		for i, entry := range p.Spec.AvailableIPs {
			if a.List[i] != entry {
				t.Fatalf("entry %d was %s and is %s", i, entry, a.List[i])
			}
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
