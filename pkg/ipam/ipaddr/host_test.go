package ipaddr

import "testing"

// One address with the length of its subnet is an address; what means more than one, or nothing, is refused.
func TestParseHost(t *testing.T) {
	for text, want := range map[string]struct {
		addr string
		bits int
	}{
		"10.0.0.5": {"10.0.0.5", 0}, " 10.0.0.5/24 ": {"10.0.0.5", 24}, "10.0.0.5/32": {"10.0.0.5", 32},
		"fd00::5/64": {"fd00::5", 64}, "fd00::5/128": {"fd00::5", 128}, "::ffff:10.0.0.5": {},
		"10.0.0.0/24": {}, "fd00::/64": {}, "10.0.0.5/0": {}, "10.0.0.5/33": {}, "fd00::5/129": {}, "10.0.0.5/": {},
		"10.0.0.5/024": {}, "10.0.0.5/-1": {}, "10.0.0.5/24/24": {}, "::ffff:10.0.0.5/120": {}, "fd00::5%eth0/64": {},
		"/24": {}, "": {}, "10.0.0.5 /24": {}, "10.0.0.5-10.0.0.6": {},
	} {
		a, bits, err := ParseHost(text)
		switch {
		case want.addr == "" && err == nil:
			t.Errorf("%q is %s with length %d", text, a, bits)
		case want.addr != "" && (err != nil || a.String() != want.addr || bits != want.bits):
			t.Errorf("%q: %s, %d, %v", text, a, bits, err)
		}
	}
}
