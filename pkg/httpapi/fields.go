package httpapi

import (
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// Bounds of the fields, in bytes. Stored fields have the same bounds in the schema of BCSNetIP.
const (
	maxContainerID = 256
	maxIfName      = 15
	maxName        = 253
	maxNamespace   = 63
	maxUID         = 128
	maxAddress     = 128
	maxTime        = 64
	maxMAC         = 23 // as the longest notation of eight octets, so that the refusal names it
)

// field is a string of a request with its bound.
type field struct {
	name, value string
	limit       int
}

// bounded refuses fields that are too long or contain unprintable characters; one message names all of them.
func bounded(fields ...field) error {
	var problems []string
	for _, f := range fields {
		switch {
		case len(f.value) > f.limit:
			problems = append(problems, fmt.Sprintf("%s is longer than %d bytes", f.name, f.limit))
		case strings.ContainsFunc(f.value, func(r rune) bool {
			return !unicode.IsPrint(r) || r == unicode.ReplacementChar
		}):
			problems = append(problems, f.name+" has characters that are not printable")
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return ipam.Refuse(ipam.ReasonBadRequest, "%s", strings.Join(problems, "; "))
}

// podNames refuses invalid names of pods and namespaces, because the API server is asked for them.
func podNames(namespace, name string) error {
	if len(validation.IsDNS1123Label(namespace)) > 0 {
		return ipam.Refuse(ipam.ReasonBadRequest, "podNamespace %q cannot be the name of a namespace", namespace)
	}
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return ipam.Refuse(ipam.ReasonBadRequest, "podName %q cannot be the name of a pod", name)
	}
	return nil
}

// interfaceName refuses names of network interfaces that Linux refuses (dev_valid_name in its net/core/dev.c); empty
// stands for the default.
func interfaceName(name string) error {
	if name == "." || name == ".." || strings.ContainsFunc(name,
		func(r rune) bool { return r == '/' || r == ':' || unicode.IsSpace(r) }) {
		return ipam.Refuse(ipam.ReasonBadRequest, "ifName %q cannot be the name of an interface", name)
	}
	return nil
}

func parseHost(s string) (netip.Addr, error) {
	a, err := ipaddr.ParseAddr(s)
	if err != nil {
		return a, ipam.Refuse(ipam.ReasonBadRequest, "host %q is not an IP address", clip(s))
	}
	return a, nil
}

func parseAddress(s string) (netip.Addr, error) {
	a, err := ipaddr.ParseAddr(s)
	if err != nil {
		return a, ipam.Refuse(ipam.ReasonBadAddress, "%q is not an IP address", clip(s))
	}
	return a, nil
}

// parseAddresses parses ipAddr: empty, one address, or a comma-separated address of each family.
func parseAddresses(s string) ([]netip.Addr, error) {
	if strings.TrimSpace(s) == "" {
		return nil, nil
	}
	var out []netip.Addr
	for part := range strings.SplitSeq(s, ",") {
		a, _, err := ipaddr.ParseHost(part)
		if err != nil {
			return nil, ipam.Refuse(ipam.ReasonBadAddress, "ipAddr: %v", err)
		}
		for _, o := range out {
			if o.Is4() == a.Is4() {
				return nil, ipam.Refuse(ipam.ReasonBadAddress,
					"ipAddr asks for %s and %s: one address of each family at most", o, a)
			}
		}
		out = append(out, a)
	}
	return out, nil
}

// parseFamilies parses ipFamilyPolicy and ipFamilies, and compares them with the requested addresses.
func parseFamilies(policy string, names []string, addrs []netip.Addr) (f ipam.Families, err error) {
	if f.Policy, err = ipam.ParseFamilyPolicy(policy); err != nil {
		return f, ipam.Refuse(ipam.ReasonBadRequest, "ipFamilyPolicy %q: %v", clip(policy), err)
	}
	if f.Order, err = ipam.ParseFamilies(names); err != nil {
		return f, ipam.Refuse(ipam.ReasonBadRequest, "ipFamilies: %v", err)
	}
	if err := f.Admit(addrs); err != nil {
		return f, ipam.Refuse(ipam.ReasonBadRequest, "ipAddr contradicts the families: %v", err)
	}
	return f, nil
}

func parseGateway(s string) (netip.Addr, error) {
	if s == "" {
		return netip.Addr{}, nil
	}
	a, err := ipaddr.ParseAddr(s)
	if err != nil {
		return a, ipam.Refuse(ipam.ReasonBadAddress, "hostGateway %q is not an IP address", clip(s))
	}
	return a, nil
}

// parseStarted parses startedAt. Years that no clock of a running host shows are refused: times are compared in
// nanoseconds, which cannot express them.
func parseStarted(s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil || t.Year() < 1970 || t.Year() > 2200 {
		return t, ipam.Refuse(ipam.ReasonBadRequest,
			"startedAt %q is not a time in RFC 3339, such as 2026-01-02T15:04:05.123456789Z", clip(s))
	}
	return t, nil
}

// checkQuery refuses query parameters that an operation does not know: a filter with a typing error
// would otherwise match everything.
func checkQuery(r *http.Request, known []string) error {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return ipam.Refuse(ipam.ReasonBadRequest, "the query cannot be read: %v", err)
	}
	for _, name := range slices.Sorted(maps.Keys(q)) {
		if !slices.Contains(known, name) {
			refusal := ipam.Refuse(ipam.ReasonBadRequest, "query parameter %q is not known here", clip(name))
			if len(known) > 0 {
				return refusal.WithHint("known are: %s", strings.Join(known, ", "))
			}
			return refusal
		}
		if len(q[name]) > 1 {
			return ipam.Refuse(ipam.ReasonBadRequest, "query parameter %q is given %d times", name, len(q[name]))
		}
	}
	return nil
}

// clip shortens a caller's text for use in a message.
func clip(s string) string {
	const limit = 100
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "…"
}
