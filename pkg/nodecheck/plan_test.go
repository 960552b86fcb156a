package nodecheck

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestChoosePeers: nobody asks itself or anybody twice, each is asked by Ring others at least, and all by all where
// they are few.
func TestChoosePeers(t *testing.T) {
	for _, n := range []int{0, 1, 2, AllPeers, AllPeers + 1, AllPeers + 2, 500} {
		want := n - 1
		if want > AllPeers {
			want = Ring + Drawn
		}
		askedBy := make([]int, n)
		for i, peers := range ChoosePeers(n, rand.New(rand.NewPCG(1, uint64(n)))) {
			if len(peers) != want {
				t.Errorf("of %d: %d asks %d, want %d", n, i, len(peers), want)
			}
			slices.Sort(peers)
			if slices.Contains(peers, i) || len(slices.Compact(slices.Clone(peers))) != len(peers) {
				t.Errorf("of %d: %d asks %d", n, i, peers)
			}
			for _, j := range peers {
				askedBy[j]++
			}
		}
		for i, count := range askedBy {
			if count < min(want, Ring) {
				t.Errorf("of %d: %d is asked by %d alone", n, i, count)
			}
		}
	}
}

// largest returns a plan of as many peers and addresses as there may be, and the report that none of them was reached.
func largest() (Plan, Report) {
	var p Plan
	r := Report{Links: []Link{}}
	for i := range 2 {
		p.Own = append(p.Own, Own{Addr: netip.MustParseAddr(fmt.Sprint("2001:db8::", i+1))})
		r.Links = append(r.Links, Link{
			GatewayWhy: strings.Repeat("w", 1000), Unasked: strings.Repeat("u", 1000), Others: slices.Repeat([]string{"02:00:00:00:00:01"}, 50),
		})
	}
	for i := range AllPeers {
		p.Peers = append(p.Peers, Peer{
			Name: strings.Repeat("n", 63), Addrs: []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("2001:db8::1")},
		})
		for j := range 2 {
			r.Lost = append(r.Lost, Lost{Peer: i, Addr: j, Why: strings.Repeat("y", 1000)})
		}
	}
	return p, r
}

// TestReportFits: Kubernetes cuts what is longer than 4096 bytes, so that it could not be read.
func TestReportFits(t *testing.T) {
	p, r := largest()
	text, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > maxReport {
		t.Errorf("%d bytes", len(text))
	}
	got, err := ReadReport(string(text), p)
	if err != nil {
		t.Fatal(err)
	}
	whys := cmp.Options{cmpopts.IgnoreFields(Lost{}, "Why"), cmpopts.IgnoreFields(Link{}, "GatewayWhy", "Unasked", "Others")}
	if diff := cmp.Diff(&r, got, whys); diff != "" {
		t.Errorf("what was found (-want +got)\n%s", diff)
	}
}

func TestSmallReportKeepsReasons(t *testing.T) {
	p, _ := largest()
	r := Report{Lost: []Lost{{Peer: 3, Addr: 1, Why: "no route to host"}}, Links: []Link{{Gateway: true}, {Unasked: "no right"}}}
	text, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := ReadReport(string(text), p)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&r, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestReadReportRefuses(t *testing.T) {
	p, _ := largest()
	for name, text := range map[string]string{
		"nothing":                 "",
		"no JSON":                 "panic: …",
		"too few addresses":       `{"links":[{}]}`,
		"a peer that is none":     `{"links":[{},{}],"lost":[{"p":32}]}`,
		"a negative peer":         `{"links":[{},{}],"lost":[{"p":-1}]}`,
		"an address that is none": `{"links":[{},{}],"lost":[{"p":1,"a":2}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			if r, err := ReadReport(text, p); err == nil {
				t.Errorf("%+v, want an error", r)
			}
		})
	}
}

func TestPlan(t *testing.T) {
	p, _ := largest()
	text, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := ReadPlan([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p, got, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if _, err := ReadPlan([]byte("{")); err == nil {
		t.Error("a plan that is cut is read")
	}
}

// FuzzReport: a report that is taken is about the plan's addresses and peers alone.
func FuzzReport(f *testing.F) {
	f.Add(`{"own":["10.0.0.1"],"peers":[{"name":"a","addrs":["10.0.0.2"]}]}`, `{"lost":[{"peer":0,"addr":0}],"links":[{}]}`)
	f.Add(`{}`, `{"lost":[{"peer":-1}]}`)
	f.Fuzz(func(t *testing.T, plan, text string) {
		p, err := ReadPlan([]byte(plan))
		if err != nil {
			return
		}
		r, err := ReadReport(text, p)
		if err != nil {
			return
		}
		if len(r.Links) != len(p.Own) {
			t.Errorf("%q is about %d addresses of %d", text, len(r.Links), len(p.Own))
		}
		for _, l := range r.Lost {
			_ = p.Peers[l.Peer].Addrs[l.Addr]
		}
	})
}
