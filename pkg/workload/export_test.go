package workload

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"pgregory.net/rapid"
)

// AnyPolicy is what annotations drawn at random, up to the largest and oddest that are read, come to on some workload;
// the error is why they are refused.
func AnyPolicy(t *rapid.T) (Policy, error) {
	samples := []func() sample{
		deployment, deployment, statefulSet, daemonSet, cloneSet, tapp, vm, operators, barePod, generatedPod,
	}
	s := rapid.SampledFrom(samples).Draw(t, "workload")()
	all := Annotations()
	some := func(level Level, label string, often int) notes {
		n := notes{}
		for _, a := range all {
			if a.On&level != 0 && rapid.IntRange(0, often).Draw(t, label) == 0 {
				n[a.Key] = anyValue(t, a)
			}
		}
		return n
	}
	switch rapid.IntRange(0, 2).Draw(t, "annotations") { // many contradict each other, as a rule
	case 0:
		return s.on(notes{ownPrefix + "keep": anyValue(t, Annotation{Field: fieldKeep})}).decide(nil)
	case 1:
		at := slices.DeleteFunc(slices.Collect(slices.Values(all[:])),
			func(a Annotation) bool { return a.Field != fieldSets })
		a := rapid.SampledFrom(at).Draw(t, "annotation")
		said := notes{a.Key: anyValue(t, a)}
		if policy := rapid.SampledFrom([]string{"", "immutable", "never", "timed"}).Draw(t, "policy"); policy != "" {
			said[ownPrefix+"release-policy"] = policy
		}
		return s.on(said).decide(nil)
	}
	return s.on(some(OnPod, "pod", 5)).itself(some(OnWorkload, "workload", 9)).decide(some(OnNamespace, "namespace", 9))
}

// anyValue is a value of an annotation that can be read, as a rule.
func anyValue(t *rapid.T, a Annotation) string {
	draw := func(label string, of ...string) string { return rapid.SampledFrom(of).Draw(t, label) }
	switch a.Field {
	case fieldRelease:
		return draw("policy", "with-pod", "immutable", "never", "timed", "fixed-ip")
	case fieldKeep:
		return draw("keep", "1s", "1500ms", "1h0m0.000000001s", "90m", "0.1h", "499h59m59.999999999s", "500h",
			"8759h59m59.5s", "8760h", "31536000s", "1e3s")
	case fieldPool, fieldClaim:
		return strings.Trim(strings.Repeat(draw("name", "blue", "a.b-c.", "7"), rapid.IntRange(1, 80).Draw(t, "length")),
			"-.")
	case fieldShared, fieldIdentity:
		letters := string(rapid.SliceOfN(rapid.RuneFrom(nil, unicode.L, unicode.Nd, unicode.P, unicode.S, unicode.M), 1,
			maxText).Draw(t, "text"))
		return strings.ToValidUTF8(letters[:min(len(letters), maxText)], "")
	case fieldGateway:
		return "10.0.0.1"
	}
	switch n := rapid.SampledFrom([]int{1, 2, 16, 64, 1025, 4097}).Draw(t, "ranges"); a.Dialect {
	case dialectB:
		var lists []string
		for i := range rapid.SampledFrom([]int{1, 2, 8, 9, 16, 17}).Draw(t, "lists") {
			lists = append(lists, `["`+strings.Join(ranges(t, 1+n/64, i), `","`)+`"]`)
		}
		return `{"request_ip_range":[` + strings.Join(lists, ",") + `]}`
	case dialectC:
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf("10.%d.%d.8/24", 1+i/256, i%256))
		}
		return strings.Join(all, ",")
	default:
		return strings.Join(ranges(t, n, 0), ",")
	}
}

// ranges are some of one or two forms that do not touch, or whole /64 that do.
func ranges(t *rapid.T, n, list int) (all []string) {
	forms := []func(i int) string{
		func(i int) string { return fmt.Sprintf("10.%d.%d.%d", 1+i/256, i%256, 8+list) },
		func(i int) string {
			return fmt.Sprintf("10.%d.%d.%d-10.%d.%d.200", 1+i/256, i%256, 8+list, 1+i/256, i%256)
		},
		func(i int) string { return fmt.Sprintf("10.%d.%d.%d/32", 1+i/256, i%256, 8+list) },
		func(i int) string { return fmt.Sprintf("2001:db8:%x:%x::/64", list, i) },
		func(i int) string {
			return fmt.Sprintf("2001:db8:%x:%x::1~2001:db8:%x:%x:ffff:ffff:ffff:ffff", list, i, list, i)
		},
		func(i int) string { return fmt.Sprintf("2001:db8:%x:%x::1", list, i) },
	}
	some := rapid.SliceOfN(rapid.SampledFrom(forms), 1, 2).Draw(t, "forms")
	for i := range n {
		all = append(all, some[i%len(some)](i))
	}
	return all
}

// Largest is what annotations say at the very bounds of what can be stored, or beyond them.
type Largest struct {
	Decide  func() (Policy, error)
	Refused bool
}

// LargestPolicies are those of a Deployment.
func LargestPolicies() map[string]Largest {
	of := func(refused bool, said notes) Largest {
		return Largest{func() (Policy, error) { return deployment().on(said).decide(nil) }, refused}
	}
	kept := func(key, value string) notes { return notes{key: value, ownPrefix + "release-policy": "immutable"} }
	singles := func(n int, form string) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(form, 1+i/256, i%256))
		}
		return strings.Join(all, ",")
	}
	lists := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`["10.0.%d.8","2001:db8:%d::8"]`, i, i))
		}
		return `{"request_ip_range":[` + strings.Join(all, ",") + `]}`
	}
	return map[string]Largest{
		"1,024 addresses":           of(false, kept(ownPrefix+"ip", singles(1024, "10.%d.%d.8"))),
		"1,025 addresses":           of(true, kept(ownPrefix+"ip", singles(1025, "10.%d.%d.8"))),
		"1,025 of another dialect":  of(true, notes{keeperPrefix + "ip_address": singles(1, "10.%d.%d.8/24"), keeperPrefix + "ip_pool": singles(1025, "10.%d.%d.8/24")}),
		"4,096 that nobody keeps":   of(false, notes{ownPrefix + "ip": singles(4096, "10.%d.%d.8")}),
		"two /64 that touch":        of(false, kept(ownPrefix+"ip", "2001:db8:0:4::/64,2001:db8:0:5::/64")),
		"fractions of a second":     of(false, notes{ownPrefix + "keep": "1h0m0.5s"}),
		"the longest time":          of(false, notes{ownPrefix + "keep": "8759h59m59.999999999s"}),
		"fractions, as they were":   of(false, notes{fixedIP: "fixed-ip", keepFixed: "1500ms"}),
		"16 addresses of 8 lists":   of(false, notes{galaxyArgs: lists(8)}),
		"18 addresses of 9 lists":   of(true, notes{galaxyArgs: lists(9)}),
		"a name of 253 bytes":       of(false, notes{eniPool: strings.Repeat("池", 84) + "x"}),
		"a key of 253 bytes":        of(false, notes{primaryKey: strings.Repeat("K", 253), ownPrefix + "release-policy": "never"}),
		"a key in another's claims": of(false, notes{primaryKey: strings.Repeat("K", 253), ownClaim: "bank/" + strings.Repeat("c", 253)}),
	}
}

// Remembered returns how many kinds are remembered.
func (o *Owners) Remembered() int {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return len(o.kinds)
}
