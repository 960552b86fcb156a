package pool

import (
	"net/netip"
	"strings"
	"testing"
)

// What a pool waits for names the command that helps: release-host does nothing for an owner, which is on no host.
func TestWaitsForNamesTheCommand(t *testing.T) {
	on, none := netip.MustParseAddr("10.0.0.11"), netip.Addr{}
	for name, tc := range map[string]struct {
		held          map[netip.Addr]int
		host, address bool
	}{
		"pods":            {map[netip.Addr]int{on: 2}, true, false},
		"an owner":        {map[netip.Addr]int{none: 1}, false, true},
		"pods and owners": {map[netip.Addr]int{on: 2, none: 1}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			text := waitsFor(tc.held, nil, nil, nil)
			if got := strings.Contains(text, "bcsnetctl release-host HOST"); got != tc.host {
				t.Errorf("release-host: %t in %q", got, text)
			}
			if got := strings.Contains(text, "bcsnetctl ip release ADDRESS"); got != tc.address {
				t.Errorf("ip release: %t in %q", got, text)
			}
		})
	}
}
