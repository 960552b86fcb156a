package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// Key is the ConfigMap's key that holds the document.
const Key = "floatingips"

// maxVLAN is the highest VLAN ID.
const maxVLAN = 4094

// Entry is a valid entry of the document.
type Entry struct {
	// NodeSubnets are the subnets of the hosts whose pods get the addresses, sorted and without duplicates.
	NodeSubnets []netip.Prefix
	// Ranges are the addresses in the order of the document.
	Ranges  []netipx.IPRange
	Subnet  netip.Prefix
	Gateway netip.Addr
	VLAN    int
}

// raw is an entry as written in the document.
type raw struct {
	RoutableSubnet string   `json:"routableSubnet"`
	NodeSubnets    []string `json:"nodeSubnets"`
	IPs            []string `json:"ips"`
	Subnet         string   `json:"subnet"`
	Gateway        string   `json:"gateway"`
	VLAN           int      `json:"vlan"`
}

// maxReported bounds the number of invalid entries that an error names.
const maxReported = 10

// Parse parses the document. Errors of single entries follow galaxy's wording, if it has one, after the entry's
// position: "floatingips[0]: gateway is empty". Unknown fields are ignored.
func Parse(document []byte) ([]Entry, error) {
	var list []raw
	d := json.NewDecoder(bytes.NewReader(document))
	if err := d.Decode(&list); err != nil {
		return nil, fmt.Errorf("%s is not a JSON array of entries: %w", Key, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s has text behind its JSON array", Key)
	}
	if list == nil {
		return nil, fmt.Errorf("%s is null; an empty list is []", Key)
	}
	entries := make([]Entry, len(list))
	var errs []error
	for i, r := range list {
		var err error
		if entries[i], err = r.check(); err != nil {
			errs = append(errs, fmt.Errorf("%s[%d]: %w", Key, i, err))
		}
	}
	if len(errs) == 0 {
		errs = shared(entries)
	}
	if n := len(errs) - maxReported; n > 0 {
		errs = append(errs[:maxReported], fmt.Errorf("%d more entries are wrong", n))
	}
	return entries, errors.Join(errs...)
}

func (r raw) check() (e Entry, err error) {
	nodeSubnets := r.NodeSubnets
	if r.RoutableSubnet != "" {
		nodeSubnets = append([]string{r.RoutableSubnet}, nodeSubnets...)
	}
	switch {
	case len(nodeSubnets) == 0:
		return e, errors.New("node subnet is empty")
	case r.Gateway == "":
		return e, errors.New("gateway is empty")
	case r.Subnet == "":
		return e, errors.New("subnet is empty")
	}
	for _, text := range nodeSubnets {
		n, err := network(text)
		if err != nil {
			return e, fmt.Errorf("node subnet %w", err)
		}
		e.NodeSubnets = append(e.NodeSubnets, n)
	}
	slices.SortFunc(e.NodeSubnets, netip.Prefix.Compare)
	e.NodeSubnets = slices.Compact(e.NodeSubnets)
	if e.Subnet, err = network(r.Subnet); err != nil {
		return e, fmt.Errorf("subnet %w", err)
	}
	if e.Subnet.Bits() == 0 {
		return e, fmt.Errorf("subnet %s is all there is, not a subnet", e.Subnet)
	}
	if e.Gateway, err = ipaddr.ParseAddr(r.Gateway); err != nil {
		return e, fmt.Errorf("gateway %w", err)
	}
	switch bytes := e.Gateway.AsSlice(); {
	case bytes[len(bytes)-1] == 0:
		return e, fmt.Errorf("gateway %s cannot be a default route", e.Gateway)
	case !e.Subnet.IsSingleIP() && !e.Subnet.Contains(e.Gateway):
		return e, fmt.Errorf("gateway %s not in subnet %s", e.Gateway, e.Subnet)
	case r.VLAN < 0 || r.VLAN > maxVLAN:
		return e, fmt.Errorf("vlan %d is not between 0 and %d", r.VLAN, maxVLAN)
	}
	e.VLAN = r.VLAN
	return e, e.addIPs(r.IPs)
}

// network parses a CIDR. Host bits are ignored, as in galaxy.
func network(text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(strings.TrimSpace(text))
	if err != nil || p.Addr().Is4In6() {
		return netip.Prefix{}, fmt.Errorf("%q is not a CIDR", text)
	}
	return p.Masked(), nil
}

func (e *Entry) addIPs(list []string) error {
	for _, text := range list {
		r, err := ipaddr.ParseRange(text)
		if err != nil || strings.ContainsAny(text, "-/") {
			return fmt.Errorf("invalid ip range %s", text)
		}
		if !e.Subnet.Contains(r.From()) || !e.Subnet.Contains(r.To()) {
			return fmt.Errorf("ip range %s not in subnet %s", text, e.Subnet)
		}
		e.Ranges = append(e.Ranges, r)
	}
	return nil
}

// shared returns an error for addresses that several entries have: each address is for the hosts of one entry. If there
// are such addresses, it finds at least one.
func shared(entries []Entry) (errs []error) {
	type part struct {
		netipx.IPRange
		entry int
	}
	var all []part
	for i, e := range entries {
		for _, r := range e.Ranges {
			all = append(all, part{r, i})
		}
	}
	slices.SortStableFunc(all, func(a, b part) int { return a.From().Compare(b.From()) })
	for i, furthest := 1, 0; i < len(all); i++ {
		before, p := all[furthest], all[i]
		if before.Overlaps(p.IPRange) && before.entry != p.entry {
			errs = append(errs, fmt.Errorf("%s[%d]: ip range %s shares addresses with ip range %s of %s[%d]",
				Key, p.entry, spell(p.IPRange), spell(before.IPRange), Key, before.entry))
		}
		if before.To().Less(p.To()) {
			furthest = i
		}
	}
	return errs
}

// spell formats a range in the form of the document.
func spell(r netipx.IPRange) string { return strings.Replace(ipaddr.FormatRange(r), "-", "~", 1) }
