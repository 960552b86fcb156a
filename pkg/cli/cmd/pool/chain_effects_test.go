package pool

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// Who leaves and joins the default chain by a change of a pool, in words; what begins with ! is grave.
func TestChainEffects(t *testing.T) {
	no := false
	pool := func(name string, change func(*v1.BCSNetPoolSpec)) ipam.Pool {
		o := &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.BCSNetPoolSpec{
			Net: "10.0.0.0", Mask: 24, Gateway: "10.0.0.1", AvailableIPs: []string{"10.0.0.9"},
		}}
		change(&o.Spec)
		return store.Pool(o)
	}
	open := pool("a", func(*v1.BCSNetPoolSpec) {})
	named := func(names ...string) ipam.Pool {
		return pool("a", func(s *v1.BCSNetPoolSpec) { s.Namespaces = names })
	}
	gold := pool("a", func(s *v1.BCSNetPoolSpec) {
		s.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}
	})
	all := pool("a", func(s *v1.BCSNetPoolSpec) {
		s.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "none", Operator: metav1.LabelSelectorOpDoesNotExist},
		}}
	})
	aside := pool("a", func(s *v1.BCSNetPoolSpec) { s.Default = &no })
	grows := pool("a", func(s *v1.BCSNetPoolSpec) {
		s.AvailableIPs, s.BlockSize, s.AutoAssign, s.Hosts = []string{"10.0.0.0/24"}, 27, true, []string{"10.1.0.1"}
	})
	byHand := pool("a", func(s *v1.BCSNetPoolSpec) { s.AvailableIPs, s.BlockSize = []string{"10.0.0.0/24"}, 27 })
	other := pool("b", func(s *v1.BCSNetPoolSpec) { s.Namespaces = []string{"bank"} })
	onHosts := func(name string, hosts ...string) ipam.Pool {
		return pool(name, func(s *v1.BCSNetPoolSpec) { s.Hosts = hosts })
	}
	there := func(namespaces string) string {
		return "namespaces " + namespaces + " draw from their blocks on the hosts of pool a, and are in the default chain only on others" +
			""
	}
	labels := map[string]map[string]string{"shop": {"tier": "gold"}, "bank": {}, "rich": {"tier": "gold"}}
	held := func(namespaces ...string) (out []lease.Lease) {
		for i, ns := range namespaces {
			l := lease.Lease{Addr: netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), State: lease.Active}
			l.Namespace = ns
			out = append(out, l)
		}
		return out
	}
	const (
		aLeaves = "pool a leaves the default chain: it serves only the namespaces that are bound to it"
		aJoins  = "!pool a joins the default chain: it serves every namespace without its own pools"
	)
	for name, tc := range map[string]struct {
		before, after ipam.Pool
		others        []ipam.Pool
		leases        []lease.Lease
		want          []string
	}{
		"nothing":   {before: open, after: open},
		"a new one": {after: open},
		"a new one for one": {
			after: named("shop"), want: []string{"namespace shop leaves the default chain: it draws only from its own pools"},
		},
		"a new one for one, for other hosts": {
			after:  pool("a", func(s *v1.BCSNetPoolSpec) { s.Namespaces, s.Hosts = []string{"shop"}, []string{"10.1.0.1"} }),
			others: []ipam.Pool{onHosts("c", "10.1.0.1", "10.1.0.2", "10.1.0.3")},
			want: []string{
				"namespace shop leaves the default chain: it draws only from its own pools",
				"!namespace shop gets no addresses on hosts that none of its own pools admits: 10.1.0.2-10.1.0.3",
			},
		},
		"bound to one that has another": {before: open, after: named("bank"), others: []ipam.Pool{other}, want: []string{aLeaves}},
		"bound by labels": {
			before: open, after: gold, leases: held("bank", "shop", "bank", ""),
			want: []string{
				aLeaves, "namespaces rich, shop leave the default chain: they draw only from their own pools",
				"2 addresses in use by namespaces that pool a no longer serves stay until their pods end: bank (2)",
			},
		},
		"from labels to a name": {
			before: gold, after: named("shop", "later"), leases: held("rich", "shop"),
			want: []string{
				"namespace later leaves the default chain: it draws only from its own pools",
				"namespace rich joins the default chain: it has no pools of its own",
				"1 address in use by namespaces that pool a no longer serves stays until its pod ends: rich (1)",
			},
		},
		"for all": {
			before: open, after: all,
			want: []string{aLeaves, "namespaces bank, rich, shop leave the default chain: they draw only from their own pools"},
		},
		"unbound": {
			before: named("shop", "bank"), after: open, others: []ipam.Pool{other},
			want: []string{aJoins, "namespace shop joins the default chain: it has no pools of its own"},
		},
		"set aside": {
			before: open, after: aside, leases: held("bank"),
			want: []string{
				"pool a leaves the default chain: it serves only requests that name it",
				"1 address in use by namespaces that pool a no longer serves stays until its pod ends: bank (1)",
			},
		},
		"a new one that gives blocks": {after: grows, others: []ipam.Pool{other}, want: []string{there("rich, shop")}},
		"a new one that gives blocks on hosts of others": {
			after: grows, others: []ipam.Pool{other, onHosts("c", "10.1.0.1"), onHosts("d", "10.1.0.1", "10.1.0.2")},
			want: []string{there("rich, shop"),
				"!pool c of the default chain serves no namespace on any of its hosts, which are hosts of pool a: there, every " +
					"namespace gets blocks automatically",
				"!pool d of the default chain serves no namespace on the hosts of pool a: there, every namespace gets blocks automatically",
			},
		},
		"a new one on hosts where another gives blocks": {
			after: onHosts("c", "10.1.0.1"), others: []ipam.Pool{grows},
			want: []string{"!pool c of the default chain serves no namespace on any of its hosts, which are hosts of pool a: there, every " +
				"namespace gets blocks automatically"},
		},
		"bound, as it gives blocks": {
			before: grows, after: pool("a", func(s *v1.BCSNetPoolSpec) {
				s.AvailableIPs, s.BlockSize, s.AutoAssign, s.Hosts = []string{"10.0.0.0/24"}, 27, true, []string{"10.1.0.1"}
				s.Namespaces = []string{"shop"}
			}), others: []ipam.Pool{other},
			want: []string{
				aLeaves, "namespace shop leaves the default chain: it draws only from its own pools",
				"namespace rich joins the default chain on hosts for which it has no pools of its own",
			},
		},
		"a new one that gives them by hand": {after: byHand},
		"split": {
			before: open, after: grows, want: []string{there("bank, rich, shop")},
		},
		"no longer set aside": {before: aside, after: open, want: []string{aJoins}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, e := range chainEffectsOf(tc.before, tc.after, tc.others, labels, tc.leases).say() {
				got = append(got, map[bool]string{true: "!"}[e.grave]+e.text)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if sameChains(tc.before, tc.after) && sameShadows(tc.before, tc.after, tc.others) && len(got) > 0 {
				t.Error("taken for the same namespaces")
			}
		})
	}
}
