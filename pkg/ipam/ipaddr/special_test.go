package ipaddr

import (
	"net/netip"
	"testing"
)

func TestSpecial(t *testing.T) {
	for in, want := range map[string]string{
		"0.0.0.0": "unspecified", "0.255.255.255": "unspecified", "1.0.0.0": "",
		"126.255.255.255": "", "127.0.0.0": "loopback", "127.255.255.255": "loopback", "128.0.0.0": "",
		"169.253.255.255": "", "169.254.0.0": "link-local", "169.254.255.255": "link-local", "169.255.0.0": "",
		"223.255.255.255": "", "224.0.0.0": "multicast", "239.255.255.255": "multicast",
		"240.0.0.0": "reserved", "255.255.255.255": "reserved", "126.0.0.0-128.0.0.0": "loopback",
		"10.0.0.0/8": "", "100.64.0.0/10": "", "192.0.2.0/24": "",
		"::": "unspecified", "::1": "loopback", "::2": "", "::-::5": "unspecified", "2001:db8::/64": "",
		"fc00::/64": "", "fe7f:ffff::": "", "fe80::": "link-local", "febf:ffff::": "link-local", "fec0::": "",
		"feff:ffff::": "", "ff00::": "multicast", "ff05::/64": "multicast",
	} {
		r, err := ParseRange(in)
		if err != nil {
			t.Fatal(err)
		}
		if found, kind, ok := Special(SetOf(r)); kind != want || ok != (want != "") || ok != found.IsValid() {
			t.Errorf("%s: %v %q %v, want %q", in, found, kind, ok, want)
		}
	}
}

func TestReaches(t *testing.T) {
	six, four := netip.MustParsePrefix("2001:db8::/64"), netip.MustParsePrefix("10.0.0.0/24")
	for name, tc := range map[string]struct {
		subnet  netip.Prefix
		gateway string
		want    bool
	}{
		"inside":           {four, "10.0.0.1", true},
		"outside":          {four, "10.0.1.1", false},
		"IPv4 link-local":  {four, "169.254.1.1", false},
		"of other family":  {four, "fe80::1", false},
		"IPv6 inside":      {six, "2001:db8::1", true},
		"IPv6 outside":     {six, "2001:db8:0:1::1", false},
		"IPv6 link-local":  {six, "fe80::1", true},
		"with a zone":      {six, "fe80::1%eth0", false},
		"mapped":           {six, "::ffff:169.254.1.1", false},
		"beyond fe80::/10": {six, "fec0::1", false},
	} {
		if got := Reaches(tc.subnet, netip.MustParseAddr(tc.gateway)); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
	if Reaches(six, netip.Addr{}) {
		t.Error("no gateway is reached")
	}
}
