package lease

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// settings are what a pool with everything says.
func settings(change ...func(*Settings)) Settings {
	s := Settings{Gateway: ip("10.20.0.1"), Link: Link{
		VLAN: 100, MTU: 1500,
		Routes: []Route{{Dst: netip.MustParsePrefix("10.8.0.0/16")}, {Dst: netip.MustParsePrefix("10.9.0.0/16"), GW: ip("10.20.0.9")}},
		DNS:    &DNS{Nameservers: []string{"10.0.0.2"}, Domain: "corp", Search: []string{"a b", "c"}, Options: []string{"ndots:5"}},
	}}
	for _, c := range change {
		c(&s)
	}
	return s
}

func drawSettings(t *rapid.T) (s Settings) {
	addr := rapid.SampledFrom([]netip.Addr{{}, ip("10.20.0.1"), ip("2001:db8::1"), ip("255.255.255.254")})
	text := rapid.SliceOfN(rapid.StringN(1, 40, 253), 0, 5)
	s.Gateway = addr.Draw(t, "gateway")
	s.GatewayFrom = rapid.SampledFrom([]GatewaySource{FromPool, FromHost, FromAnnotation}).Draw(t, "from")
	s.VLAN, s.MTU = rapid.IntRange(0, 4094).Draw(t, "vlan"), rapid.IntRange(0, 65535).Draw(t, "mtu")
	for range rapid.IntRange(0, 20).Draw(t, "routes") {
		s.Routes = append(s.Routes, Route{Dst: netip.PrefixFrom(ip("10.8.0.0"), rapid.IntRange(0, 32).Draw(t, "bits")), GW: addr.Draw(t, "gw")})
	}
	if d := (DNS{text.Draw(t, "nameservers"), rapid.StringN(0, 40, 253).Draw(t, "domain"), text.Draw(t, "search"), text.Draw(t, "options")}); rapid.Bool().Draw(t, "dns") &&
		len(d.Nameservers)+len(d.Domain)+len(d.Search)+len(d.Options) > 0 {
		s.DNS = &d
	}
	return s
}

// What was given is read back, takes a bounded number of bytes in an object, and differs in nothing from itself. What
// takes too many bytes is told from others, and known while the pool says it.
func TestGivenRoundTrip(t *testing.T) {
	nilIsEmpty := cmp.Transformer("nil", func(l []string) []string { return append([]string{}, l...) })
	rapid.Check(t, func(t *rapid.T) {
		s, o := drawSettings(t), drawSettings(t)
		g := NewGiven(s)
		if diff := cmp.Diff(s, must(g.Settings(s)), equal, nilIsEmpty); diff != "" {
			t.Fatalf("-given +read:\n%s", diff)
		}
		fields, _ := g.Fields()
		if again := GivenOf(fields); again != g {
			t.Fatalf("%s is read and written as %s", g, again)
		}
		if n := len(`"given":`+string(g)+`,"givenTo":"0123456789ab",`) - 1; n > 400 {
			t.Fatalf("%d bytes in an object: %s", n, g)
		}
		s.GatewayFrom, o.GatewayFrom = FromPool, FromPool
		if NewGiven(s).Differs(s) != nil {
			t.Fatalf("%v differs from itself", s)
		}
		if same := NewGiven(s) == NewGiven(o); same != (NewGiven(s).Differs(o) == nil) {
			t.Fatalf("the same text: %t; %s and %s differ in %v", same, NewGiven(s), NewGiven(o), NewGiven(s).Differs(o))
		}
	})
}

func must(s Settings, ok bool) Settings {
	if !ok {
		panic("not known")
	}
	return s
}

// TestGivenDiffers: in what a lease is outdated, and what is no reason.
func TestGivenDiffers(t *testing.T) {
	long := func(s *Settings) {
		for i := range 40 {
			s.Routes = append(s.Routes, Route{Dst: netip.PrefixFrom(netip.AddrFrom4([4]byte{172, 16, byte(i), 0}), 24)})
		}
	}
	for name, tc := range map[string]struct {
		given Given
		now   Settings
		want  []string
	}{
		"nothing changed":              {NewGiven(settings()), settings(), nil},
		"all changed":                  {NewGiven(settings()), Settings{Gateway: ip("10.20.0.254")}, SettingNames()},
		"nothing, and all is said now": {NewGiven(Settings{}), settings(), SettingNames()},
		"the gateway went":             {NewGiven(settings()), settings(func(s *Settings) { s.Gateway = netip.Addr{} }), []string{"gateway"}},
		"the host's gateway, and the pool's changed": {
			NewGiven(settings(func(s *Settings) { s.Gateway, s.GatewayFrom = ip("10.20.0.3"), FromHost })), settings(), nil,
		},
		"the host's gateway, and the pool has none any more": {
			NewGiven(settings(func(s *Settings) { s.Gateway, s.GatewayFrom = ip("10.20.0.3"), FromHost })),
			settings(func(s *Settings) { s.Gateway = netip.Addr{} }), []string{"gateway"},
		},
		"the annotation's gateway, and the pool has none any more": {
			NewGiven(settings(func(s *Settings) { s.Gateway, s.GatewayFrom = ip("10.20.0.3"), FromAnnotation })),
			settings(func(s *Settings) { s.Gateway = netip.Addr{} }), nil,
		},
		"the order of routes":          {NewGiven(settings()), settings(func(s *Settings) { s.Routes = []Route{s.Routes[1], s.Routes[0]} }), []string{"routes"}},
		"one of many routes":           {NewGiven(settings(long)), settings(long, func(s *Settings) { s.Routes = s.Routes[1:] }), []string{"routes"}},
		"many routes as before":        {NewGiven(settings(long)), settings(long), nil},
		"DNS of another kind":          {NewGiven(settings()), settings(func(s *Settings) { s.DNS.Search, s.DNS.Options = s.DNS.Options, s.DNS.Search }), []string{"dns"}},
		"not known":                    {"", settings(), nil},
		"no JSON":                      {"gateway 10.20.0.1", settings(), nil},
		"a gateway that is no address": {GivenOf(GivenFields{Gateway: "gw"}), settings(), nil},
		"a route that is no route":     {GivenOf(GivenFields{Routes: []string{"10.8.0.0"}}), settings(), nil},
		"a hop that is no address":     {GivenOf(GivenFields{Routes: []string{"10.8.0.0/16 via x"}}), settings(), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.given.Differs(tc.now); !slices.Equal(got, tc.want) {
				t.Errorf("%s differs in %v, want %v", tc.given, got, tc.want)
			}
		})
	}
}

// A container keeps what it was given, also where it is bound again; the next one has what its request says; whoever
// gives an address up leaves nothing.
func TestGivenStaysWithItsContainer(t *testing.T) {
	was, is := NewGiven(settings()), NewGiven(Settings{})
	l := held(Active, func(l *Lease) { l.Given = was })
	now30 := at(30)
	for name, tc := range map[string]struct {
		from Lease
		to   Holder
		want Given
	}{
		"the same container":                      {l, holder(func(h *Holder) { h.Given = is }), was},
		"the same container, not known before":    {held(Active), holder(func(h *Holder) { h.Given = is }), is},
		"nobody's container":                      {l, holder(container(""), func(h *Holder) { h.Given = is }), was},
		"another container":                       {l, holder(container("c2"), func(h *Holder) { h.Given = is }), is},
		"another container of an earlier release": {l, holder(container("c2")), ""},
	} {
		t.Run(name, func(t *testing.T) {
			next, ok := Bind(tc.from, oldParams, tc.to, tc.from.Retention, now30)
			if !ok || next.Given != tc.want {
				t.Errorf("ok %t, given %q, want %q", ok, next.Given, tc.want)
			}
		})
	}
	migrating := both(func(l *Lease) { l.Given = was })
	migrating.Other.Given = is
	if next, _ := Release(migrating, now30, Change{}); next.Given != is || next.ContainerID != "c2" {
		t.Errorf("the second attachment alone has %q", next.Given)
	}
	free, _ := Free(l, now30, Change{})
	kept, _ := Release(held(Active, func(l *Lease) { l.Given, l.Claim = was, "shop/web" }), now30, Change{})
	quarantined, _ := Quarantine(held(Active, func(l *Lease) { l.Given, l.Retention = was, Retention{} }), "02:00:00:00:00:01", now30)
	for state, next := range map[State]Lease{Available: free, Reserved: kept} {
		if next.State != state || next.Given != "" {
			t.Errorf("%s: %q", next.State, next.Given)
		}
	}
	if quarantined.State != Reserved || quarantined.Given != "" {
		t.Errorf("quarantined: %s, %q", quarantined.State, quarantined.Given)
	}
}

// TestOutdated: leases are counted by what they were given; what is not known is counted by itself.
func TestOutdated(t *testing.T) {
	now := settings()
	given := func(change ...func(*Settings)) Lease {
		return held(Active, func(l *Lease) { l.Given = NewGiven(settings(change...)) })
	}
	o := NewOutdated(now)
	vlan := func(s *Settings) { s.VLAN = 99 }
	migrating := given()
	second := target(func(h *Holder) { h.Given = NewGiven(settings(vlan)) })
	migrating.Other = &second
	for _, l := range []Lease{
		given(), given(vlan), given(vlan, func(s *Settings) { s.DNS = nil }), migrating, held(Active), held(Reserved), held(Available),
	} {
		o.Add(l)
	}
	if o.Leases != 3 || o.Unknown != 1 || !cmp.Equal(o.By, map[string]int{"vlan": 3, "dns": 1}) {
		t.Errorf("%d outdated, %d unknown, %v", o.Leases, o.Unknown, o.By)
	}
}

// The gateway that a holder uses is the one that it was given.
func TestUsedGateway(t *testing.T) {
	l := held(Active)
	if l.UsedGateway() != oldParams.Gateway {
		t.Errorf("not known: %s", l.UsedGateway())
	}
	if l.Given = NewGiven(settings()); l.UsedGateway() != ip("10.20.0.1") {
		t.Errorf("given: %s", l.UsedGateway())
	}
	if l.Given = NewGiven(Settings{}); l.UsedGateway().IsValid() {
		t.Errorf("given none: %s", l.UsedGateway())
	}
}
