package explain

import (
	"net/netip"
	"regexp"
	"slices"
	"testing"
	"time"
)

// kinds are all kinds, by their ranges.
func kinds() (all []Kind) {
	for _, r := range [][2]Kind{
		{AddressInNoPool, AddressPoolStopped}, {AddressOfNode, OwnAddressElsewhere}, {NoPoolForClaim, PoolStopped}, {HostFull, StoreIsCompared},
		{NoSuchClaim, MigrationOff},
	} {
		for k := r[0]; k <= r[1]; k++ {
			all = append(all, k)
		}
	}
	return all
}

// Each kind has a text of its own, whose braces all name a fact.
func TestTexts(t *testing.T) {
	full := Facts{
		Who: "w", Address: netip.MustParseAddr("10.0.0.9"), Pool: "p", Subnet: netip.MustParsePrefix("10.0.0.0/24"),
		Role:   "r",
		Beside: netip.MustParseAddr("10.0.1.9"), Other: "o", By: "b", Host: netip.MustParseAddr("192.168.0.1"),
		Namespace: "n", Network: "net", Claim: "n/c", HostSubnets: "s", HostSelector: "l", Families: "IPv6", Pools: []string{"p"}, Own: []string{"p"},
		Share: Share{Has: 1, Coming: 1, Limit: 2},
		Stop:  Stop{Cause: Cordoned}, In: time.Second, Until: time.Unix(0, 0), Pod: "n/w", Key: "k", Ranges: "10.0.0.9",
		Size: 1, Because: []string{"because"}, States: []PoolState{{Pool: "p", Gone: 1}},
	}
	var texts []string
	braces := regexp.MustCompile(`\{([^}]*)\}`)
	for _, k := range kinds() {
		message, hint := k.texts()
		if slices.Contains(texts, message+hint) {
			t.Errorf("kind %d has the text of another: %s", k, message)
		}
		texts = append(texts, message+hint)
		for _, m := range braces.FindAllStringSubmatch(message+hint, -1) {
			if full.value(m[1]) == "" {
				t.Errorf("kind %d names %s, which is no fact", k, m[0])
			}
		}
	}
}

func TestFirstFew(t *testing.T) {
	for want, all := range map[string][]string{
		"":                                 nil,
		"a, b":                             {"a", "b"},
		"a, b, c, d, e, and 2 more things": {"a", "b", "c", "d", "e", "f", "g"},
	} {
		if got := FirstFew(all, "things"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
