package importer

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

var saved = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

func backedPool(name, addresses string) v1.BCSNetPool {
	p := Pool(name)
	p.Spec = v1.BCSNetPoolSpec{
		Net: "10.1.0.0", Mask: 24, Gateway: "10.1.0.1", Hosts: []string{"10.0.0.11"}, AvailableIPs: []string{addresses},
	}
	return p
}

func backedLease(addr string, state lease.State, change ...func(*lease.Lease)) lease.Lease {
	l := lease.Lease{Addr: netip.MustParseAddr(addr), State: state, Updated: saved, HeldFinalizer: state != lease.Available}
	l.Pool = "blue"
	if state == lease.Active {
		l.IfName, l.ContainerID = lease.DefaultIfName, "c-"+addr
	}
	for _, do := range change {
		do(&l)
	}
	return l
}

func ofPod(name string) func(*lease.Lease) {
	return func(l *lease.Lease) { l.Namespace, l.PodName, l.PodUID = "default", name, "uid-"+name }
}

func ofOwner(name string) func(*lease.Lease) { return func(l *lease.Lease) { l.Owner = name } }

func ofClaim(name string) func(*lease.Lease) {
	return func(l *lease.Lease) { l.Claim, l.Fixed = "default/"+name, true }
}

func after(d time.Duration) func(*lease.Lease) {
	return func(l *lease.Lease) { l.Updated = saved.Add(d) }
}

// Whatever an address is here: what somebody has is never planned, and what is planned is as it was.
func TestBackupAgainstWhatIsHere(t *testing.T) {
	const a = "10.1.0.20"
	held := backedLease(a, lease.Active, ofPod("web"))
	for name, tc := range map[string]struct {
		then lease.Lease
		here []lease.Lease
		gone bool // the pod is not here, and only those of pods here are wanted
		want string
	}{
		"no object":     {then: held, want: "10.1.0.20 Active default/web"},
		"blank object":  {then: held, here: []lease.Lease{backedLease(a, lease.Available, func(l *lease.Lease) { l.Updated = time.Time{} })}, want: "10.1.0.20 Active default/web"},
		"there":         {then: held, here: []lease.Lease{held}, want: "already 1"},
		"there anew":    {then: held, here: []lease.Lease{backedLease(a, lease.Active, ofPod("web"), after(time.Hour))}, want: "already 1"},
		"free before":   {then: held, here: []lease.Lease{backedLease(a, lease.Available, after(-time.Hour))}, want: "10.1.0.20 Active default/web"},
		"free since":    {then: held, here: []lease.Lease{backedLease(a, lease.Available, after(time.Hour))}, want: "left BCSNetIP 10.1.0.20: it has changed here since"},
		"somebody else": {then: held, here: []lease.Lease{backedLease(a, lease.Active, ofPod("db"))}, want: "conflict address 10.1.0.20: default/db has it, and in the backup default/web has it"},
		"reserved here": {then: held, here: []lease.Lease{backedLease(a, lease.Reserved)}, want: "conflict address 10.1.0.20: it is set aside, and in the backup default/web has it"},
		"deleting":      {then: held, here: []lease.Lease{backedLease(a, lease.Available, func(l *lease.Lease) { l.Deleting = true })}, want: "conflict address 10.1.0.20: its object here is being deleted"},
		"has another":   {then: held, here: []lease.Lease{backedLease("10.1.0.21", lease.Active, ofPod("web"))}, want: "conflict address 10.1.0.20: default/web has 10.1.0.21 here by now"},
		"owner":         {then: backedLease(a, lease.Active, ofOwner("vm-1")), want: "10.1.0.20 Active vm-1"},
		"owner elsewhere": {
			then: backedLease(a, lease.Active, ofOwner("vm-1")), here: []lease.Lease{backedLease("10.1.0.21", lease.Active, ofOwner("vm-1"))},
			want: "conflict address 10.1.0.20: vm-1 has 10.1.0.21 here by now",
		},
		"pod gone":          {then: held, gone: true, want: "10.1.0.20 Available "},
		"pod of claim gone": {then: backedLease(a, lease.Active, ofPod("web"), ofClaim("db")), gone: true, want: "10.1.0.20 Reserved default/web"},
		"owner is no pod":   {then: backedLease(a, lease.Active, ofOwner("vm-1")), gone: true, want: "10.1.0.20 Active vm-1"},
		"reserved":          {then: backedLease(a, lease.Reserved), want: "10.1.0.20 Reserved "},
		"reserved there":    {then: backedLease(a, lease.Reserved), here: []lease.Lease{backedLease(a, lease.Reserved)}, want: "already 1"},
		"reserved, in use":  {then: backedLease(a, lease.Reserved), here: []lease.Lease{held}, want: "conflict address 10.1.0.20: default/web has it, and in the backup it is set aside"},
		"kept":              {then: backedLease(a, lease.Reserved, ofClaim("db")), want: "10.1.0.20 Reserved "},
		"claim is gone, in use": {
			then: backedLease(a, lease.Active, ofPod("web"), ofClaim("other")),
			want: "10.1.0.20 Active default/web\nconflict address 10.1.0.20: it belongs to claim default/other, which does not exist",
		},
		"pod of claim gone, again": {
			then: backedLease(a, lease.Active, ofPod("web"), ofClaim("db")), gone: true,
			here: []lease.Lease{backedLease(a, lease.Reserved, ofPod("web"), ofClaim("db"), after(time.Hour))}, want: "already 1",
		},
		"claim is gone":    {then: backedLease(a, lease.Reserved, ofClaim("other")), want: "left address 10.1.0.20: it belongs to claim default/other, which does not exist"},
		"history":          {then: backedLease(a, lease.Available), want: "10.1.0.20 Available "},
		"history there":    {then: backedLease(a, lease.Available), here: []lease.Lease{backedLease(a, lease.Available)}, want: ""},
		"history, in use":  {then: backedLease(a, lease.Available), here: []lease.Lease{held}, want: ""},
		"in no pool":       {then: backedLease("10.9.0.1", lease.Active, ofPod("web")), want: "conflict address 10.9.0.1: 10.9.0.1 belongs to no pool"},
		"free, in no pool": {then: backedLease("10.9.0.1", lease.Available), want: ""},
	} {
		t.Run(name, func(t *testing.T) {
			x := index.New()
			here := backedPool("blue", "10.1.0.20-10.1.0.29")
			x.Pools.SetPool(store.Pool(&here))
			for i, l := range tc.here {
				l.Version = uint64(i + 1)
				l.Params = store.Pool(&here).Params()
				x.Feed.Watched(l)
			}
			var c v1.BCSNetIPClaim
			c.Namespace, c.Name, c.Spec.ReleasePolicy = "default", "db", v1.ReleaseNever
			got := Make(Input{
				Rows: Rows{
					System: "backup", Stored: map[string]*unstructured.Unstructured{},
					Claims: []Claim{{Namespace: "default", Name: "db", Object: "claim default/db", Made: &c}},
					Addresses: []Address{{
						Addr: tc.then.Addr, Object: "address " + tc.then.Addr.String(), Lease: &tc.then,
						Claim: tc.then.Claim, Updated: tc.then.Updated,
					}},
				},
				Index: x, Now: saved.Add(2 * time.Hour), OnlyPodsHere: tc.gone,
			})
			if text := said(got); text != tc.want {
				t.Errorf("planned %q, want %q", text, tc.want)
			}
			for _, l := range got.Leases {
				if l.Pool != "blue" || l.Bits != 24 || l.BoundVersion != 0 || l.HeldFinalizer != (l.State != lease.Available) {
					t.Errorf("%+v", l)
				}
			}
		})
	}
}

// said spells out what is planned for addresses.
func said(p Plan) string {
	var lines []string
	for _, l := range p.Leases {
		who := ""
		if l.PodName != "" || l.Owner != "" {
			who = l.Who()
		}
		lines = append(lines, fmt.Sprintf("%s %s %s", l.Addr, l.State, who))
	}
	for _, r := range p.Conflicts {
		lines = append(lines, "conflict "+r.Object+": "+r.Cause)
	}
	for _, r := range p.Left {
		lines = append(lines, "left "+r.Object+": "+r.Cause)
	}
	if p.Already > 0 {
		lines = append(lines, fmt.Sprintf("already %d", p.Already))
	}
	return strings.Join(lines, "\n")
}

// Pools and claims that are here stay. One that a restore has left cordoned is uncordoned when it is done.
func TestBackupOfPoolsHere(t *testing.T) {
	then := backedPool("blue", "10.1.0.20-10.1.0.29")
	other := backedPool("blue", "10.1.0.20-10.1.0.39")
	other.Spec.VLAN = 7
	left := backedPool("blue", "10.1.0.20-10.1.0.29")
	left.Spec.Cordoned, left.Annotations = true, map[string]string{v1.RestoringAnnotation: "x"}
	byHand := backedPool("blue", "10.1.0.20-10.1.0.29")
	byHand.Spec.Cordoned = true
	closed := byHand
	for name, tc := range map[string]struct {
		then v1.BCSNetPool
		here *v1.BCSNetPool
		want string
	}{
		"missing":         {then, nil, "make [blue] uncordon [blue]"},
		"missing, closed": {closed, nil, "make [blue] uncordon []"},
		"the same":        {then, &then, "make [] uncordon []"},
		"another":         {then, &other, "make [] uncordon []\nleft pool blue: it is here and stays; the backup has another availableIPs, vlan"},
		"left cordoned":   {then, &left, "make [] uncordon [blue]"},
		"cordoned here":   {then, &byHand, "make [] uncordon []\nleft pool blue: it is here and stays; the backup has another cordoned"},
	} {
		t.Run(name, func(t *testing.T) {
			x, here := index.New(), map[string]*v1.BCSNetPool{}
			if tc.here != nil {
				here["blue"] = tc.here
				x.Pools.SetPool(store.Pool(tc.here))
			}
			got := Make(Input{
				Rows:  Rows{Stored: map[string]*unstructured.Unstructured{"pool blue": {}}, Pools: []v1.BCSNetPool{tc.then}},
				Index: x, Here: here,
			})
			names := []string{}
			for _, p := range got.Pools {
				if names = append(names, p.Name); !p.Spec.Cordoned {
					t.Error("it is made open: somebody may get what the backup gives to others")
				}
			}
			text := strings.TrimSpace(fmt.Sprintf("make %v uncordon %v\n", names, got.Uncordon) + said(got))
			if text != tc.want {
				t.Errorf("planned %q, want %q", text, tc.want)
			}
		})
	}
}

// What a table keeps now is reserved, whatever an address was used for here before, unless somebody freed it by hand.
func TestKeptWithoutATime(t *testing.T) {
	free := backedLease("10.1.0.20", lease.Available)
	used, _ := lease.Reserve(free, free.Params, saved, lease.Change{Verb: lease.VerbReserve, By: "ann", Reason: "printer"})
	byHand, _ := lease.Free(used, saved, lease.Change{Verb: lease.VerbUnreserve, By: "ann"})
	for name, tc := range map[string]struct {
		here lease.Lease
		want string
	}{
		"used before":   {free, "10.1.0.20 Reserved "},
		"freed by hand": {byHand, "left BCSNetIP 10.1.0.20: it has changed here since"},
	} {
		t.Run(name, func(t *testing.T) {
			x := index.New()
			here := backedPool("blue", "10.1.0.20-10.1.0.29")
			x.Pools.SetPool(store.Pool(&here))
			tc.here.Version, tc.here.Params = 1, store.Pool(&here).Params()
			x.Feed.Watched(tc.here)
			got := Make(Input{Rows: Rows{System: "csv", Addresses: []Address{
				{Addr: tc.here.Addr, Object: "line 2", State: Kept, Reason: "printer"},
			}}, Index: x, Now: saved.Add(time.Hour)})
			if text := said(got); text != tc.want {
				t.Errorf("planned %q, want %q", text, tc.want)
			}
		})
	}
}

// An address that a running pod reports, and that nobody has after a restore, is named with its pool.
func TestRestoreLooksAtPods(t *testing.T) {
	x := index.New()
	here := backedPool("blue", "10.1.0.20-10.1.0.29")
	x.Pools.SetPool(store.Pool(&here))
	then := backedLease("10.1.0.20", lease.Active, ofPod("web"))
	got := Make(Input{
		Rows: Rows{System: "backup", Stored: map[string]*unstructured.Unstructured{}, Addresses: []Address{
			{Addr: then.Addr, Object: "address 10.1.0.20", Lease: &then, Updated: then.Updated},
		}},
		Index: x, Now: saved.Add(time.Hour),
		Pods: []workload.Pod{
			{Namespace: "default", Name: "web", UID: "uid-web", Addrs: []netip.Addr{then.Addr}},
			{Namespace: "default", Name: "late", UID: "uid-late", Addrs: []netip.Addr{then.Addr.Next()}},
		},
	})
	if diff := cmp.Diff(map[string]netip.Addr{"blue": then.Addr.Next()}, got.Reported, cmp.Comparer(equal)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func equal(a, b netip.Addr) bool { return a == b }
