package netconf

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// Wish has the requests of a pod or of the author of its network attachment.
type Wish struct {
	// Addrs are the requested addresses, at most one of each family.
	Addrs []netip.Addr
	// Lengths are the Addrs with a prefix length, which must equal their pool's.
	Lengths []netip.Prefix
	// MAC is the MAC that the interface has or must get; empty if none is requested.
	MAC string
}

// IPAddr returns the addresses in the form of a request. The allocator compares their prefix lengths with the pools'.
func (w Wish) IPAddr() string {
	var texts []string
	for _, a := range w.Addrs {
		text := a.String()
		if i := slices.IndexFunc(w.Lengths, func(p netip.Prefix) bool { return p.Addr() == a }); i >= 0 {
			text = w.Lengths[i].String()
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ",")
}

// parseWish parses the requests in runtimeConfig (the capabilities ips and mac, which carry Multus' annotation),
// args.cni and CNI_ARGS. If several of these have a value, the values must be equal.
func parseWish(top object, asked argsWish) (w Wish) {
	runtimeConfig := top.inner("runtimeConfig")
	convention := top.inner("args").inner("cni")
	for _, from := range []struct {
		field string
		ips   []string
	}{
		{"runtimeConfig.ips", read[[]string](runtimeConfig, "ips")},
		{"args.cni.ips", read[[]string](convention, "ips")},
		{FieldArgs, asked.ips},
	} {
		addrs := w.parseAddrs(from.field, from.ips, top.problems)
		switch {
		case len(addrs) == 0:
		case w.Addrs == nil:
			w.Addrs = addrs
		case !sameAddrs(w.Addrs, addrs):
			top.problems.add(from.field, "it asks for %v, and another field for %v", addrs, w.Addrs)
		}
	}
	for _, from := range []struct{ field, mac string }{
		{"runtimeConfig.mac", read[string](runtimeConfig, "mac")},
		{"args.cni.mac", read[string](convention, "mac")},
		{FieldArgs, asked.mac},
	} {
		if from.mac == "" {
			continue
		}
		mac, err := net.ParseMAC(from.mac)
		switch {
		case err != nil || len(mac) != 6 || mac[0]&1 != 0:
			top.problems.add(from.field, "%q is not the MAC of one Ethernet interface", clip(from.mac))
		case w.MAC == "":
			w.MAC = mac.String()
		case w.MAC != mac.String():
			top.problems.add(from.field, "it asks for the MAC %s, and another field for %s", mac, w.MAC)
		}
	}
	return w
}

// parseAddrs parses addresses, and adds their prefix lengths.
func (w *Wish) parseAddrs(field string, texts []string, p *problems) (all []netip.Addr) {
	for i, text := range texts {
		name := fmt.Sprintf("%s[%d]", field, i)
		text = strings.TrimSpace(text)
		bare, _, _ := strings.Cut(text, "/")
		addr, err := netip.ParseAddr(bare)
		var length netip.Prefix
		if err == nil && bare != text {
			length, err = netip.ParsePrefix(text)
		}
		if err != nil || addr.IsUnspecified() || addr.IsMulticast() || addr.IsLoopback() || addr.Zone() != "" {
			p.add(name, "%q is not an address that a pod can have", clip(text))
			continue
		}
		addr = addr.Unmap()
		if slices.ContainsFunc(all, func(a netip.Addr) bool { return a.Is4() == addr.Is4() }) {
			p.add(name, "%s is a second address of its family, and one interface gets one of each", addr)
			continue
		}
		all = append(all, addr)
		if length.Addr() != addr { // without a length, or an IPv4 address written as an IPv6 one
			continue
		}
		same := func(p netip.Prefix) bool { return p.Addr() == addr && p != length }
		if i := slices.IndexFunc(w.Lengths, same); i >= 0 {
			p.add(name, "it asks for %s, and another field for %s", length, w.Lengths[i])
		} else if !slices.Contains(w.Lengths, length) {
			w.Lengths = append(w.Lengths, length)
		}
	}
	return all
}

func sameAddrs(a, b []netip.Addr) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.SortFunc(a, netip.Addr.Compare)
	slices.SortFunc(b, netip.Addr.Compare)
	return slices.Equal(a, b)
}
