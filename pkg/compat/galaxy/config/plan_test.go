package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
)

// of reads entries of one node subnet each, written "node subnet, subnet, range..."; the gateway is the subnet's first
// address.
func of(t *testing.T, entries ...string) []Entry {
	t.Helper()
	var list []string
	for _, e := range entries {
		words := strings.Fields(e)
		ips := `["` + strings.Join(words[2:], `","`) + `"]`
		gateway := prefix(words[1]).Addr().Next().String()
		list = append(list, entry(map[string]string{
			"routableSubnet": `"` + words[0] + `"`, "subnet": `"` + words[1] + `"`, "gateway": `"` + gateway + `"`, "ips": ips,
		}))
	}
	out, err := Parse([]byte("[" + strings.Join(list, ",") + "]"))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// pools are what some entries come to, under given names.
func pools(t *testing.T, named ...string) (out []*v1.BCSNetPool) {
	t.Helper()
	for _, n := range named {
		name, e, _ := strings.Cut(n, " ")
		p := &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: name}}
		of(t, e)[0].Set(&p.Spec)
		out = append(out, p)
	}
	return out
}

// Which pool an entry gets decides whether leases stay with the hosts that they are for.
func TestMake(t *testing.T) {
	const (
		rackA = "10.0.0.0/24 10.0.70.0/24 10.0.70.2~10.0.70.9"
		rackB = "10.0.1.0/24 10.0.70.0/24 10.0.70.20~10.0.70.29"
		first = "floatingip-10.0.70.0-24"
	)
	for name, tc := range map[string]struct {
		ours    []string
		taken   []string
		entries []string
		want    []string // a name for each entry, with "new" behind it where there is no pool
		gone    []string
	}{
		"the first time": {entries: []string{rackA}, want: []string{first + " new"}},
		"two of one subnet": {entries: []string{rackA, rackB, "10.0.0.0/24 10.0.71.0/24 10.0.71.9"},
			want: []string{first + " new", first + "-2 new", "floatingip-10.0.71.0-24 new"}},
		"as before": {ours: []string{first + " " + rackA}, entries: []string{rackA}, want: []string{first}},
		"another place": {ours: []string{first + " " + rackA, first + "-2 " + rackB}, entries: []string{rackB, rackA},
			want: []string{first + "-2", first}},
		"other node subnets": {ours: []string{first + " " + rackA, first + "-2 " + rackB},
			entries: []string{"10.0.9.0/24 10.0.70.0/24 10.0.70.20~10.0.70.29", rackA}, want: []string{first + "-2", first}},
		"other addresses": {ours: []string{first + " " + rackA, first + "-2 " + rackB},
			entries: []string{"10.0.0.0/24 10.0.70.0/24 10.0.70.100~10.0.70.109", rackB}, want: []string{first, first + "-2"}},
		"addresses and node subnets swapped": {ours: []string{first + " " + rackA, first + "-2 " + rackB},
			entries: []string{"10.0.0.0/24 10.0.70.0/24 10.0.70.20~10.0.70.29", "10.0.1.0/24 10.0.70.0/24 10.0.70.2~10.0.70.9"},
			want:    []string{first + "-2", first}},
		"the first of two goes": {ours: []string{first + " " + rackA, first + "-2 " + rackB}, entries: []string{rackB},
			want: []string{first + "-2"}, gone: []string{first}},
		"another subnet": {ours: []string{first + " " + rackA}, entries: []string{"10.0.0.0/24 10.0.70.0/25 10.0.70.2~10.0.70.9"},
			want: []string{"floatingip-10.0.70.0-25 new"}, gone: []string{first}},
		"all go":               {ours: []string{first + " " + rackA}, gone: []string{first}},
		"somebody else's name": {taken: []string{first}, entries: []string{rackA}, want: []string{first + "-2 new"}},
		"a shorter prefix is another subnet": {ours: []string{"floatingip-64.0.0.0-24 10.0.0.0/24 64.0.0.0/24 64.0.0.9"},
			entries: []string{"10.0.0.0/24 64.0.0.0/2 64.0.0.9"}, want: []string{"floatingip-64.0.0.0-2 new"},
			gone: []string{"floatingip-64.0.0.0-24"}},
		"IPv6": {entries: []string{"10.0.0.0/24 2001:db8::/64 2001:db8::9"},
			want: []string{"floatingip-2001-0db8-0000-0000-0000-0000-0000-0000-64 new"}},
	} {
		t.Run(name, func(t *testing.T) {
			taken := map[string]bool{}
			for _, n := range tc.taken {
				taken[n] = true
			}
			ours := pools(t, tc.ours...)
			check := func() {
				t.Helper()
				plan := Make(of(t, tc.entries...), ours, taken)
				var got, gone []string
				for _, w := range plan.Wanted {
					if w.Pool == nil {
						w.Name += " new"
					}
					got = append(got, w.Name)
				}
				for _, p := range plan.Gone {
					gone = append(gone, p.Name)
				}
				if diff := cmp.Diff([][]string{tc.want, tc.gone}, [][]string{got, gone}); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
			check()
			slices.Reverse(ours) // the order of a list of the cluster does not matter
			check()
		})
	}
}

// What the document says is put back; what it says nothing of stays.
func TestSet(t *testing.T) {
	e := of(t, "10.0.0.0/24 10.0.70.0/24 10.0.70.2~10.0.70.9 10.0.70.12")[0]
	s := v1.BCSNetPoolSpec{
		Net: "10.0.9.0", Mask: 25, Gateway: "10.0.9.1", VLAN: 7, HostSubnets: []string{"10.9.0.0/16"},
		AvailableIPs: []string{"10.0.9.9"},
		Hosts:        []string{"10.0.0.11"}, ExcludeIPs: []string{"10.0.70.3"}, Priority: 4, Cordoned: true,
	}
	e.Set(&s)
	want := v1.BCSNetPoolSpec{
		Net: "10.0.70.0", Mask: 24, Gateway: "10.0.70.1", VLAN: 2, HostSubnets: []string{"10.0.0.0/24"},
		AvailableIPs: []string{"10.0.70.2~10.0.70.9", "10.0.70.12"},
		Hosts:        []string{"10.0.0.11"}, ExcludeIPs: []string{"10.0.70.3"}, Priority: 4, Cordoned: true,
	}
	if diff := cmp.Diff(want, s); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRetire(t *testing.T) {
	for name, tc := range map[string]struct {
		entries []string
		want    string
	}{
		"nobody else has them":   {[]string{"10.0.0.0/24 10.0.71.0/24 10.0.71.9"}, "10.0.70.2~10.0.70.9 10.0.70.12"},
		"others have some":       {[]string{"10.0.0.0/24 10.0.70.0/25 10.0.70.4~10.0.70.20"}, "10.0.70.2~10.0.70.3"},
		"others have all":        {[]string{"10.0.0.0/24 10.0.70.0/25 10.0.70.2~10.0.70.20"}, ""},
		"the document is empty":  {nil, "10.0.70.2~10.0.70.9 10.0.70.12"},
		"others, of two entries": {[]string{"10.0.0.0/24 10.0.70.0/25 10.0.70.2", "10.0.0.0/24 10.0.70.0/25 10.0.70.12"}, "10.0.70.3~10.0.70.9"},
	} {
		t.Run(name, func(t *testing.T) {
			p := pools(t, "a 10.0.0.0/24 10.0.70.0/24 10.0.70.2~10.0.70.9 10.0.70.12")[0]
			Retire(p, of(t, tc.entries...))
			if got := strings.Join(p.Spec.AvailableIPs, " "); got != tc.want {
				t.Errorf("%s is left, want %s", got, tc.want)
			}
		})
	}
}
