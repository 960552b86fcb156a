package workload

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// Whatever an annotation holds, it is read to something within its bounds or refused with the annotation in the
// message.
func FuzzAnnotations(f *testing.F) {
	for _, value := range []string{
		"10.0.0.5", "10.0.0.5-10.0.0.9,2001:db8::5", "10.0.0.0/24", "blue", "immutable", "never", "fixed-ip", "48h", "-1h", "1e9h",
		`{"request_ip_range":[["10.0.0.2~10.0.0.30"],["10.0.0.60"]]}`, `{"request_ip_range":[[]]}`, `[]`, `null`, "172.16.91.181/24", "a/24,b/24",
		"::ffff:10.0.0.1", "fe80::1%eth0", "\x00", "蓝",
	} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		for _, a := range Annotations() {
			m, err := a.read(value)
			if err != nil {
				if err.Error() == "" {
					t.Errorf("%s=%q: an error that says nothing", a.Key, value)
				}
				continue
			}
			if m.keep < 0 || m.keep > longestKeep || len(m.text) > maxText || len(m.sets) > maxSets || m.mask < 0 ||
				m.mask > 128 {
				t.Errorf("%s=%q: %+v", a.Key, value, m)
			}
			for _, s := range m.sets {
				if s == nil || len(s.Ranges()) == 0 {
					t.Errorf("%s=%q: an empty set", a.Key, value)
				}
			}
			if !m.equal(m) {
				t.Errorf("%s=%q contradicts itself", a.Key, value)
			}
			p, err := statefulSet().on(notes{a.Key: value}).decide(nil)
			if why, ok := errors.AsType[*ipam.Refusal](err); err != nil && (!ok || !utf8.ValidString(why.Message)) {
				t.Errorf("%s=%q: %v", a.Key, value, err)
			}
			checkPolicy(t, p, err)
		}
	})
}

// checkPolicy checks what holds for every policy.
func checkPolicy(t interface{ Errorf(string, ...any) }, p Policy, err error) {
	if err != nil {
		return
	}
	namespace, name, _ := strings.Cut(p.Claim, "/")
	switch {
	case p.Claim == "" && (p.Release != ReleaseWithPod || p.Named || p.Shared != ""):
		t.Errorf("kept by no claim: %+v", p)
	case p.Claim != "" && (namespace == "" || len(validation.IsDNS1123Subdomain(name)) > 0):
		t.Errorf("no name of a claim: %+v", p)
	case (p.Release == ReleaseTimed) != (p.Keep > 0):
		t.Errorf("timed for %s: %+v", p.Keep, p)
	case p.Release == ReleaseUnsaid && !p.Named:
		t.Errorf("no policy: %+v", p)
	case p.Shared != "" && (p.Release != ReleaseNever || namespace != "bcsnet-system"):
		t.Errorf("shared: %+v", p)
	}
}

// Any annotations on any of the three objects make a policy that holds together, or a refusal; the same ones each
// time; and what a default of the namespace says is never why a pod without annotations is refused, if it can be
// read.
func TestAnyAnnotations(t *testing.T) {
	values := map[string][]string{
		ownIP: {"10.0.0.5", "10.0.0.0/24", "10.0.0.5,2001:db8::5", "x"}, ownPool: {"blue", "red"}, ownClaim: {"a", "b"},
		ownRelease: {"with-pod", "immutable", "never", "timed"}, ownKeep: {"1h", "2h"}, ownFamilyPolicy: {"SingleStack", "PreferDualStack"},
		ownFamilies: {"IPv4", "IPv6,IPv4"}, fixedIP: {"fixed-ip"},
		keepFixed:  {"1h", "500h"},
		primaryKey: {"one", "two"}, ipClaim: {"a"}, galaxy: {"", "immutable", "never"}, eniPool: {"blue", "蓝"},
		galaxyArgs: {`{"request_ip_range":[["10.0.0.5"],["10.0.0.6"]]}`, `{}`}, keeperIP: {"10.0.0.5/24"},
		keeperPool: {"10.0.0.5/24,10.0.0.6/24"}, keeperGatew: {"10.0.0.1", "10.9.0.1"},
	}
	samples := []func() sample{
		deployment, statefulSet, daemonSet, job, cloneSet, tapp, vm, operators, barePod, generatedPod,
	}
	some := func(t *rapid.T, level Level, label string) notes {
		n := notes{}
		for _, a := range Annotations() {
			if a.On&level != 0 && rapid.IntRange(0, 4).Draw(t, label) == 0 {
				n[a.Key] = rapid.SampledFrom(values[a.Key]).Draw(t, label+" "+a.Key)
			}
		}
		return n
	}
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.SampledFrom(samples).Draw(t, "workload")()
		s = s.on(some(t, OnPod, "pod")).itself(some(t, OnWorkload, "workload"))
		namespace := some(t, OnNamespace, "namespace")
		s = s.having(rapid.SampledFrom([][]string{nil, nil, {"mine"}, {"mine", "other"}}).Draw(t, "claims")...)
		p, err := s.decide(namespace)
		checkPolicy(t, p, err)
		again, err2 := s.decide(namespace)
		if diff := cmp.Diff(p, again, same()); diff != "" || (err == nil) != (err2 == nil) {
			t.Fatalf("%v, then %v:\n%s", err, err2, diff)
		}
		if namespace[ownRelease] == "timed" || namespace[ownKeep] == "" || namespace[ownRelease] == "" {
			if p, err := s.on(nil).itself(nil).having().decide(namespace); err != nil {
				t.Fatalf("%v: %+v, %v", namespace, p, err)
			}
		}
	})
}
