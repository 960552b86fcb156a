package ipaddr

import "testing"

func TestSetAlgebra(t *testing.T) {
	a, b := mustSet(t, "10.0.0.0-10.0.0.9", "2001:db8::1"), mustSet(t, "10.0.0.5-10.0.0.20")
	for name, tc := range map[string]struct{ got, want string }{
		"both":        {FormatSet(Intersect(a, b)), "10.0.0.5-10.0.0.9"},
		"less":        {FormatSet(Subtract(a, b)), "10.0.0.0-10.0.0.4, 2001:db8::1"},
		"less both":   {FormatSet(Subtract(a, b, mustSet(t, "10.0.0.1"))), "10.0.0.0, 10.0.0.2-10.0.0.4, 2001:db8::1"},
		"less itself": {FormatSet(Subtract(a, a)), ""},
		"IPv4":        {FormatSet(OfFamily(a, IPv4)), "10.0.0.0-10.0.0.9"},
		"IPv6":        {FormatSet(OfFamily(a, IPv6)), "2001:db8::1"},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: %s, want %s", name, tc.got, tc.want)
		}
	}
	if !HasFamily(a, IPv6) || HasFamily(b, IPv6) || !HasFamily(b, IPv4) {
		t.Error("HasFamily and OfFamily differ")
	}
	if IPv4.String() != "IPv4" || IPv6.String() != "IPv6" {
		t.Error("the names of families are not those of the field")
	}
}
