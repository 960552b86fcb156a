package export

import (
	"cmp"
	"fmt"
	"math/big"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// The tables, by the names of their files without .csv, as NetBox calls the three in its URLs.
const (
	prefixes    = "prefixes"
	ipRanges    = "ip-ranges"
	ipAddresses = "ip-addresses"
)

func tables() []string { return []string{prefixes, ipRanges, ipAddresses} }

// heading returns the columns of a table, in the words of NetBox.
func heading(table string) []string {
	switch table {
	case prefixes:
		return []string{"prefix", "status", "description"}
	case ipRanges:
		return []string{"start_address", "end_address", "status", "description"}
	default:
		return []string{"address", "status", "dns_name", "description"}
	}
}

// row is a row of a table: a prefix, a range, or an address. JSON has more of it than NetBox's columns.
type row struct {
	Table       string   `json:"table"`
	Prefix      string   `json:"prefix,omitempty"`
	Start       string   `json:"start_address,omitempty"`
	End         string   `json:"end_address,omitempty"`
	Address     string   `json:"address,omitempty"`
	Status      string   `json:"status"`
	DNSName     string   `json:"dns_name,omitempty"`
	Description string   `json:"description"`
	Pools       []string `json:"pools,omitempty"`
	Network     string   `json:"network,omitempty"`
	VLAN        int32    `json:"vlan,omitempty"`
	Gateway     string   `json:"gateway,omitempty"`
	Holder      string   `json:"holder,omitempty"`
	Host        string   `json:"host,omitempty"`
	Claim       string   `json:"claim,omitempty"`
	Since       string   `json:"since,omitempty"`

	first netip.Addr
	bits  int
}

// cells returns a row in the order of the heading.
func (r row) cells() []string {
	switch r.Table {
	case prefixes:
		return []string{r.Prefix, r.Status, r.Description}
	case ipRanges:
		return []string{r.Start, r.End, r.Status, r.Description}
	default:
		return []string{r.Address, r.Status, r.DNSName, r.Description}
	}
}

func inOrder(a, b row) int { return cmp.Or(a.first.Compare(b.first), cmp.Compare(a.bits, b.bits)) }

// prefixRows returns the subnets of pools, each once.
func prefixRows(pools []resource.Pool) []row {
	by := map[netip.Prefix]*row{}
	for _, p := range pools {
		subnet := store.Pool(p.BCSNetPool).Plan.Subnet
		r := by[subnet]
		if r == nil {
			r = &row{
				Table: prefixes, Prefix: subnet.String(), Status: active, first: subnet.Addr(), bits: subnet.Bits(),
				Network: resource.NetworkOf(p), VLAN: p.Spec.VLAN, Gateway: p.Spec.Gateway,
			}
			by[subnet] = r
		}
		r.Pools = append(r.Pools, p.Name)
	}
	var out []row
	for _, r := range by {
		slices.Sort(r.Pools)
		parts := []string{"pool " + strings.Join(r.Pools, ", ")}
		if r.Network != "" {
			parts = append(parts, "network "+r.Network)
		}
		if r.VLAN != 0 {
			parts = append(parts, fmt.Sprintf("VLAN %d", r.VLAN))
		}
		if r.Gateway != "" {
			parts = append(parts, "gateway "+r.Gateway)
		}
		r.Description = short(strings.Join(parts, "; "))
		out = append(out, *r)
	}
	slices.SortFunc(out, inOrder)
	return out
}

// rangeRows returns the ranges of those pools that wanted takes, without overlaps, as NetBox refuses these: what a
// group has is not its parent's. NetBox has no range of one address, nor one of 2^32 or more: left counts those.
func rangeRows(pools []resource.Pool, wanted func(resource.Pool) bool) (out []row, left int) {
	pools = slices.Clone(pools)
	slices.SortStableFunc(pools, func(a, b resource.Pool) int { // groups before their parents
		return cmp.Or(cmp.Compare(b.Spec.Parent, a.Spec.Parent), cmp.Compare(a.Name, b.Name))
	})
	taken := ipaddr.SetOf()
	for _, p := range pools {
		plan := store.Pool(p.BCSNetPool).Plan
		own := ipaddr.Subtract(plan.Usable, taken)
		taken = ipaddr.SetOf(slices.Concat(taken.Ranges(), own.Ranges())...)
		if !wanted(p) {
			continue
		}
		status := active
		switch {
		case p.DeletionTimestamp != nil:
			status = "deprecated"
		case p.Spec.Cordoned:
			status = reserved
		}
		for _, part := range own.Ranges() {
			if part.From() == part.To() || tooLarge(part) {
				left++
				continue
			}
			text := func(a netip.Addr) string { return netip.PrefixFrom(a, plan.Subnet.Bits()).String() }
			out = append(out, row{
				Table: ipRanges, Start: text(part.From()), End: text(part.To()), Status: status,
				Description: short("pool " + p.Name), Pools: []string{p.Name}, first: part.From(),
			})
		}
	}
	slices.SortFunc(out, inOrder)
	return out, left
}

// tooLarge reports whether a range has more than 2^32-1 addresses.
func tooLarge(r netipx.IPRange) bool {
	distance := new(big.Int).Sub(new(big.Int).SetBytes(r.To().AsSlice()), new(big.Int).SetBytes(r.From().AsSlice()))
	return distance.BitLen() > 32 || distance.Uint64() >= 1<<32-1
}

// The values of NetBox for the status.
const (
	active   = "active"
	reserved = "reserved"
)

// addressRow returns the row of an address that is Active or Reserved.
func addressRow(l lease.Lease) row {
	r := row{
		Table: ipAddresses, Address: netip.PrefixFrom(l.Addr, l.Bits).String(), Status: reserved, Claim: l.Claim,
		Pools: []string{l.Pool}, Since: store.FormatTime(l.Updated), first: l.Addr,
	}
	switch {
	case l.State == lease.Active:
		r.Status, r.Holder, r.Host, r.Description = active, l.Who(), resource.AddrText(l.Host), l.Where()
		r.DNSName = dnsName(l)
	case l.IsRetained():
		r.Description, r.DNSName = "kept for claim "+l.Claim, dnsName(l)
	case l.IsQuarantined():
		r.Description = "quarantined: " + l.Conflict.MAC + " answers for it"
	default:
		by := l.Reservation()
		r.Description = strings.TrimSuffix("reserved by "+cmp.Or(by.By, "somebody")+": "+by.Reason, ": ")
	}
	r.Description = short(r.Description)
	return r
}

// validDNS is what NetBox takes for a DNS name.
var validDNS = regexp.MustCompile(`^[0-9A-Za-z_-]+(\.[0-9A-Za-z_-]+)*$`)

// dnsName returns POD.NAMESPACE, or the owner, in lower case; empty if NetBox would refuse it.
func dnsName(l lease.Lease) string {
	name := l.Owner
	if name == "" && l.PodName != "" {
		name = l.PodName + "." + l.Namespace
	}
	if name = strings.ToLower(name); len(name) > 255 || !validDNS.MatchString(name) {
		return ""
	}
	return name
}

// short cuts a description to the 200 characters that NetBox takes, and writes it on one line.
func short(text string) string {
	all := []rune(strings.Join(strings.Fields(text), " "))
	if len(all) <= 200 {
		return string(all)
	}
	return string(all[:199]) + "…"
}
