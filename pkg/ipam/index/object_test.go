package index

import (
	"net/netip"
	"testing"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// An object names its pool. The namespaces and quotas of that hold for the object's namespace, and its hosts do not;
// what other pools would give the namespace does not matter.
func TestPickForObject(t *testing.T) {
	host := map[netip.Addr]struct{}{netip.MustParseAddr("10.9.0.1"): {}}
	pool := func(name, net string, change func(*ipam.Pool)) ipam.Pool {
		plan, err := ipam.NewPlan(ipam.PlanSpec{Net: net + ".0", Mask: 24, Available: []string{net + ".1-" + net + ".9"}})
		if err != nil {
			t.Fatal(err)
		}
		p := ipam.Pool{Name: name, Plan: plan}
		if change != nil {
			change(&p)
		}
		return p
	}
	x := New()
	x.Pools.SetPool(pool("machines", "10.1.0", nil))
	x.Pools.SetPool(pool("bound", "10.2.0", func(p *ipam.Pool) {
		p.Hosts, p.Namespaces = host, map[string]struct{}{"fleet": {}}
	}))
	x.Pools.SetPool(pool("few", "10.3.0", func(p *ipam.Pool) { p.NotDefault, p.MaxPerNamespace = true, 1 }))
	x.Pools.SetPool(pool("growing", "10.4.0", func(p *ipam.Pool) { p.Hosts, p.BlockSize, p.AutoAssign = host, 30, true }))
	want := func(namespace, name, pool string, reason ipam.Reason) {
		t.Helper()
		picks, refusal := x.Pick(ipam.PickRequest{
			Owner: "capi/" + namespace + "/" + name, Namespace: namespace, Pools: []string{pool}, Ahead: true, Key: name,
		}, now)
		switch {
		case refusal == nil && reason != "":
			t.Errorf("%s/%s got %v of %s", namespace, name, picks[0].Current.Addr, pool)
		case refusal != nil && refusal.Reason != reason:
			t.Errorf("%s/%s: %s: %v, want %q", namespace, name, refusal.Reason, refusal, reason)
		}
	}
	want("shop", "a", "machines", "")
	want("shop", "b", "bound", ipam.ReasonNamespaceNotServed)
	want("fleet", "c", "bound", "")
	want("shop", "d", "few", "")
	want("shop", "e", "few", ipam.ReasonQuotaExceeded)
	want("mart", "f", "few", "")
	want("shop", "g", "growing", "")
	want("shop", "h", "nowhere", ipam.ReasonNotFound)
}
