package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// sample is the document's.
const sample = `[{"routableSubnet":"10.0.0.0/16","ips":["10.0.70.2~10.0.70.241"],"subnet":"10.0.70.0/24","gateway":"10.0.70.1","vlan":2}]`

func TestSample(t *testing.T) {
	entries, err := Parse([]byte(sample))
	if err != nil || len(entries) != 1 {
		t.Fatalf("%v: %v", entries, err)
	}
	var got v1.BCSNetPoolSpec
	entries[0].Set(&got)
	text, err := json.Marshal(got)
	const want = `{"net":"10.0.70.0","mask":24,"gateway":"10.0.70.1","hostSubnets":["10.0.0.0/16"],"availableIPs":["10.0.70.2~10.0.70.241"],"vlan":2}`
	if err != nil || string(text) != want {
		t.Errorf("%s, %v; want %s", text, err, want)
	}
}

// entry is the entry of the sample with other fields; an empty value leaves the field out.
func entry(change map[string]string) string {
	fields := map[string]string{
		"routableSubnet": `"10.0.0.0/16"`, "ips": `["10.0.70.2~10.0.70.241"]`, "subnet": `"10.0.70.0/24"`, "gateway": `"10.0.70.1"`, "vlan": "2",
	}
	maps.Copy(fields, change)
	var parts []string
	for _, k := range []string{"routableSubnet", "nodeSubnets", "ips", "subnet", "gateway", "vlan", "unknown"} {
		if fields[k] != "" {
			parts = append(parts, fmt.Sprintf("%q:%s", k, fields[k]))
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func TestParse(t *testing.T) {
	one := func(field, value string) string { return "[" + entry(map[string]string{field: value}) + "]" }
	for name, tc := range map[string]struct{ document, want string }{
		"no entry at all":            {"[]", ""},
		"no VLAN":                    {one("vlan", ""), ""},
		"no addresses":               {one("ips", ""), ""},
		"single addresses":           {one("ips", `["10.0.70.2","10.0.70.5 ~ 10.0.70.9"]`), ""},
		"ranges of one entry meet":   {one("ips", `["10.0.70.2~10.0.70.9","10.0.70.5"]`), ""},
		"a field of a later release": {one("unknown", `{"a":[1]}`), ""},
		"bits in the subnets":        {"[" + entry(map[string]string{"routableSubnet": `"10.0.3.4/16"`, "subnet": `"10.0.70.9/24"`}) + "]", ""},
		"IPv6":                       {`[{"nodeSubnets":["10.0.0.0/16","2001:db8:1::/48"],"ips":["2001:db8::2~2001:db8::9"],"subnet":"2001:db8::/64","gateway":"2001:db8::1"}]`, ""},

		"no node subnet":         {one("routableSubnet", ""), "floatingips[0]: node subnet is empty"},
		"an empty node subnet":   {one("routableSubnet", `""`), "floatingips[0]: node subnet is empty"},
		"no node subnets":        {"[" + entry(map[string]string{"routableSubnet": "", "nodeSubnets": "[]"}) + "]", "floatingips[0]: node subnet is empty"},
		"no gateway":             {one("gateway", ""), "floatingips[0]: gateway is empty"},
		"no subnet":              {one("subnet", ""), "floatingips[0]: subnet is empty"},
		"a wrong range":          {one("ips", `["10.0.70.xx~10.0.70.9"]`), "floatingips[0]: invalid ip range 10.0.70.xx~10.0.70.9"},
		"a reversed range":       {one("ips", `["10.0.70.9~10.0.70.2"]`), "floatingips[0]: invalid ip range 10.0.70.9~10.0.70.2"},
		"a range of another way": {one("ips", `["10.0.70.2-10.0.70.9"]`), "floatingips[0]: invalid ip range 10.0.70.2-10.0.70.9"},
		"a CIDR for a range":     {one("ips", `["10.0.70.0/28"]`), "floatingips[0]: invalid ip range 10.0.70.0/28"},
		"an empty range":         {one("ips", `[""]`), "floatingips[0]: invalid ip range "},
		"a range outside":        {one("ips", `["10.0.71.2~10.0.71.9"]`), "floatingips[0]: ip range 10.0.71.2~10.0.71.9 not in subnet 10.0.70.0/24"},
		"a range half outside":   {one("ips", `["10.0.70.2~10.0.71.9"]`), "floatingips[0]: ip range 10.0.70.2~10.0.71.9 not in subnet 10.0.70.0/24"},
		"an address outside":     {one("ips", `["10.0.71.2"]`), "floatingips[0]: ip range 10.0.71.2 not in subnet 10.0.70.0/24"},
		"a gateway at .0":        {one("gateway", `"10.0.70.0"`), "floatingips[0]: gateway 10.0.70.0 cannot be a default route"},
		"a gateway outside":      {one("gateway", `"10.0.71.1"`), "floatingips[0]: gateway 10.0.71.1 not in subnet 10.0.70.0/24"},
		"a wrong gateway":        {one("gateway", `"10.0.70.xx"`), `floatingips[0]: gateway "10.0.70.xx" is not an IP address`},
		"a wrong subnet":         {one("subnet", `"10.0.70.0"`), `floatingips[0]: subnet "10.0.70.0" is not a CIDR`},
		"a subnet of everything": {"[" + entry(map[string]string{"subnet": `"10.0.0.0/0"`}) + "]", "floatingips[0]: subnet 0.0.0.0/0 is all there is, not a subnet"},
		"a wrong node subnet":    {one("routableSubnet", `"10.0.xx.0/16"`), `floatingips[0]: node subnet "10.0.xx.0/16" is not a CIDR`},
		"a VLAN too high":        {one("vlan", "4095"), "floatingips[0]: vlan 4095 is not between 0 and 4094"},
		"no JSON":                {"- a", "floatingips is not a JSON array of entries: invalid character ' ' in numeric literal"},
		"nothing":                {"", "floatingips is not a JSON array of entries: EOF"},
		"null":                   {"null", "floatingips is null; an empty list is []"},
		"two documents":          {"[] []", "floatingips has text behind its JSON array"},
		"several wrong": {"[" + entry(nil) + "," + entry(map[string]string{"gateway": ""}) + "," + entry(map[string]string{"subnet": ""}) + "]",
			"floatingips[1]: gateway is empty\nfloatingips[2]: subnet is empty"},
		"addresses of two entries": {"[" + entry(nil) + "," + entry(map[string]string{"ips": `["10.0.70.9","10.0.70.250"]`}) + "]",
			"floatingips[1]: ip range 10.0.70.9 shares addresses with ip range 10.0.70.2~10.0.70.241 of floatingips[0]"},
		"very many wrong": {"[" + strings.Repeat(entry(map[string]string{"gateway": ""})+",", 19) + entry(nil) + "]", func() string {
			var lines []string
			for i := range 10 {
				lines = append(lines, fmt.Sprintf("floatingips[%d]: gateway is empty", i))
			}
			return strings.Join(append(lines, "9 more entries are wrong"), "\n")
		}()},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(tc.document))
			if got := message(err); got != tc.want {
				t.Errorf("%s:\n got %q\nwant %q", tc.document, got, tc.want)
			}
		})
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// What is accepted comes to pools whose addresses and subnets are as good as any, and to the same entries when they
// are written down and read again.
func FuzzParse(f *testing.F) {
	f.Add(sample)
	f.Add("[" + entry(map[string]string{
		"nodeSubnets": `["::/0","10.1.0.0/16"]`, "ips": `["10.0.70.2","10.0.70.4~10.0.70.4"]`,
	}) + "," + entry(map[string]string{"subnet": `"10.0.0.0/8"`, "ips": `["10.9.0.1~10.9.9.9"]`}) + "]")
	f.Add(
		`[{"nodeSubnets":["10.0.0.0/16"],"ips":["2001:db8::2~2001:db8::9"],"subnet":"2001:db8::/64","gateway":"2001:db8::1"}]`)
	f.Fuzz(func(t *testing.T, document string) {
		entries, err := Parse([]byte(document))
		if err != nil {
			if strings.TrimSpace(err.Error()) == "" {
				t.Fatal("an error without words")
			}
			return
		}
		names := map[string]bool{}
		var ours []*v1.BCSNetPool
		for i, w := range Make(entries, nil, nil).Wanted {
			p := &v1.BCSNetPool{}
			p.Name = w.Name
			w.Entry.Set(&p.Spec)
			plan, err := ipam.NewPlan(ipam.PlanSpec{
				Net: p.Spec.Net, Mask: int(p.Spec.Mask), Gateway: p.Spec.Gateway, Available: p.Spec.AvailableIPs,
			})
			if err != nil && !strings.Contains(err.Error(), "/64") || names[w.Name] {
				t.Fatalf("entry %d, pool %s: %v", i, w.Name, err)
			}
			if err == nil && plan.Subnet != w.Entry.Subnet {
				t.Fatalf("entry %d: subnet %s, %s in the pool", i, w.Entry.Subnet, plan.Subnet)
			}
			for _, n := range p.Spec.HostSubnets {
				if _, err := ipaddr.ParseNetwork(n); err != nil {
					t.Fatal(err)
				}
			}
			names[w.Name] = true
			ours = append(ours, p)
		}
		slices.Reverse(ours)
		again := Make(entries, ours, nil)
		if len(again.Gone) > 0 {
			t.Fatalf("%d pools are gone that have just been made", len(again.Gone))
		}
		for i, w := range again.Wanted {
			spec := w.Pool.Spec.DeepCopy()
			w.Entry.Set(spec)
			if !slices.Equal(spec.AvailableIPs, w.Pool.Spec.AvailableIPs) && len(entries[i].Ranges) > 0 {
				t.Fatalf("entry %d has another's pool %s", i, w.Name)
			}
		}
	})
}

func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }
