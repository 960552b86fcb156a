package index

import (
	"strings"
	"testing"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// wanted is a request as want makes it, where a variable has that name.
func wanted(options ...func(*ipam.PickRequest)) ipam.PickRequest { return want(options...) }

// Every state that an address can have, and who asks for it: by the request, or by an annotation that allows this one
// alone. The refusal is the same sentence, names the pool of the address, and does not advise to undo what somebody did
// on purpose.
func TestWhyNotAnAddress(t *testing.T) {
	const claimed = "shop/web"
	world := func() *Index {
		plan := newPlan(t, ipam.PlanSpec{
			Net: "10.0.0.0", Mask: 24, Gateway: "10.0.0.1", Available: []string{"10.0.0.0-10.0.0.31", "10.0.0.255"},
			Exclude: []string{"10.0.0.30-10.0.0.31"},
		})
		p := pool(t, "own", "10.0.0.0/24", []string{"10.0.0.2"}, namespaces("shop"), coolFor(time.Hour))
		p.Plan = plan
		x := indexOf(p,
			pool(t, "aaa", "10.9.0.0/24", []string{"10.9.0.10"}, namespaces("zoo")),
			pool(t, "theirs", "10.1.0.0/24", []string{"10.1.0.10"}, namespaces("bank")),
			pool(t, "elsewhere", "10.2.0.0/24", []string{"10.2.0.10"}, namespaces("shop"), hosts(host2)),
			pool(t, "shut", "10.3.0.0/24", []string{"10.3.0.10"}, namespaces("shop"), cordoned),
		)
		x.take("own", "10.0.0.10", "10.0.0.99")
		kept := reserved("10.0.0.11", "own", x.Feed.Seen()+1)
		kept.Claim, kept.Fixed = "shop/other", true
		x.Feed.Watched(kept)
		aside, _ := lease.Reserve(available("10.0.0.12", "own", x.Feed.Seen()+1), lease.Params{Pool: "own", Bits: 24}, at(1),
			lease.Change{Verb: lease.VerbReserve, By: "ann", Reason: "the printer"})
		x.Feed.Watched(aside)
		contested, _ := lease.Quarantine(leased("10.0.0.13", "own", x.Feed.Seen()+1), "02:00:5e:10:00:01", at(1))
		x.Feed.Watched(contested)
		deleted := available("10.0.0.14", "own", x.Feed.Seen()+1)
		deleted.Deleting = true
		x.Feed.Watched(deleted)
		x.Feed.Watched(gaveUp("10.0.0.15", "own", x.Feed.Seen()+1, 1))
		x.Pools.SetNode("node-1", node("10.0.0.16"))
		x.MarkUnknown(ip("10.0.0.17"), 0, "other", at(1))
		return x
	}
	for addr, want := range map[string]string{
		"10.0.0.0":   "address 10.0.0.0 is the network address of pool own (10.0.0.0/24)",
		"10.0.0.255": "address 10.0.0.255 is the broadcast address of pool own (10.0.0.0/24)",
		"10.0.0.1":   "address 10.0.0.1 is the gateway of pool own (10.0.0.0/24)",
		"10.0.0.30":  "address 10.0.0.30 is among the excludeIPs of pool own (10.0.0.0/24)",
		"10.0.0.77":  "address 10.0.0.77 is not one of the addresses of pool own (10.0.0.0/24)",
		"10.1.0.10":  "address 10.1.0.10 is in pool theirs, which does not serve namespace shop",
		"10.2.0.10":  "address 10.2.0.10 is in pool elsewhere, which host 192.168.0.1 may not draw from",
		"10.3.0.10":  "address 10.3.0.10 is in pool shut, which allocates nothing: it is cordoned",
		"10.0.0.10":  "address 10.0.0.10 of pool own is held by shop/pod-of-10.0.0.10 on host 192.168.0.1",
		"10.0.0.99": "address 10.0.0.99 is held by shop/pod-of-10.0.0.99 on host 192.168.0.1, and pool own no longer has it: " +
			"it drains",
		"10.0.0.11": "address 10.0.0.11 of pool own is kept for claim shop/other",
		"10.0.0.12": "address 10.0.0.12 of pool own is reserved by ann: the printer",
		"10.0.0.13": "address 10.0.0.13 of pool own is quarantined until " + at(3601).Format(time.RFC3339) +
			": 02:00:5e:10:00:01 answered for it",
		"10.0.0.14": "the object of address 10.0.0.14 of pool own is being deleted",
		"10.0.0.15": "address 10.0.0.15 of pool own is cooling after shop/pod-of-10.0.0.15: it is free in 59m51s",
		"10.0.0.16": "address 10.0.0.16 of pool own is the address of node node-1",
		"10.0.0.17": "address 10.0.0.17 of pool own is being given to another request",
	} {
		for who, w := range map[string]ipam.PickRequest{
			"request":    wanted(asking(addr)),
			"annotation": wanted(among(addr)),
			"claim":      wanted(among(addr), func(w *ipam.PickRequest) { w.Claim = claimed }),
		} {
			t.Run(addr+" by "+who, func(t *testing.T) {
				_, refusal := world().Pick(w, at(10))
				if refusal == nil {
					t.Fatal("it is given away")
				}
				said := refusal.Message
				if who != "request" {
					var ok bool
					if said, ok = strings.CutPrefix(said, "no available IP for pod shop/a: "); !ok {
						t.Errorf("it does not begin as all such refusals do: %s", said)
					}
				}
				if said != want {
					t.Errorf("said %q\nwant %q", said, want)
				}
				if undone := strings.Contains(refusal.Hint, "excludeIPs") || strings.Contains(refusal.Hint, "add-ip") &&
					!strings.Contains(want, "not one of the addresses"); undone {
					t.Errorf("hint %q undoes what somebody did on purpose", refusal.Hint)
				}
			})
		}
		x := world()
		x.core.state.Now = at(10).UnixNano()
		if _, refusal := x.Candidate(ip(addr), at(10)); refusal != nil && refusal.Message != want {
			t.Errorf("ip describe says %q, a refusal %q", refusal.Message, want)
		}
	}
	t.Run("for a namespace without pools", func(t *testing.T) {
		for who, w := range map[string]ipam.PickRequest{"request": want(asking("10.0.0.5"), inNamespace("new")),
			"annotation": want(among("10.0.0.5"), inNamespace("new"))} {
			_, refusal := world().Pick(w, at(10))
			if refusal == nil || !strings.Contains(refusal.Message, "in pool own, which does not serve namespace new") ||
				!strings.HasSuffix(refusal.Hint, "pool bind own --namespace new --dry-run=server") {
				t.Errorf("%s: %v", who, refusal)
			}
		}
	})
}
