package ipaddr

import (
	"math"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go4.org/netipx"
)

func TestParseRange(t *testing.T) {
	const malformed = " is not an address, a range a-b or a CIDR"
	const tooLarge = " is larger than a /64, the largest that a pool can hold"
	for name, tc := range map[string]struct {
		in      string
		want    string // from-to
		wantErr string
	}{
		"address":                     {in: "10.0.0.5", want: "10.0.0.5-10.0.0.5"},
		"IPv6 address":                {in: "2001:db8::5", want: "2001:db8::5-2001:db8::5"},
		"IPv6 in capitals":            {in: "2001:DB8::A", want: "2001:db8::a-2001:db8::a"},
		"range":                       {in: "10.0.0.5-10.0.0.9", want: "10.0.0.5-10.0.0.9"},
		"range with tilde":            {in: "10.0.0.5~10.0.0.9", want: "10.0.0.5-10.0.0.9"},
		"range of one":                {in: "10.0.0.5-10.0.0.5", want: "10.0.0.5-10.0.0.5"},
		"range over all IPv4":         {in: "0.0.0.0-255.255.255.255", want: "0.0.0.0-255.255.255.255"},
		"IPv6 range":                  {in: "2001:db8::-2001:db8::ffff", want: "2001:db8::-2001:db8::ffff"},
		"IPv6 range with tilde":       {in: "2001:db8::1~2001:db8::2", want: "2001:db8::1-2001:db8::2"},
		"IPv6 range of a /64's size":  {in: "2001:db8::-2001:db8::ffff:ffff:ffff:ffff", want: "2001:db8::-2001:db8::ffff:ffff:ffff:ffff"},
		"the same, not aligned":       {in: "2001:db8::1-2001:db8:0:1::", want: "2001:db8::1-2001:db8:0:1::"},
		"CIDR":                        {in: "10.0.0.0/30", want: "10.0.0.0-10.0.0.3"},
		"CIDR of one":                 {in: "10.0.0.5/32", want: "10.0.0.5-10.0.0.5"},
		"IPv6 CIDR":                   {in: "2001:db8::/64", want: "2001:db8::-2001:db8::ffff:ffff:ffff:ffff"},
		"blanks":                      {in: "  10.0.0.5 - 10.0.0.9\t", want: "10.0.0.5-10.0.0.9"},
		"blanks around a CIDR":        {in: " 10.0.0.0/30 ", want: "10.0.0.0-10.0.0.3"},
		"empty":                       {in: "", wantErr: `""` + malformed},
		"blank":                       {in: " ", wantErr: `""` + malformed},
		"word":                        {in: "localhost", wantErr: `"localhost"` + malformed},
		"host name with dash":         {in: "node-1", wantErr: `"node-1"` + malformed},
		"short":                       {in: "10.0.0", wantErr: `"10.0.0"` + malformed},
		"octet above 255":             {in: "10.0.0.256", wantErr: `"10.0.0.256"` + malformed},
		"leading zero":                {in: "10.0.0.01", wantErr: `"10.0.0.01"` + malformed},
		"list":                        {in: "10.0.0.1,10.0.0.2", wantErr: `"10.0.0.1,10.0.0.2"` + malformed},
		"no start":                    {in: "-10.0.0.9", wantErr: `"-10.0.0.9"` + malformed},
		"no end":                      {in: "10.0.0.5-", wantErr: `"10.0.0.5-"` + malformed},
		"last octet only":             {in: "10.0.0.5-9", wantErr: `"10.0.0.5-9"` + malformed},
		"three ends":                  {in: "10.0.0.1-10.0.0.2-10.0.0.3", wantErr: `"10.0.0.1-10.0.0.2-10.0.0.3"` + malformed},
		"dash and tilde":              {in: "10.0.0.1~10.0.0.2-10.0.0.3", wantErr: `"10.0.0.1~10.0.0.2-10.0.0.3"` + malformed},
		"range of CIDRs":              {in: "10.0.0.0/30-10.0.1.0/30", wantErr: `"10.0.0.0/30-10.0.1.0/30"` + malformed},
		"CIDR without length":         {in: "10.0.0.0/", wantErr: `"10.0.0.0/"` + malformed},
		"CIDR without address":        {in: "/24", wantErr: `"/24"` + malformed},
		"CIDR too long":               {in: "10.0.0.0/33", wantErr: `"10.0.0.0/33"` + malformed},
		"CIDR with a netmask":         {in: "10.0.0.0/255.255.255.0", wantErr: `"10.0.0.0/255.255.255.0"` + malformed},
		"CIDR with a leading zero":    {in: "10.0.0.0/024", wantErr: `"10.0.0.0/024"` + malformed},
		"negative length":             {in: "10.0.0.0/-1", wantErr: `"10.0.0.0/-1"` + malformed},
		"around the mapped addresses": {in: "::/80", wantErr: `range "::/80" has IPv4-mapped addresses: leave out ::ffff:0:0/96`},
		"over the mapped addresses":   {in: "::-::1:0:0:0", wantErr: `range "::-::1:0:0:0" has IPv4-mapped addresses: leave out ::ffff:0:0/96`},
		"before the mapped addresses": {in: "::/96", want: "::-::ffff:ffff"},
		"reversed":                    {in: "10.0.0.9-10.0.0.5", wantErr: `range "10.0.0.9-10.0.0.5" is reversed: write 10.0.0.5-10.0.0.9`},
		"reversed IPv6":               {in: "2001:db8::2~2001:db8::1", wantErr: `range "2001:db8::2~2001:db8::1" is reversed: write 2001:db8::1-2001:db8::2`},
		"mixed families":              {in: "10.0.0.5-2001:db8::9", wantErr: `range "10.0.0.5-2001:db8::9" mixes IPv4 and IPv6`},
		"mixed the other way":         {in: "2001:db8::9-10.0.0.5", wantErr: `range "2001:db8::9-10.0.0.5" mixes IPv4 and IPv6`},
		"host bits":                   {in: "10.0.0.5/24", wantErr: `"10.0.0.5/24" is one address with a length: write 10.0.0.5 for the address, or 10.0.0.0/24 for all of them`},
		"IPv6 host bits":              {in: "2001:db8::5/64", wantErr: `"2001:db8::5/64" is one address with a length: write 2001:db8::5 for the address, or 2001:db8::/64 for all of them`},
		"CIDR larger than a /64":      {in: "2001:db8::/63", wantErr: `range "2001:db8::/63"` + tooLarge},
		"all of IPv6":                 {in: "::/0", wantErr: `range "::/0"` + tooLarge},
		"range larger than a /64":     {in: "2001:db8::-2001:db8:0:1::", wantErr: `range "2001:db8::-2001:db8:0:1::"` + tooLarge},
		"zone":                        {in: "fe80::1%eth0", wantErr: `"fe80::1%eth0"` + malformed},
		"zone with dash":              {in: "fe80::1%eth-0", wantErr: `"fe80::1%eth-0"` + malformed},
		"zones in a range":            {in: "fe80::1%eth0-fe80::2%eth0", wantErr: `"fe80::1%eth0-fe80::2%eth0"` + malformed},
		"zone in a CIDR":              {in: "fe80::%eth0/64", wantErr: `"fe80::%eth0/64"` + malformed},
		"IPv4 in IPv6":                {in: "::ffff:10.0.0.5", wantErr: `"::ffff:10.0.0.5"` + malformed},
		"IPv4 in IPv6 in a range":     {in: "::ffff:10.0.0.5-::ffff:10.0.0.9", wantErr: `"::ffff:10.0.0.5-::ffff:10.0.0.9"` + malformed},
		"IPv4 in IPv6 in a CIDR":      {in: "::ffff:10.0.0.0/126", wantErr: `"::ffff:10.0.0.0/126"` + malformed},
		"IPv4 in IPv6 at one end":     {in: "10.0.0.5-::ffff:10.0.0.9", wantErr: `"10.0.0.5-::ffff:10.0.0.9"` + malformed},
		"port":                        {in: "10.0.0.5:80", wantErr: `"10.0.0.5:80"` + malformed},
		"brackets":                    {in: "[2001:db8::1]", wantErr: `"[2001:db8::1]"` + malformed},
		"object name instead of IPv6": {in: "2001-0db8-0000-0000-0000-0000-0000-0001", wantErr: `"2001-0db8-0000-0000-0000-0000-0000-0001"` + malformed},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseRange(tc.in)
			if diff := cmp.Diff(tc.wantErr, message(err)); diff != "" {
				t.Fatalf("error (-want +got):\n%s", diff)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(tc.want, got.From().String()+"-"+got.To().String()); diff != "" {
				t.Errorf("range (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseAddr(t *testing.T) {
	for name, tc := range map[string]struct{ in, want, wantErr string }{
		"IPv4":                     {in: "10.0.0.5", want: "10.0.0.5"},
		"IPv6":                     {in: "2001:DB8:0::5", want: "2001:db8::5"},
		"blanks":                   {in: " 10.0.0.5\n", want: "10.0.0.5"},
		"unspecified":              {in: "::", want: "::"},
		"empty":                    {in: "", wantErr: `"" is not an IP address`},
		"CIDR":                     {in: "10.0.0.0/24", wantErr: `"10.0.0.0/24" is not an IP address`},
		"zone":                     {in: "fe80::1%eth0", wantErr: `"fe80::1%eth0" is not an IP address`},
		"IPv4 in IPv6":             {in: "::ffff:10.0.0.5", wantErr: `"::ffff:10.0.0.5" is not an IP address`},
		"the same, in hexadecimal": {in: "::ffff:a00:5", wantErr: `"::ffff:a00:5" is not an IP address`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseAddr(tc.in)
			if diff := cmp.Diff(tc.wantErr, message(err)); diff != "" {
				t.Fatalf("error (-want +got):\n%s", diff)
			}
			if err == nil && got.String() != tc.want {
				t.Errorf("ParseAddr(%q) = %s, want %s", tc.in, got, tc.want)
			}
		})
	}
}

func TestObjectName(t *testing.T) {
	for addr, name := range map[string]string{
		"10.0.0.5":        "10.0.0.5",
		"255.255.255.255": "255.255.255.255",
		"::":              "0000-0000-0000-0000-0000-0000-0000-0000",
		"2001:db8::a":     "2001-0db8-0000-0000-0000-0000-0000-000a",
		"fe80::1:2":       "fe80-0000-0000-0000-0000-0000-0001-0002",
	} {
		t.Run(addr, func(t *testing.T) {
			a := netip.MustParseAddr(addr)
			if got := ObjectName(a); got != name {
				t.Errorf("ObjectName = %q, want %q", got, name)
			}
			if back, err := ParseObjectName(name); err != nil || back != a {
				t.Errorf("ParseObjectName = %s, %v, want %s", back, err, a)
			}
		})
	}
}

func TestParseObjectNameRefusesOtherSpellings(t *testing.T) {
	for _, name := range []string{
		"", "pool", "10-0-0-5", "10.0.0.05", " 10.0.0.5", "2001:0db8:0000:0000:0000:0000:0000:000a",
		"2001-db8--a", "2001-0DB8-0000-0000-0000-0000-0000-000A", "2001-0db8-0000-0000-0000-0000-0000-000a ",
		"2001:0db8-0000-0000-0000-0000-0000-000a", "0000-0000-0000-0000-0000-ffff-0a00-0005", "--ffff-10.0.0.5",
		"fe80-0000-0000-0000-0000-0000-0000-0001%eth0",
	} {
		if a, err := ParseObjectName(name); err == nil {
			t.Errorf("ParseObjectName(%q) = %s, want an error", name, a)
		}
	}
}

func TestSizesSaturate(t *testing.T) {
	for in, want := range map[string]uint64{
		"10.0.0.5":                   1,
		"10.0.0.0/24":                256,
		"0.0.0.0/0":                  1 << 32,
		"2001:db8::/65":              1 << 63,
		"2001:db8::/64":              math.MaxUint64,
		"2001:db8::1-2001:db8:0:1::": math.MaxUint64,
		"2001:db8::2-2001:db8:0:1::": math.MaxUint64,
		"2001:db8::3-2001:db8:0:1::": math.MaxUint64 - 1,
	} {
		if got := Size(mustRange(t, in)); got != want {
			t.Errorf("Size(%s) = %d, want %d", in, got, want)
		}
	}
	if got := SizeOfSet(mustSet(t, "2001:db8::/65", "2001:db8:1::/65")); got != math.MaxUint64 {
		t.Errorf("SizeOfSet of twice 2^63 = %d, want 2^64-1", got)
	}
	if got := SizeOfSet(&netipx.IPSet{}); got != 0 {
		t.Errorf("SizeOfSet of nothing = %d", got)
	}
}

func TestFormatSet(t *testing.T) {
	set := mustSet(t, "10.0.0.9", "10.0.0.1-10.0.0.4", "10.0.0.5", "2001:db8::/126")
	if got, want := FormatSet(set), "10.0.0.1-10.0.0.5, 10.0.0.9, 2001:db8::-2001:db8::3"; got != want {
		t.Errorf("FormatSet = %q, want %q", got, want)
	}
}
