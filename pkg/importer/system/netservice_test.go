package system

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/importer"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

func oldIP(phase, pod, claim string, change ...func(*netserviceIP)) netserviceIP {
	var ip netserviceIP
	ip.Name = "10.1.0.20"
	ip.Status.Phase, ip.Status.IPClaimKey, ip.Status.UpdateTime = phase, claim, "2026-01-02T00:00:00Z"
	if pod != "" {
		ip.Status.PodNamespace, ip.Status.PodName, ip.Status.ContainerID, ip.Status.Host = "shop", pod, "c-"+pod, "10.0.0.11"
	}
	for _, c := range change {
		c(&ip)
	}
	return ip
}

func oldClaim(name, bound string, change ...func(*netserviceClaim)) netserviceClaim {
	var c netserviceClaim
	c.Namespace, c.Name = "shop", name
	if c.Status.Phase = "Pending"; bound != "" {
		c.Status.BoundedIP, c.Status.Phase = bound, "Bound"
	}
	for _, f := range change {
		f(&c)
	}
	return c
}

func netserviceRows(t *testing.T, ips []netserviceIP, claims []netserviceClaim) importer.Rows {
	t.Helper()
	return read(t, netservice(), map[string][]any{
		"bcsnetpools": nil, "bcsnetips": manifests(ips), "bcsnetipclaims": manifests(claims),
	})
}

func running(name string, addrs ...string) workload.Pod {
	p := workload.Pod{
		Namespace: "shop", Name: name, UID: "u-" + name, Node: "n", Created: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	for _, a := range addrs {
		p.Addrs = append(p.Addrs, netip.MustParseAddr(a))
	}
	return p
}

// What becomes of 10.1.0.20, in one line.
func TestMakeOneAddress(t *testing.T) {
	a := netip.MustParseAddr("10.1.0.20")
	now := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	ours := func(change func(*lease.Lease)) *lease.Lease {
		l := lease.Lease{Addr: a, Version: 7, Params: lease.Params{Pool: "old", Bits: 24}}
		change(&l)
		return &l
	}
	for name, tc := range map[string]struct {
		ips       []netserviceIP
		claims    []netserviceClaim
		pods      []workload.Pod
		ours      *lease.Lease
		ourClaims map[string]*v1.BCSNetIPClaim
		want      string   // state, holder or reason, claim
		conflicts []string // objects
		left      []string
		already   int
		made      []string // claims, their addresses and terms
	}{
		"free": {ips: []netserviceIP{oldIP("Available", "", "")}},
		"a pod's": {
			ips: []netserviceIP{oldIP("Active", "web", "")}, pods: []workload.Pod{running("web", "10.1.0.20")},
			want: "Active shop/web u-web c-web",
		},
		"a pod's, in the words of the earliest release": {
			ips:  []netserviceIP{oldIP("", "web", "", func(ip *netserviceIP) { ip.Status.Status = "Active" })},
			pods: []workload.Pod{running("web", "10.1.0.20")}, want: "Active shop/web u-web c-web",
		},
		"a pod's that reports nothing yet": {
			ips: []netserviceIP{oldIP("Active", "web", "")}, pods: []workload.Pod{running("web")}, want: "Active shop/web u-web c-web",
		},
		"a pod's that was made again since": {
			ips:  []netserviceIP{oldIP("Active", "web", "", func(ip *netserviceIP) { ip.Status.UpdateTime = "2025-12-31T23:00:00Z" })},
			pods: []workload.Pod{running("web")},
			want: "Active shop/web  c-web",
		},
		"a pod's that is gone": {ips: []netserviceIP{oldIP("Active", "web", "")}, want: "Active shop/web  c-web"},
		"a claim's, in use": {
			ips: []netserviceIP{oldIP("Active", "web", "shop/a")}, claims: []netserviceClaim{oldClaim("a", "10.1.0.20")},
			pods: []workload.Pod{running("web", "10.1.0.20")},
			want: "Active shop/web u-web c-web for shop/a", made: []string{"shop/a 10.1.0.20 Never"},
		},
		"a claim's": {
			ips:    []netserviceIP{oldIP("Reserved", "", "shop/a")},
			claims: []netserviceClaim{oldClaim("a", "10.1.0.20", func(c *netserviceClaim) { c.Spec.ExpiredDuration = "90m" })},
			want:   "Reserved netservice: bound to claim shop/a for shop/a",
			made:   []string{"shop/a 10.1.0.20 Timed 1h30m0s"},
		},
		"a claim's that does not say so yet": {
			ips: []netserviceIP{oldIP("Reserved", "", "shop/a")}, claims: []netserviceClaim{oldClaim("a", "")},
			want: "Reserved netservice: bound to claim shop/a for shop/a",
			made: []string{"shop/a 10.1.0.20 Never"},
		},
		"a claim's, without an object": {
			claims: []netserviceClaim{oldClaim("a", "10.1.0.20")},
			want:   "Reserved netservice: bound to claim shop/a for shop/a",
			made:   []string{"shop/a 10.1.0.20 Never"},
		},
		"asked for only": {
			ips:    []netserviceIP{oldIP("Available", "", "")},
			claims: []netserviceClaim{oldClaim("a", "", func(c *netserviceClaim) { c.Spec.BCSNetIPName = "10.1.0.20" })},
			made:   []string{"shop/a 10.1.0.20 Never"},
		},
		"a claim's that has expired": {
			ips: []netserviceIP{oldIP("Available", "", "")}, claims: []netserviceClaim{oldClaim("a", "",
				func(c *netserviceClaim) { c.Status.Phase = "Expired" })},
			left: []string{"BCSNetIPClaim shop/a"},
		},
		"for nobody": {ips: []netserviceIP{oldIP("Reserved", "", "")}, want: "Reserved netservice: it is Reserved for no claim"},
		"a missing claim's": {
			ips: []netserviceIP{oldIP("Reserved", "", "shop/a")}, conflicts: []string{"BCSNetIP 10.1.0.20"},
			want: "Reserved netservice: it belongs to claim shop/a, which does not exist",
		},
		"two claims'": {
			ips: []netserviceIP{oldIP("Reserved", "", "shop/a")}, claims: []netserviceClaim{oldClaim("a", "10.1.0.20"), oldClaim("b", "10.1.0.20")},
			conflicts: []string{"BCSNetIP 10.1.0.20"},
			want:      "Reserved netservice: it belongs to the claims shop/a and shop/b",
			made:      []string{"shop/a 10.1.0.20 Never", "shop/b 10.1.0.20 Never"},
		},
		"a claim's that asks for another": {
			ips:       []netserviceIP{oldIP("Reserved", "", "shop/a")},
			claims:    []netserviceClaim{oldClaim("a", "10.1.0.20", func(c *netserviceClaim) { c.Spec.BCSNetIPName = "10.1.0.21" })},
			conflicts: []string{"BCSNetIPClaim shop/a", "BCSNetIP 10.1.0.20"},
			want:      "Reserved netservice: it belongs to claim shop/a: it is bound to 10.1.0.20 and asks for…",
		},
		"another pod reports it": {
			ips: []netserviceIP{oldIP("Active", "web", "")}, pods: []workload.Pod{running("db", "10.1.0.20")},
			conflicts: []string{"BCSNetIP 10.1.0.20"},
			want:      "Active shop/db u-db ",
		},
		"two pods report it": {
			ips: []netserviceIP{oldIP("Active", "web", "")}, pods: []workload.Pod{running("db", "10.1.0.20"), running("web", "10.1.0.20")},
			conflicts: []string{"BCSNetIP 10.1.0.20"}, want: "Active shop/web u-web c-web",
		},
		"its pod reports another": {
			ips: []netserviceIP{oldIP("Active", "web", "")}, pods: []workload.Pod{running("web", "10.1.0.21")},
			conflicts: []string{"BCSNetIP 10.1.0.20"},
			want:      "Reserved netservice: shop/web has it there, but reports 10.1.0.21",
		},
		"an unknown phase": {
			ips: []netserviceIP{oldIP("Lost", "", "")}, conflicts: []string{"BCSNetIP 10.1.0.20"},
			want: "Reserved netservice: its phase \"Lost\" is not known",
		},
		"in no pool": {
			ips:       []netserviceIP{oldIP("Active", "web", "", func(ip *netserviceIP) { ip.Name = "10.9.0.1" })},
			conflicts: []string{"BCSNetIP 10.9.0.1"},
		},
		"no address": {ips: []netserviceIP{oldIP("Active", "web", "", func(ip *netserviceIP) { ip.Name = "web" })}, conflicts: []string{"BCSNetIP web"}},
		"here already": {
			ips: []netserviceIP{oldIP("Active", "web", "")}, pods: []workload.Pod{running("web", "10.1.0.20")}, already: 1,
			ours: ours(func(l *lease.Lease) {
				l.State, l.Namespace, l.PodName, l.PodUID, l.ContainerID = lease.Active, "shop", "web", "u-web", "c-later"
			}),
		},
		"another's here": {
			ips: []netserviceIP{oldIP("Active", "web", "")}, conflicts: []string{"BCSNetIP 10.1.0.20"},
			ours: ours(func(l *lease.Lease) { l.State, l.Owner = lease.Active, "vm-1" }),
		},
		"set aside here by hand": {
			ips: []netserviceIP{oldIP("Active", "web", "")}, conflicts: []string{"BCSNetIP 10.1.0.20"},
			ours: ours(func(l *lease.Lease) { l.State = lease.Reserved }),
		},
		"set aside by an earlier import": {
			ips: []netserviceIP{oldIP("Active", "web", "")}, want: "Active shop/web  c-web",
			ours: ours(func(l *lease.Lease) {
				*l, _ = lease.Reserve(*l, l.Params, now, lease.Change{Verb: lease.VerbReserve, Reason: "netservice: " +
					"its phase is not known"})
			}),
		},
		"given up here since": {
			ips: []netserviceIP{oldIP("Active", "web", "")}, left: []string{"BCSNetIP 10.1.0.20"},
			ours: ours(func(l *lease.Lease) { l.Updated = now.Add(-time.Hour) }),
		},
		"used here before": {
			ips: []netserviceIP{oldIP("Active", "web", "")}, want: "Active shop/web  c-web",
			ours: ours(func(l *lease.Lease) { l.Updated = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC) }),
		},
		"a claim of that name here is for others": {
			ips: []netserviceIP{oldIP("Reserved", "", "shop/a")}, claims: []netserviceClaim{oldClaim("a", "10.1.0.20")},
			ourClaims: map[string]*v1.BCSNetIPClaim{"shop/a": {Spec: v1.BCSNetIPClaimSpec{Addresses: []string{"10.1.0.30"}}}},
			conflicts: []string{"BCSNetIPClaim shop/a", "BCSNetIP 10.1.0.20"},
			want:      "Reserved netservice: it belongs to claim shop/a: the claim of its name here is not for…",
		},
		"a claim of that name is here": {
			ips: []netserviceIP{oldIP("Reserved", "", "shop/a")}, claims: []netserviceClaim{oldClaim("a", "10.1.0.20")},
			ourClaims: map[string]*v1.BCSNetIPClaim{"shop/a": {Spec: v1.BCSNetIPClaimSpec{Addresses: []string{"10.1.0.20-10.1.0.30"}}}},
			want:      "Reserved netservice: bound to claim shop/a for shop/a",
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := index.New()
			plan, err := ipam.NewPlan(ipam.PlanSpec{
				Net: "10.1.0.0", Mask: 24, Gateway: "10.1.0.1", Available: []string{"10.1.0.0/24"},
			})
			if err != nil {
				t.Fatal(err)
			}
			x.Pools.SetPool(ipam.Pool{Name: "old", Plan: plan})
			if tc.ours != nil {
				x.Feed.Watched(*tc.ours)
			}
			got := importer.Make(importer.Input{
				Rows: netserviceRows(t, tc.ips, tc.claims), Index: x, Ours: tc.ourClaims, Pods: tc.pods, Now: now, By: "me",
			})
			if diff := cmp.Diff(tc.want, leaseText(t, got.Leases)); diff != "" {
				t.Errorf("the lease, -want +got:\n%s", diff)
			}
			if diff := cmp.Diff(tc.conflicts, objects(got.Conflicts)); diff != "" {
				t.Errorf("conflicts, -want +got:\n%s", diff)
			}
			if diff := cmp.Diff(tc.left, objects(got.Left)); diff != "" {
				t.Errorf("left, -want +got:\n%s", diff)
			}
			if diff := cmp.Diff(tc.made, claimTexts(got.Claims)); diff != "" {
				t.Errorf("claims, -want +got:\n%s", diff)
			}
			if got.Already != tc.already {
				t.Errorf("%d are here already, want %d", got.Already, tc.already)
			}
		})
	}
}

// TestImportBesideGroup: an address that a group has not taken from its parent yet is imported as the parent's.
func TestImportBesideGroup(t *testing.T) {
	x := index.New()
	for name, available := range map[string]string{"old": "10.1.0.0/24", "eng": "10.1.0.16/28"} {
		plan, err := ipam.NewPlan(ipam.PlanSpec{Net: "10.1.0.0", Mask: 24, Gateway: "10.1.0.1", Available: []string{available}})
		if err != nil {
			t.Fatal(err)
		}
		p := ipam.Pool{Name: name, Plan: plan}
		if name == "eng" {
			p.Parent = "old"
		}
		x.Pools.SetPool(p)
	}
	in := importer.Input{
		Rows:  netserviceRows(t, []netserviceIP{oldIP("Reserved", "", "shop/a")}, []netserviceClaim{oldClaim("a", "10.1.0.20")}),
		Index: x, Now: time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC), By: "me",
	}
	if got := importer.Make(in).Leases; len(got) != 1 || got[0].Pool != "old" {
		t.Errorf("while the group is carved: %+v", got)
	}
	p, _ := x.Pools.Get("eng")
	p.Carved = p.Plan.Usable
	x.Pools.SetPool(p)
	if got := importer.Make(in).Leases; len(got) != 1 || got[0].Pool != "eng" {
		t.Errorf("of the group: %+v", got)
	}
}

func leaseText(t *testing.T, all []lease.Lease) string {
	t.Helper()
	if len(all) == 0 {
		return ""
	}
	l := all[0]
	if len(all) > 1 || !l.HeldFinalizer || l.Pool != "old" {
		t.Errorf("%+v", all)
	}
	text := l.State.String() + " " + l.Who() + " " + l.PodUID + " " + l.ContainerID
	if l.State == lease.Reserved {
		last, _ := l.History.Last()
		text = l.State.String() + " " + last.Reason
	}
	if l.Claim != "" {
		text += " for " + l.Claim
	}
	return text
}

func objects(all []importer.Remark) (names []string) {
	for _, r := range all {
		names = append(names, r.Object)
	}
	return names
}

func claimTexts(all []v1.BCSNetIPClaim) (texts []string) {
	for _, c := range all {
		text := c.Namespace + "/" + c.Name
		for _, a := range c.Spec.Addresses {
			text += " " + a
		}
		text += " " + string(c.Spec.ReleasePolicy)
		if c.Spec.Keep != nil {
			text += " " + c.Spec.Keep.Duration.String()
		}
		texts = append(texts, text)
	}
	return texts
}
