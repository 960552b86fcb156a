package netconf

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// Wish is what a pod, or who made its network attachment, asks for.
type Wish struct {
	// Addrs are addresses, one of each family at most.
	Addrs []netip.Addr
	// MAC is the one that the interface has or is to have; empty where nobody asks.
	MAC string
}

// parseWish reads the wishes: runtimeConfig (the capabilities ips and mac; Multus' annotation comes by them),
// args.cni and CNI_ARGS. Where several say something, they say the same.
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
		addrs := parseAddrs(from.field, from.ips, top.problems)
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

// parseAddrs reads addresses. A length behind one is not the allocator's to follow: the pool has the mask.
func parseAddrs(field string, texts []string, p *problems) (all []netip.Addr) {
	for i, text := range texts {
		name := fmt.Sprintf("%s[%d]", field, i)
		text = strings.TrimSpace(text)
		bare, _, _ := strings.Cut(text, "/")
		addr, err := netip.ParseAddr(bare)
		if err == nil && bare != text {
			_, err = netip.ParsePrefix(text)
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
	}
	return all
}

func sameAddrs(a, b []netip.Addr) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.SortFunc(a, netip.Addr.Compare)
	slices.SortFunc(b, netip.Addr.Compare)
	return slices.Equal(a, b)
}
