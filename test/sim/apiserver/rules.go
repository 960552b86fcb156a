package apiserver

import (
	"net/netip"
	"strings"
)

// rule evaluates one rule of a CRD; old is nil for a new object.
type rule func(now, old map[string]any) []complaint

// rules returns, by kind, those rules of the CRDs on which allocation depends. The library for all rules would import
// the API server and an interpreter. TestConformance compares the results with the real server's.
func rules() map[string][]rule {
	return map[string][]rule{"BCSNetIP": {namedAfterAddress, addressFits, activeHasHolder, addresses}}
}

const notAddress = "must be an IPv4 or IPv6 address; zones, IPv4-mapped IPv6 and leading zeros in IPv4 are not taken"

func isAddress(text string) bool {
	a, err := netip.ParseAddr(text)
	return err == nil && a.Zone() == "" && !a.Is4In6()
}

// named returns the address in an object's name.
func named(o map[string]any) (netip.Addr, bool) {
	name := text(meta(o), "name")
	a, err := netip.ParseAddr(name)
	if err == nil {
		return a, a.Is4()
	}
	a, err = netip.ParseAddr(strings.ReplaceAll(name, "-", ":"))
	return a, err == nil && len(name) == len("2001-0db8-0000-0000-0000-0000-0000-0020") && strings.ToLower(name) == name
}

func namedAfterAddress(now, _ map[string]any) []complaint {
	if _, ok := named(now); ok {
		return nil
	}
	return []complaint{{"FieldValueInvalid", "metadata", "name " + text(meta(now), "name") +
		" is not the name of an address"}}
}

func addressFits(now, _ map[string]any) []complaint {
	told, _ := lookup(now, "spec", "address").(string)
	a, ok := named(now)
	if told == "" || !ok || a.Is4() {
		return nil
	}
	if b, err := netip.ParseAddr(told); err != nil || a != b {
		return []complaint{{"FieldValueInvalid", "spec.address", "address " + told +
			" is not the address that the object is named after"}}
	}
	return nil
}

func activeHasHolder(now, _ map[string]any) []complaint {
	status, _ := now["status"].(map[string]any)
	if text(status, "status") != "Active" || text(status, "containerID")+text(status, "owner")+text(status,
		"podUID") != "" {
		return nil
	}
	return []complaint{{"FieldValueRequired", "status.containerID", "an Active address has a holder"}}
}

func addresses(now, _ map[string]any) (wrong []complaint) {
	if g, there := lookup(now, "spec", "gateway").(string); there && !isAddress(g) {
		wrong = append(wrong, complaint{"FieldValueInvalid", "spec.gateway", notAddress})
	}
	if h, _ := lookup(now, "status", "host").(string); h != "" && !isAddress(h) {
		wrong = append(wrong, complaint{"FieldValueInvalid", "status.host",
			"must be the IPv4 or IPv6 address of a host"})
	}
	return wrong
}
