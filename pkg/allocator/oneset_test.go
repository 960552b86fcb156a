package allocator

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// What an attachment keeps of what several replicas took for it, in the notation
// ADDRESS@BOUND[<VERSION] NETWORK SETSIZE CONTAINER [slot]: "4a@1 blue 1 c". The address begins with its family. One
// whose version is lower than the one it was bound with was written again after the store had been put back. A
// container "-" is none, "vm:c" one of an owner, who asked without any for "vm".
func TestOneSet(t *testing.T) {
	for what, test := range map[string]struct{ all, keep, over string }{
		"one":    {"4a@1 blue 1 c", "4a", ""},
		"a pair": {"4a@1 blue 2 c, 6a@2 blue 2 c", "4a 6a", ""},
		"a pair, one pool of it is in another network now": {"4a@1 blue 2 c, 6a@2 green 2 c", "4a 6a", ""},
		"half a pair":                            {"4a@1 blue 2 c", "4a", ""},
		"a pair that moves to a newer container": {"4a@9 blue 2 d, 6a@2 blue 2 c", "4a 6a", ""},
		"two of one family":                      {"4a@1 blue 1 c, 4b@2 blue 1 c", "4a", "4b"},
		"two of one family, the newer container": {"4a@1 blue 1 c, 4b@2 blue 1 d", "4b", "4a"},
		"two networks, IPv6 first":               {"6a@1 green 1 c, 4a@2 blue 1 c", "6a", "4a"},
		"two networks, IPv4 first":               {"4a@1 blue 1 c, 6a@2 green 1 c", "4a", "6a"},
		"two networks, the newer container":      {"4a@1 blue 1 c, 6a@2 green 1 d", "6a", "4a"},
		"one and a pair":                         {"4a@2 blue 1 c, 4b@1 green 2 c, 6b@3 green 2 c", "4a", "4b 6b"},
		"a pair and one":                         {"4a@3 blue 1 c, 4b@1 green 2 c, 6b@2 green 2 c", "4b 6b", "4a"},
		"one and half a pair":                    {"6a@2 blue 1 c, 4b@1 green 2 c", "6a", "4b"},
		"two pairs":                              {"4a@1 blue 2 c, 4b@2 green 2 c, 6b@3 green 2 c, 6a@4 blue 2 c", "4b 6b", "4a 6a"},
		"two pairs, crossed":                     {"4a@1 blue 2 c, 6b@2 green 2 c, 6a@3 blue 2 c, 4b@4 green 2 c", "4a 6a", "4b 6b"},
		"a pair and half":                        {"4a@1 blue 2 c, 4b@2 green 2 c, 6b@3 green 2 c", "4b 6b", "4a"},
		"two halves of a pair":                   {"4a@1 blue 2 c, 4b@2 green 2 c", "4a", ""},
		"two pairs of one network":               {"4a@1 blue 2 c, 4b@2 blue 2 c, 6b@3 blue 2 c, 6a@4 blue 2 c", "4a 6b", "4b 6a"},
		"ranges of two networks":                 {"4a@1 blue 2 c, 4b@2 green 2 c 1, 4c@3 blue 2 c, 4d@4 blue 2 c 1", "4a 4b", "4c 4d"},
		"ranges, half of the first":              {"4a@1 blue 2 c, 4c@3 blue 2 c, 4d@4 green 2 c 1", "4a 4d", "4c"},
		"put back":                               {"4a@9<3 blue 1 c, 4b@2 blue 1 c", "4a", "4b"},
		"both put back":                          {"4a@9<3 blue 1 c, 4b@8<4 blue 1 c", "4b", "4a"},
		"put back, the newer container":          {"4a@9<3 blue 1 c, 4b@2 blue 1 d", "4b", "4a"},
		"a pair put back":                        {"4a@8<2 blue 2 c, 6a@9<3 blue 2 c, 4b@4 green 2 c, 6b@5 green 2 c", "4a 6a", "4b 6b"},
		"put back, and made again":               {"4a@9<3 blue 1 c, 4b@2 blue 1 -", "4a", "4b"},
		"made again from the pod's report":       {"4a@1 blue 1 c, 6a@2 green 1 -", "4a 6a", ""},
		"made again, both":                       {"4a@1 blue 1 -, 6a@2 green 1 -", "4a 6a", ""},
		"made again beside a container's":        {"4a@1 blue 1 c, 4b@2 blue 1 -", "4a", "4b"},
		"made again before a container's":        {"4a@2 blue 1 c, 4b@1 blue 1 -", "4b", "4a"},
		"made again by an earlier release":       {"4a@1 blue 2 c, 6a@2 blue 0 c", "4a 6a", ""},
		"made again by it, and moved":            {"4a@3 blue 2 d, 6a@2 blue 0 c", "4a 6a", ""},
		"made again by it, both":                 {"4a@1 blue 0 c, 6a@2 blue 0 c", "4a 6a", ""},
		"made again by it, beside another":       {"4a@1 blue 2 c, 6a@2 blue 0 c, 4b@3 green 1 c", "4a 6a", "4b"},
		"made again by it, beside an earlier":    {"4a@2 blue 2 c, 6a@3 blue 0 c, 4b@1 green 1 c", "4b", "4a 6a"},
		"one and a pair of one network":          {"4a@1 blue 1 c, 4b@2 blue 2 c, 6b@3 blue 2 c", "4a", "4b 6b"},
		"two of no network":                      {"4a@1 - 1 c, 6a@2 - 1 c", "4a", "6a"},
		"made again, and a pair and one":         {"4a@1 blue 1 c, 6a@2 green 1 -, 4b@3 blue 1 c", "4a 6a", "4b"},
		"of an owner, and a container of his":    {"4a@1 blue 1 vm, 4b@2 blue 1 vm:c", "4a", "4b"},
		"of an owner, a container of his first":  {"4a@2 blue 1 vm, 4b@1 blue 1 vm:c", "4b", "4a"},
		"of an owner, and two containers of his": {"4a@1 blue 1 vm:c, 4b@2 blue 1 vm, 4c@3 blue 1 vm:d", "4b", "4a 4c"},
		"of an owner, after two containers":      {"4a@1 blue 1 vm:c, 4b@3 blue 1 vm, 4c@2 blue 1 vm:d", "4c", "4a 4b"},
		"two containers of an owner":             {"4a@1 blue 1 vm:c, 4b@2 blue 1 vm:d", "4b", "4a"},
		"two networks of an owner":               {"6a@1 green 1 vm:c, 4a@2 blue 1 vm", "6a", "4a"},
		"a pair of an owner, and one":            {"4a@3 blue 1 vm:c, 4b@1 green 2 vm, 6b@2 green 2 vm", "4b 6b", "4a"},
	} {
		t.Run(what, func(t *testing.T) {
			networks, all := map[string]string{}, []lease.Lease{}
			for text := range strings.SplitSeq(test.all, ", ") {
				l := leaseFrom(t, text, networks)
				all = append(all, l)
			}
			for range all { // whatever comes first
				all = append(all[1:], all[0])
				keep, over := oneSet(all, func(pool string) string { return networks[pool] })
				if diff := cmp.Diff([]string{test.keep, test.over}, []string{shortNames(keep), shortNames(over)}); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			}
		})
	}
}

// leaseFrom reads the notation of TestOneSet.
func leaseFrom(t *testing.T, text string, networks map[string]string) (l lease.Lease) {
	t.Helper()
	fields := strings.Fields(text)
	name, version, _ := strings.Cut(fields[0], "@")
	l.State, l.IfName, l.PodName, l.Pool = lease.Active, "eth0", "p", name
	networks[name] = strings.Trim(fields[1], "-")
	letter := name[1] - 'a' + 10
	if l.Addr = netip.AddrFrom4([4]byte{10, 0, 0, letter}); name[0] == '6' {
		l.Addr = netip.AddrFrom16([16]byte{0xfd, 15: letter})
	}
	l.Version, l.SetSize = uint64(version[0]-'0'), int(fields[2][0]-'0')
	if bound, again, ok := strings.Cut(version, "<"); ok {
		l.BoundVersion, l.Version = uint64(bound[0]-'0'), uint64(again[0]-'0')
	}
	l.StartedAt = time.Unix(1_700_000_000, 0)
	if strings.HasPrefix(fields[3], "vm") { // an owner; without a container it asked last
		l.Owner, l.PodName = "vm", ""
		if fields[3] = strings.TrimPrefix(strings.TrimPrefix(fields[3], "vm"), ":"); fields[3] == "" {
			fields[3] = "-"
		}
	}
	switch l.ContainerID = fields[3]; l.ContainerID {
	case "-":
		l.ContainerID = ""
		l.StartedAt = l.StartedAt.Add(time.Minute)
	case "d":
		l.StartedAt = l.StartedAt.Add(time.Second)
	}
	if len(fields) > 4 {
		l.Slot = int(fields[4][0] - '0')
	}
	return l
}

func shortNames(ls []lease.Lease) string {
	var out []string
	for _, l := range byAddr(ls) {
		out = append(out, l.Pool)
	}
	return strings.Join(out, " ")
}

// Rule 5: two replicas that serve one container at once, for whose host there are pools of two families in two
// networks, from different pictures: one network, the same everywhere, of which the address was written first.
func TestOneContainerInTwoNetworks(t *testing.T) {
	for what, ipv6First := range map[string]bool{"ipv6-first": true, "ipv4-first": false} {
		t.Run(what, func(t *testing.T) {
			a, b := newSite("9"), newSite()
			a.pool.Spec.Network = "blue"
			number := b.addr(0).As4()
			prefix := fmt.Sprintf("fd00:%x:%x::", number[1], number[2])
			b.pool.Spec = v1.BCSNetPoolSpec{
				Network: "green", Net: prefix, Mask: 64, Gateway: prefix + "1", AvailableIPs: []string{prefix + "9"},
				Hosts: a.pool.Spec.Hosts, Materialize: v1.MaterializeOnDemand,
			}
			one, two := newReplica(t, a.pool, b.pool), newReplica(t, a.pool, b.pool)
			p := newPod(t, "networks-"+what, a.host, one, two)
			request := a.of(p, p.Name+"-c")
			one.watch.Shut()
			two.watch.Shut()
			first, second := one, two
			if !ipv6First {
				first, second = two, one
			}
			one.index.MarkUnknown(a.addr(9), 0, "nobody", one.leases.Now()) // by its picture IPv4 is not to be had
			count := func() int { return len(a.held(t)) + len(b.held(t)) }
			answers := []<-chan outcome{first.adding(t.Context(), request)}
			controlplane.Until(t, "the first is stored", func() bool { return count() == 1 })
			want := addressesOf(a.held(t), b.held(t))
			answers = append(answers, second.adding(t.Context(), request))
			controlplane.Until(t, "the second is stored", func() bool { return count() == 2 })
			one.index.Forget(a.addr(9))
			one.watch.Open()
			two.watch.Open()
			for n, answer := range answers {
				if got := <-answer; got.err != nil || cmp.Diff(want, got.addrs, compareAddrs) != "" {
					t.Errorf("request %d is answered %v, %v; want %v", n, got.addrs, got.err, want)
				}
			}
			for _, r := range []*replica{one, two} {
				if got := r.add(request); cmp.Diff(want, got, compareAddrs) != "" {
					t.Errorf("again: %v, want %v", got, want)
				}
			}
			if held := addressesOf(a.held(t), b.held(t)); cmp.Diff(want, held, compareAddrs) != "" {
				t.Errorf("held: %v, want %v", held, want)
			}
		})
	}
}

func addressesOf(held ...map[netip.Addr]string) (out []netip.Addr) {
	for _, h := range held {
		for a := range h {
			out = append(out, a)
		}
	}
	return out
}

// An address that was made again from what a pod reports may be of another interface than those that are known: it is
// no second one of any of them, nor are they of it.
func TestUnknownInterfaceIsNoDuplicate(t *testing.T) {
	x := index.New()
	known := lease.Lease{
		Addr: netip.MustParseAddr("10.9.0.1"), Version: 1, State: lease.Active, Params: lease.Params{Pool: "p"},
		Holder: lease.Holder{Namespace: "default", PodName: "web", PodUID: "u1", IfName: "eth0", ContainerID: "c1"},
	}
	unknown := known
	unknown.Addr, unknown.Version, unknown.ContainerID, unknown.IfName = netip.MustParseAddr("10.9.0.2"), 2, "", ""
	second := known
	second.Addr, second.Version, second.PodUID = netip.MustParseAddr("10.9.0.3"), 3, "u2"
	third := second
	third.Addr, third.Version = netip.MustParseAddr("10.9.0.4"), 4
	a := &Allocator{index: x}
	for _, l := range []lease.Lease{known, unknown, second, third} {
		x.Feed.Watched(l)
	}
	for l, want := range map[*lease.Lease]bool{&known: false, &unknown: false, &second: true, &third: true} {
		if got := a.isDuplicate(*l); got != want {
			t.Errorf("%s on %q is a duplicate: %t, want %t", l.Addr, l.IfName, got, want)
		}
	}
}

// Rule 5: a replica whose watch is behind knows of what another one did in part, from reads and its own writes. The set
// that is whole by that picture is not the one that was whole first, and nothing goes until the watch has come so far.
func TestPartOfTheFirstSetIsNotSeen(t *testing.T) {
	a, b, c := newSite("9"), newSite(), newSite()
	for s, network := range map[*site]string{&b: "blue", &c: "green"} {
		number := s.addr(0).As4()
		prefix := fmt.Sprintf("fd00:%x:%x::", number[1], number[2])
		s.pool.Spec = v1.BCSNetPoolSpec{
			Network: network, Net: prefix, Mask: 64, Gateway: prefix + "1", AvailableIPs: []string{prefix + "9"},
			Hosts: a.pool.Spec.Hosts, Materialize: v1.MaterializeOnDemand,
		}
	}
	a.pool.Spec.Network, a.pool.Spec.Priority, b.pool.Spec.Priority = "blue", 1, 1
	one, two := newReplica(t, a.pool, b.pool, c.pool), newReplica(t, a.pool, b.pool, c.pool)
	p := newPod(t, "part", a.host, one, two)
	request := a.of(p, "part-c")
	two.watch.Shut()
	want := one.add(request)
	if len(want) != 2 {
		t.Fatalf("got %v, want two addresses of one network", want)
	}
	two.index.MarkUnknown(a.addr(9), 0, "nobody", two.leases.Now()) // by its picture IPv4 is not to be had
	ctx, leave := context.WithCancel(t.Context())
	answer := two.adding(ctx, request)
	controlplane.Until(t, "the second set is stored", func() bool { return len(c.held(t)) == 1 })
	leave()
	<-answer
	two.index.Forget(a.addr(9))
	read, _ := one.index.Leases.Get(a.addr(9))
	two.index.Feed.Wrote(read) // as after a conflict

	ctx, leave = context.WithTimeout(t.Context(), time.Second)
	defer leave()
	got := <-two.adding(ctx, request)
	refused(t, got.err, ipam.ReasonOutcomeUnknown)
	if held := addressesOf(a.held(t), b.held(t)); len(held) != 2 {
		t.Fatalf("held of what was answered: %v, want %v", held, want)
	}
	two.watch.Open()
	for n, r := range []*replica{two, one} {
		if got := r.add(request); cmp.Diff(want, got, compareAddrs) != "" {
			t.Errorf("replica %d answers %v, want %v", n, got, want)
		}
	}
	if held := c.held(t); len(held) != 0 {
		t.Errorf("held of the second set: %v", held)
	}
}
