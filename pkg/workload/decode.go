package workload

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
	"unicode"

	"go4.org/netipx"
	"k8s.io/apimachinery/pkg/util/validation"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// parsedValue is the parsed value of one annotation.
type parsedValue struct {
	text    string
	pools   []string
	release ReleasePolicy
	keep    time.Duration
	sets    []*netipx.IPSet
	mask    int
	// lengths are the addresses with a prefix length, which must equal their pools'.
	lengths []netip.Prefix
	gateway netip.Addr
	// families has the policy, or the order.
	families ipam.Families
	// claims reports whether a claim holds the addresses although no policy is given. implies reports whether a
	// duration makes the policy timed.
	claims, implies bool
}

// equal reports whether two annotations with these values do not contradict each other.
func (m parsedValue) equal(o parsedValue) bool {
	return m.text == o.text && slices.Equal(m.pools, o.pools) && m.release == o.release && m.keep == o.keep &&
		m.gateway == o.gateway &&
		m.families.Policy == o.families.Policy && slices.Equal(m.families.Order, o.families.Order) &&
		(m.mask == o.mask || m.mask == 0 || o.mask == 0) &&
		slices.EqualFunc(m.sets, o.sets, func(a, b *netipx.IPSet) bool { return a.Equal(b) })
}

// Limits for values of annotations.
const (
	defaultKeep  = 48 * time.Hour
	leastKeep    = time.Second
	longestKeep  = v1.MaxKeep
	longestFixed = 500 * time.Hour // of bcs-netservice-controller

	maxSets   = v1.MaxSetSize
	maxRanges = 4096
	maxText   = 253
)

func readObjectName(value string) (parsedValue, error) {
	if problems := validation.IsDNS1123Subdomain(value); len(problems) > 0 {
		return parsedValue{}, errors.New(
			"it is not the name of an object: lower case letters, digits, - and . in at most 253 characters")
	}
	return parsedValue{text: value}, nil
}

// readPools reads the names of pools, in the order in which they are tried.
func readPools(value string) (m parsedValue, err error) {
	for name := range strings.SplitSeq(value, ",") {
		one, err := readObjectName(strings.TrimSpace(name))
		switch {
		case err != nil:
			return one, err
		case slices.Contains(m.pools, one.text):
			return m, fmt.Errorf("it names pool %s twice", one.text)
		}
		m.pools = append(m.pools, one.text)
	}
	if len(m.pools) > v1.MaxPoolsNamed {
		return m, fmt.Errorf("it names %d pools: at most %d are allowed", len(m.pools), v1.MaxPoolsNamed)
	}
	return m, nil
}

// offers reports whether some addresses are of each family that a request requires.
func (m parsedValue) offers(f ipam.Families) bool {
	return !slices.ContainsFunc(f.Needed(), func(f ipaddr.Family) bool {
		return !slices.ContainsFunc(m.sets, func(s *netipx.IPSet) bool { return ipaddr.HasFamily(s, f) })
	})
}

// readClaimName reads the name of a claim, with its namespace if that is not the pod's.
func readClaimName(value string) (parsedValue, error) {
	namespace, name, elsewhere := strings.Cut(value, "/")
	if !elsewhere {
		return readObjectName(value)
	}
	if len(validation.IsDNS1123Label(namespace)) > 0 {
		return parsedValue{}, errors.New(
			"the part before the / is not the name of a namespace: lower case letters, digits and - in at most 63 " +
				"characters")
	}
	if _, err := readObjectName(name); err != nil {
		return parsedValue{}, err
	}
	return parsedValue{text: value}, nil
}

func readText(value string) (parsedValue, error) {
	if len(value) > maxText || strings.ContainsFunc(value, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return parsedValue{}, fmt.Errorf("it is a text of at most %d bytes, all of which can be printed", maxText)
	}
	return parsedValue{text: value}, nil
}

func readOwnPolicy(value string) (parsedValue, error) {
	switch strings.ToLower(value) {
	case "with-pod", "withpod":
		return parsedValue{release: ReleaseWithPod}, nil
	case "immutable":
		return parsedValue{release: ReleaseImmutable}, nil
	case "never":
		return parsedValue{release: ReleaseNever}, nil
	case "timed":
		return parsedValue{release: ReleaseTimed}, nil
	}
	return parsedValue{}, errors.New("there is no such policy; the policies are with-pod, immutable, never and timed")
}

func readGalaxyPolicy(value string) (parsedValue, error) {
	switch strings.ToLower(value) {
	case "immutable", "never":
		return readOwnPolicy(value)
	}
	return parsedValue{}, errors.New("there is no such policy; it is immutable, never or empty")
}

func readFixedIP(value string) (parsedValue, error) {
	if value != "fixed-ip" {
		return parsedValue{}, errors.New("its one value is fixed-ip")
	}
	return parsedValue{release: ReleaseTimed}, nil
}

func readKeep(value string) (parsedValue, error) {
	m, err := readDuration(value, longestKeep)
	m.implies = true
	return m, err
}

func readKeepDuration(value string) (parsedValue, error) { return readDuration(value, longestFixed) }

func readDuration(value string, longest time.Duration) (parsedValue, error) {
	d, err := time.ParseDuration(value)
	switch {
	case err != nil:
		return parsedValue{}, errors.New("it is not a duration: write one like 48h or 1h30m")
	case d < leastKeep || d > longest:
		return parsedValue{}, fmt.Errorf("a duration is 1s at least and %.0fh at most", longest.Hours())
	}
	return parsedValue{keep: wholeSeconds(d)}, nil
}

// wholeSeconds returns a duration rounded up to whole seconds, the unit of claims.
func wholeSeconds(d time.Duration) time.Duration {
	return (d + time.Second - 1).Truncate(time.Second)
}

func readFamilyPolicy(value string) (m parsedValue, err error) {
	m.families.Policy, err = ipam.ParseFamilyPolicy(value)
	return m, err
}

func readFamilies(value string) (m parsedValue, err error) {
	names := strings.Split(value, ",")
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	m.families.Order, err = ipam.ParseFamilies(names)
	return m, err
}

func readGateway(value string) (parsedValue, error) {
	a, err := ipaddr.ParseAddr(value)
	if err == nil && (a.IsUnspecified() || a.IsMulticast()) {
		err = fmt.Errorf("%s cannot be a gateway", a)
	}
	return parsedValue{gateway: a}, err
}

// readAddresses reads bcsnet's notation: one set for each family in it.
func readAddresses(value string) (parsedValue, error) {
	entries := strings.Split(value, ",")
	if len(entries) > maxRanges {
		return parsedValue{}, fmt.Errorf("there are more than %d ranges", maxRanges)
	}
	var m parsedValue
	var v4, v6 []netipx.IPRange
	for _, entry := range entries {
		r, err := ipaddr.ParseRange(entry)
		// An address with the prefix length of its subnet.
		if a, bits, one := ipaddr.ParseHost(entry); err != nil && one == nil {
			r, err = netipx.IPRangeFrom(a, a), nil
			m.lengths = append(m.lengths, netip.PrefixFrom(a, bits))
		}
		switch {
		case err != nil:
			return parsedValue{}, err
		case r.From().Is4():
			v4 = append(v4, r)
		default:
			v6 = append(v6, r)
		}
	}
	for _, ranges := range [][]netipx.IPRange{v4, v6} {
		if len(ranges) > 0 {
			m.sets = append(m.sets, ipaddr.SetOf(ranges...))
		}
	}
	return m, nil
}

// readArgs reads galaxy's arguments. Their other parts are for CNI plugins.
func readArgs(value string) (m parsedValue, err error) {
	var args struct {
		Ranges [][]string `json:"request_ip_range"`
	}
	if err := json.Unmarshal([]byte(value), &args); err != nil {
		return parsedValue{}, fmt.Errorf("it is not the JSON of galaxy's args: %w", err)
	}
	if len(args.Ranges) > maxSets {
		return parsedValue{}, fmt.Errorf("request_ip_range asks for %d addresses; at most %d for one pod",
			len(args.Ranges), maxSets)
	}
	for i, list := range args.Ranges {
		switch {
		case len(list) == 0:
			return parsedValue{}, fmt.Errorf("list %d of request_ip_range is empty", i+1)
		case len(list) > maxRanges:
			return parsedValue{}, fmt.Errorf("list %d of request_ip_range has more than %d ranges", i+1, maxRanges)
		}
		ranges := make([]netipx.IPRange, 0, len(list))
		for _, entry := range list {
			r, err := ipaddr.ParseRange(entry)
			if err != nil {
				return parsedValue{}, fmt.Errorf("request_ip_range: %w", err)
			}
			ranges = append(ranges, r)
		}
		m.sets = append(m.sets, ipaddr.SetOf(ranges...))
	}
	if n := familiesOf(m.sets); n > maxSets {
		return parsedValue{}, fmt.Errorf(
			"request_ip_range asks for %d addresses, one of each family of a list; at most %d for one pod", n, maxSets)
	}
	return m, distinct(m.sets)
}

// familiesOf returns the number of addresses that a pod takes from some sets: one of each family from each set.
func familiesOf(sets []*netipx.IPSet) (n int) {
	for _, s := range sets {
		for _, f := range ipaddr.Families() {
			if ipaddr.HasFamily(s, f) {
				n++
			}
		}
	}
	return n
}

// distinct returns an error unless there is a separate address for each of the sets. It checks only sets of single
// addresses.
func distinct(sets []*netipx.IPSet) error {
	seen := map[netip.Addr]bool{}
	for _, s := range sets {
		r := s.Ranges()
		if len(r) != 1 || r[0].From() != r[0].To() {
			continue
		}
		if seen[r[0].From()] {
			return fmt.Errorf("request_ip_range asks for %s twice", r[0].From())
		}
		seen[r[0].From()] = true
	}
	return nil
}

func readKeeperAddress(value string) (parsedValue, error) {
	if strings.Contains(value, ",") {
		return parsedValue{}, errors.New("it is one address; several are for ip_pool")
	}
	return readKeeperPool(value)
}

// readKeeperPool reads "a/24,b/24".
func readKeeperPool(value string) (parsedValue, error) {
	entries := strings.Split(value, ",")
	if len(entries) > maxRanges {
		return parsedValue{}, fmt.Errorf("there are more than %d addresses", maxRanges)
	}
	m := parsedValue{claims: true}
	var ranges []netipx.IPRange
	for i, entry := range entries {
		a, mask, err := ipaddr.ParseHost(entry)
		switch {
		case err != nil:
			return parsedValue{}, err
		case i > 0 && mask != m.mask:
			return parsedValue{}, fmt.Errorf("the mask of %s differs from the mask of the addresses before it", entry)
		case i > 0 && a.Is4() != ranges[0].From().Is4():
			return parsedValue{}, errors.New("it mixes IPv4 and IPv6")
		}
		m.mask = mask
		ranges = append(ranges, netipx.IPRangeFrom(a, a))
	}
	m.sets = []*netipx.IPSet{ipaddr.SetOf(ranges...)}
	return m, nil
}
