package sim_test

import (
	"net/netip"
	"slices"

	"github.com/bcsnet/bcsnet/test/plugin"
)

// terms are what the pods of some slots say for each of their interfaces: the pool, and its subnet.
func terms() map[string]struct{ pool, subnet string } {
	return map[string]struct{ pool, subnet string }{"eth0": {"alpha", "10.1.0.0/16"}, "net1": {"beta", "fd00:2::/64"}}
}

// twoInterfaces reports whether the pods of the slot have two, with terms for each.
func (s *slot) twoInterfaces() bool { return s.machine == "" && s.number%8 == 2 }

// interfaces are those of the pods of the slot, in the order in which they are attached.
func (s *slot) interfaces() []string {
	if s.twoInterfaces() {
		return []string{"eth0", "net1"}
	}
	return []string{"eth0"}
}

// annotations are those of the pods of the slot.
func (s *slot) annotations() object {
	const prefix = "networkextension.bkbcs.tencent.com/"
	all := object{}
	if s.sticky() {
		all[prefix+"release-policy"] = "never"
	}
	if s.twoInterfaces() {
		all["k8s.v1.cni.cncf.io/networks"] = `[{"name":"storage","interface":"net1"}]`
		for ifName, term := range terms() {
			all[prefix+"pool."+ifName] = term.pool
		}
	}
	return all
}

// attach has a container ask for each of its interfaces. The answer is the first refusal, or has all addresses.
func (s *slot) attach(b *sandbox, send func(body any) (plugin.Answer, bool)) (all plugin.Answer, ok bool) {
	for _, ifName := range b.ifNames {
		a, ok := send(b.add(ifName))
		if !ok || a.Code != 0 {
			return a, ok
		}
		if len(b.ifNames) > 1 {
			s.verdict.Count("operation ADD of one of two interfaces")
			s.judgeTerm(b, ifName, a.Addrs())
		}
		a.Address.IPs = slices.Concat(all.Address.IPs, a.Address.IPs)
		all = a
	}
	return all, true
}

// judgeTerm: an interface has an address of the pool that its term names.
func (s *slot) judgeTerm(b *sandbox, ifName string, addrs []netip.Addr) {
	subnet := netip.MustParsePrefix(terms()[ifName].subnet)
	if len(addrs) != 1 || !subnet.Contains(addrs[0]) {
		s.verdict.Wrong("%s of container %.8s of %s has %v, not one address of %s, which its term names", ifName, b.id, b.pod,
			addrs, terms()[ifName].pool)
	}
}

// first are the addresses of eth0.
func (b *sandbox) first() []netip.Addr {
	if len(b.ifNames) == 1 {
		return b.addrs
	}
	return slices.DeleteFunc(slices.Clone(b.addrs), func(a netip.Addr) bool {
		return !netip.MustParsePrefix(terms()["eth0"].subnet).Contains(a)
	})
}
