package system

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go4.org/netipx"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// OurIPAM is the type of our section ipam.
const OurIPAM = "bcsnet-ipam"

// Rewritten is a network configuration in which bcsnet gives the addresses.
type Rewritten struct {
	Config []byte
	// From are the types that stood there, and Networks what takes their place; both are empty if nothing changes.
	From, Networks []string
}

// Rewrite replaces each section ipam of another plugin, in a network configuration or a list of them, by one of ours
// that names the network of the pools with the section's ranges or names. Without the network a pod would get an
// address of the default chain. It returns an error if pools of no network, or of several, have them.
func Rewrite(config []byte, pools []*v1.BCSNetPool) (out Rewritten, err error) {
	var all map[string]any
	d := json.NewDecoder(bytes.NewReader(config))
	d.UseNumber()
	if err := d.Decode(&all); err != nil {
		return out, err
	}
	sections := []map[string]any{all}
	plugins, _ := all["plugins"].([]any)
	for _, p := range plugins {
		if section, ok := p.(map[string]any); ok {
			sections = append(sections, section)
		}
	}
	for _, s := range sections {
		ipam, _ := s["ipam"].(map[string]any)
		kind, _ := ipam["type"].(string)
		if kind == "" || kind == OurIPAM {
			continue
		}
		network, err := networkOf(ipam, pools)
		if err != nil {
			return Rewritten{}, fmt.Errorf("ipam of the type %s: %w", kind, err)
		}
		s["ipam"] = map[string]any{"type": OurIPAM, "network": network}
		out.From, out.Networks = append(out.From, kind), append(out.Networks, network)
	}
	out.Config, err = json.Marshal(all)
	return out, err
}

// networkOf returns the network of the pools that a section ipam draws from.
func networkOf(section map[string]any, pools []*v1.BCSNetPool) (string, error) {
	ranges, names, err := drawnFrom(section)
	if err != nil {
		return "", err
	}
	if len(ranges)+len(names) == 0 {
		return "", fmt.Errorf(`it names no range and no pool: write "ipam": {"type": %q, "network": NETWORK}`, OurIPAM)
	}
	found := map[string]string{} // networks by pool
	for _, p := range pools {
		if slices.Contains(names, p.Name) ||
			slices.ContainsFunc(ranges, func(r netipx.IPRange) bool { return hasSome(p, r) }) {
			found[p.Name] = p.Spec.Network
		}
	}
	for _, name := range names {
		if _, ok := found[name]; !ok && len(found) > 0 {
			return "", fmt.Errorf("there is no pool %s: import it first", name)
		}
	}
	for _, r := range ranges {
		if len(found) > 0 && !slices.ContainsFunc(pools, func(p *v1.BCSNetPool) bool { return hasSome(p, r) }) {
			return "", fmt.Errorf("no pool has addresses of %s: import them first", ipaddr.FormatRange(r))
		}
	}
	first := ""
	for _, p := range pools {
		network, ok := found[p.Name]
		switch {
		case !ok:
		case network == "":
			return "", fmt.Errorf("pool %s has its addresses and no network: bcsnetctl pool edit %s", p.Name, p.Name)
		case first != "" && first != network:
			return "", fmt.Errorf("pools of the networks %s and %s have its addresses", first, network)
		default:
			first = network
		}
	}
	if first == "" {
		return "", errors.New("no pool has its addresses: import them first")
	}
	return first, nil
}

// hasSome reports whether a pool has an address of a range.
func hasSome(p *v1.BCSNetPool, r netipx.IPRange) bool {
	usable := store.Pool(p).Plan.Usable
	return usable != nil && ipaddr.Meet(usable.Ranges(), []netipx.IPRange{r})
}

// hostLocalRange is a range of host-local, in the only field that matters here.
type hostLocalRange struct {
	Subnet string `json:"subnet"`
}

// drawnFrom returns the ranges and the names of pools in a section ipam of Whereabouts, host-local, Spiderpool or
// Calico.
func drawnFrom(section map[string]any) (ranges []netipx.IPRange, names []string, err error) {
	text, err := json.Marshal(section)
	if err != nil {
		return nil, nil, err
	}
	var s struct {
		whereaboutsIPAM

		Subnet  string             `json:"subnet"`
		Ranges2 [][]hostLocalRange `json:"ranges"`
		V4      []string           `json:"default_ipv4_ippool"`
		V6      []string           `json:"default_ipv6_ippool"`
		Calico4 []string           `json:"ipv4_pools"`
		Calico6 []string           `json:"ipv6_pools"`
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, nil, err
	}
	all := append([]whereaboutsRange{s.whereaboutsRange, {Range: s.Subnet}}, s.whereaboutsIPAM.Ranges...)
	for _, set := range s.Ranges2 {
		for _, one := range set {
			all = append(all, whereaboutsRange{Range: one.Subnet})
		}
	}
	for _, name := range slices.Concat(s.V4, s.V6, s.Calico4, s.Calico6) {
		if strings.Contains(name, "/") {
			all = append(all, whereaboutsRange{Range: name})
		} else {
			names = append(names, poolName(name))
		}
	}
	for _, one := range all {
		if one.Range == "" {
			continue
		}
		_, available, err := one.parse()
		if err != nil {
			return nil, nil, fmt.Errorf("range %q: %w", one.Range, err)
		}
		r, err := ipaddr.ParseRange(available[0])
		if err != nil {
			return nil, nil, err
		}
		ranges = append(ranges, r)
	}
	return ranges, names, nil
}
