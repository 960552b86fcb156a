package ipaddr

import (
	"net/netip"
	"strings"
	"testing"
)

// FuzzParseRange: what is read is a range of one family and at most a /64, and writing it and reading
// it again gives the same range.
func FuzzParseRange(f *testing.F) {
	for _, s := range []string{
		"10.0.0.5", "10.0.0.5-10.0.0.9", "10.0.0.5~10.0.0.9", " 10.0.0.5 - 10.0.0.9 ", "10.0.0.0/24", "10.0.0.5/24",
		"2001:db8::/64", "2001:db8::/63", "2001:db8::1-2001:db8::ff", "::-::ffff:ffff:ffff:ffff", "fe80::1%eth0",
		"::/80", "::ffff:10.0.0.5", "10.0.0.9-10.0.0.5", "10.0.0.1-2001:db8::1", "-", "~", "/", "", "0/0", "::/0",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := ParseRange(s)
		if err != nil {
			if r.IsValid() {
				t.Fatalf("ParseRange(%q) gives %s with an error", s, r)
			}
			return
		}
		if !r.IsValid() || r.From().Is4In6() || r.From().Zone() != "" || r.To().Zone() != "" {
			t.Fatalf("ParseRange(%q) = %s", s, r)
		}
		if sizeOf(r.From(), r.To()).Cmp(maxRange) > 0 {
			t.Fatalf("ParseRange(%q) = %s, more than a /64", s, r)
		}
		if back, err := ParseRange(FormatRange(r)); err != nil || back != r {
			t.Fatalf("ParseRange(FormatRange(%s)) = %s, %v", r, back, err)
		}
		if back, err := ParseRange(strings.Replace(FormatRange(r), "-", "~", 1)); err != nil || back != r {
			t.Fatalf("%s with a tilde gives %s, %v", r, back, err)
		}
	})
}

// FuzzParseObjectName: a name stands for one address, and an address has one name, which the API
// server accepts as the name of an object.
func FuzzParseObjectName(f *testing.F) {
	for _, s := range []string{
		"10.0.0.5", "2001-0db8-0000-0000-0000-0000-0000-0001", "2001-0DB8-0000-0000-0000-0000-0000-0001",
		"10-0-0-5", "2001:db8::1", "--1", "", "0000-0000-0000-0000-0000-ffff-0a00-0005", "fe80--1%eth0", "\x00",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		a, err := ParseObjectName(name)
		if err != nil && a.IsValid() {
			t.Fatalf("ParseObjectName(%q) gives %s with an error", name, a)
		}
		if err == nil && ObjectName(a) != name {
			t.Fatalf("ParseObjectName(%q) = %s, whose name is %q", name, a, ObjectName(a))
		}
		if a, err := ParseAddr(name); err == nil {
			nameRoundTrip(t, a)
		}
		if len(name) >= 16 {
			if a, _ := netip.AddrFromSlice([]byte(name[:16])); !a.Is4In6() {
				nameRoundTrip(t, a)
			}
		}
	})
}

func nameRoundTrip(t *testing.T, a netip.Addr) {
	t.Helper()
	name := ObjectName(a)
	if back, err := ParseObjectName(name); err != nil || back != a {
		t.Fatalf("the name %q of %s gives %s, %v", name, a, back, err)
	}
	if strings.Trim(name, "0123456789abcdef-.") != "" {
		t.Fatalf("%q cannot be the name of an object", name)
	}
}
