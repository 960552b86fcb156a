package ipam

import (
	"strings"
	"testing"

	"go4.org/netipx"
)

// FuzzNewPlan: of any spec the addresses lie in the subnet and are neither its gateway nor excluded, and so are those
// that are written singly and as ranges.
func FuzzNewPlan(f *testing.F) {
	f.Add("10.0.0.0", 24, "10.0.0.1", "10.0.0.5,10.0.0.9-10.0.0.20,10.0.0.32/28", "10.0.0.12")
	f.Add("2001:db8::", 64, "2001:db8::1", "2001:db8::/64", "2001:db8::10~2001:db8::20")
	f.Add("10.0.0.0", 30, "", "10.0.0.0/30", "")
	f.Add("10.0.0.1", 33, "::", "-,~,/", ",")
	f.Fuzz(func(t *testing.T, net string, mask int, gateway, available, exclude string) {
		p, err := NewPlan(PlanSpec{
			Net: net, Mask: mask, Gateway: gateway, Available: strings.Split(available, ","),
			Exclude: strings.Split(exclude, ","),
		})
		if err != nil {
			return
		}
		for _, r := range p.Usable.Ranges() {
			if !p.Subnet.Contains(r.From()) || !p.Subnet.Contains(r.To()) || r.Contains(p.Gateway) ||
				p.Excluded.OverlapsRange(r) {
				t.Errorf("%s is usable in %s with gateway %s, without %v", r, p.Subnet, p.Gateway, p.Excluded.Ranges())
			}
		}
		for _, part := range [][]netipx.IPRange{p.Single.Ranges(), p.Ranged.Ranges()} {
			for _, r := range part {
				if !p.Usable.ContainsRange(r) {
					t.Errorf("%s is written and not usable", r)
				}
			}
		}
	})
}
