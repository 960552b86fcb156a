package claim

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go4.org/netipx"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

var now = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

// address is one of a claim, changed so many seconds before now.
func address(last byte, s lease.State, key string, ago int, change ...func(*lease.Lease)) lease.Lease {
	l := lease.Lease{
		Addr: netip.AddrFrom4([4]byte{10, 0, 0, last}), State: s, Params: lease.Params{Pool: "a"},
		Updated: now.Add(-time.Duration(ago) * time.Second),
		Holder:  lease.Holder{IfName: "eth0"}, Retention: lease.Retention{Claim: "shop/web", PodPrimaryKey: key, Fixed: true},
	}
	for _, c := range change {
		c(&l)
	}
	return l
}

func kept(last byte, key string, ago int, change ...func(*lease.Lease)) lease.Lease {
	return address(last, lease.Reserved, key, ago, change...)
}

func used(last byte, key string) lease.Lease { return address(last, lease.Active, key, 99) }

// splitPool returns an index with a pool that is split into blocks, of which one exists.
func splitPool(t *testing.T) *index.Index {
	t.Helper()
	x := index.New()
	for _, p := range []ipam.Pool{
		{Name: "net", BlockSize: 29},
		{Name: "net-10-0-0-8-29", Parent: "net", Namespaces: map[string]struct{}{"shop": {}}},
	} {
		available := "10.0.0.0-10.0.0.23"
		if p.Parent != "" {
			available = "10.0.0.8/29"
		}
		plan, err := ipam.NewPlan(ipam.PlanSpec{
			Net: "10.0.0.0", Mask: 24, Gateway: "10.0.0.1", Available: []string{available},
		})
		if err != nil {
			t.Fatal(err)
		}
		p.Plan = plan
		x.Pools.SetPool(p)
	}
	return x
}

// TestSteps is the table of what happens to an address when its pod ends, policy by policy.
func TestSteps(t *testing.T) {
	deployment := workload.Workload{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}
	set := workload.Workload{Group: "apps", Kind: "StatefulSet", Namespace: "shop", Name: "web"}
	running := func(l lease.Lease) bool { return l.State == lease.Active }
	foreign := workload.Workload{Group: "example.org", Kind: "Game", Namespace: "shop", Name: "web"}
	split := splitPool(t)
	of := func(p v1.ReleasePolicy, w workload.Workload, change ...func(*Claim)) Claim {
		c := Claim{Name: "shop/web", Release: p, Workload: w, Size: -1}
		for _, f := range change {
			f(&c)
		}
		return c
	}
	size := func(n int) func(*Claim) { return func(c *Claim) { c.Size = n } }
	ahead := func(c *Claim) { c.Preallocate = true }
	shared := func(c *Claim) { c.SharedName = "s" }
	taken := func(size int, version uint64) func(*lease.Lease) {
		return func(l *lease.Lease) {
			l.Version = version
			l.History = lease.NewHistory([]lease.Past{{Change: lease.Change{
				Verb: lease.VerbReserve, By: "claim shop/web", Reason: fmt.Sprintf("preallocated for a size of %d", size),
			}}})
		}
	}
	timed := of(v1.ReleaseTimed, deployment, func(c *Claim) { c.Keep = time.Hour })
	term := func(at time.Time) func(*lease.Lease) {
		return func(l *lease.Lease) { l.ExpiredTime = at.Format(time.RFC3339Nano) }
	}
	only, _ := netipx.ParseIPRange("10.0.0.1-10.0.0.5")
	var among netipx.IPSetBuilder
	among.AddRange(only)
	addresses, err := among.IPSet()
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		claim  Claim
		need   *Need
		leases []lease.Lease
		want   []string // "free A: why", "term A T"
		next   int      // seconds from now; 0 for never
	}{
		"Deployment, immutable, as many as it needs": {claim: of(v1.ReleaseImmutable, deployment), need: &Need{Replicas: 3}, leases: []lease.Lease{used(1, ""), used(2, ""), kept(3, "", 60)}},
		"Deployment, immutable, scaled down": {
			claim: of(v1.ReleaseImmutable, deployment), need: &Need{Replicas: 1},
			leases: []lease.Lease{used(1, ""), kept(2, "", 60), kept(3, "", 90)},
			want: []string{
				"free 10.0.0.2: its claim has more addresses than it needs", "free 10.0.0.3: its claim has more addresses than it needs",
			},
		},
		"Deployment, immutable, one too many: the longest unused": {
			claim: of(v1.ReleaseImmutable, deployment), need: &Need{Replicas: 2},
			leases: []lease.Lease{used(1, ""), kept(2, "", 60), kept(3, "", 90)},
			want:   []string{"free 10.0.0.3: its claim has more addresses than it needs"},
		},
		"Deployment, immutable, in a rolling update": {
			claim: of(v1.ReleaseImmutable, deployment), need: &Need{Replicas: 3},
			leases: []lease.Lease{used(1, ""), used(2, ""), used(4, ""), kept(3, "", 5)}, next: 10,
		},
		"Deployment, immutable, more pods than replicas": {claim: of(v1.ReleaseImmutable, deployment), need: &Need{Replicas: 1}, leases: []lease.Lease{used(1, ""), used(2, "")}},
		"Deployment, immutable, scaled to zero": {
			claim: of(v1.ReleaseImmutable, deployment), need: &Need{}, leases: []lease.Lease{kept(1, "", 60)},
			want: []string{"free 10.0.0.1: its claim has more addresses than it needs"},
		},
		"Deployment, immutable, its pods draw from elsewhere": {
			claim: of(v1.ReleaseImmutable, deployment), need: &Need{Replicas: 3, Left: true},
			leases: []lease.Lease{used(1, ""), kept(2, "", 60), kept(3, "", 5)}, next: 10,
			want: []string{"free 10.0.0.2: the pods of Deployment shop/web draw their addresses elsewhere now"},
		},
		"StatefulSet, immutable, its pods draw from elsewhere": {
			claim: of(v1.ReleaseImmutable, set), need: &Need{Replicas: 3, Left: true},
			leases: []lease.Lease{used(1, "web-0"), kept(2, "web-1", 60)},
			want:   []string{"free 10.0.0.2: the pods of StatefulSet shop/web draw their addresses elsewhere now"},
		},
		"Deployment, never, its pods draw from elsewhere": {claim: of(v1.ReleaseNever, deployment), need: &Need{Replicas: 3, Left: true}, leases: []lease.Lease{kept(1, "", 60)}},
		"Deployment, immutable, gone": {
			claim: of(v1.ReleaseImmutable, deployment), need: &Need{Gone: true},
			leases: []lease.Lease{used(1, ""), kept(2, "", 1)},
			want:   []string{"free 10.0.0.2: Deployment shop/web is gone"},
		},
		"Deployment, immutable, not known": {claim: of(v1.ReleaseImmutable, deployment), leases: []lease.Lease{kept(1, "", 9999)}},
		"Deployment, never, gone":          {claim: of(v1.ReleaseNever, deployment), need: &Need{Gone: true}, leases: []lease.Lease{kept(1, "", 9999)}},
		"with the pod": {
			claim: of(v1.ReleaseWithPod, deployment), leases: []lease.Lease{used(1, ""), kept(2, "", 0)},
			want: []string{"free 10.0.0.2: its claim keeps no addresses"},
		},
		"StatefulSet, immutable": {
			claim: of(v1.ReleaseImmutable, set), need: &Need{Replicas: 2, Start: 1},
			leases: []lease.Lease{
				kept(1, "web-0", 60), kept(2, "web-1", 60), kept(3, "web-2", 60), kept(4, "web-3", 60), used(5, "web-4"),
			},
			want: []string{
				"free 10.0.0.1: StatefulSet shop/web was scaled down", "free 10.0.0.4: StatefulSet shop/web was scaled down",
			},
		},
		"numbered as nobody tells, immutable, one restarts": {
			claim: of(v1.ReleaseImmutable, foreign), need: &Need{Replicas: 3, Stays: running},
			leases: []lease.Lease{used(1, "web-2"), used(2, "web-7"), kept(3, "web-9", 60)},
		},
		"numbered as nobody tells, immutable, all are gone": {
			claim: of(v1.ReleaseImmutable, foreign), need: &Need{Replicas: 2, Stays: running},
			leases: []lease.Lease{
				kept(1, "web-2", 60), kept(2, "web-7", 60), kept(6, "web-7", 60, func(l *lease.Lease) { l.IfName = "net1" }),
				kept(3, "web-9", 60),
			},
			want: []string{"free 10.0.0.3: Game shop/web was scaled down"},
		},
		"numbered as nobody tells, immutable, scaled down": {
			claim: of(v1.ReleaseImmutable, foreign), need: &Need{Replicas: 1, Stays: running},
			leases: []lease.Lease{kept(1, "web-0", 60), used(2, "web-7"), kept(3, "web-9", 5)},
			want:   []string{"free 10.0.0.1: Game shop/web was scaled down"}, next: 10,
		},
		"numbered as nobody tells, immutable, scaled down while one is not placed": {
			claim: of(v1.ReleaseImmutable, foreign), need: &Need{
				Replicas: 2, Stays: func(l lease.Lease) bool { return l.PodPrimaryKey != "web-2" },
			},
			leases: []lease.Lease{kept(1, "web-0", 60), used(2, "web-1"), used(3, "web-2")},
		},
		"numbered as nobody tells, immutable, scaled to none": {
			claim: of(v1.ReleaseImmutable, foreign), need: &Need{Stays: running},
			leases: []lease.Lease{kept(1, "web-0", 60)},
			want:   []string{"free 10.0.0.1: Game shop/web was scaled down"},
		},
		"StatefulSet, immutable, scaled down this moment": {claim: of(v1.ReleaseImmutable, set), need: &Need{}, leases: []lease.Lease{kept(1, "web-0", 5)}, next: 10},
		"StatefulSet, immutable, gone":                    {claim: of(v1.ReleaseImmutable, set), need: &Need{Gone: true}, leases: []lease.Lease{kept(1, "web-0", 0)}, want: []string{"free 10.0.0.1: StatefulSet shop/web is gone"}},
		"StatefulSet, never, scaled down":                 {claim: of(v1.ReleaseNever, set), need: &Need{}, leases: []lease.Lease{kept(1, "web-0", 9999)}},
		"StatefulSet, immutable, keys of another making":  {claim: of(v1.ReleaseImmutable, set), need: &Need{}, leases: []lease.Lease{kept(1, "web-x", 60), kept(2, "db-0", 60), kept(3, "web-01", 60)}},
		"timed": {
			claim: timed,
			leases: []lease.Lease{
				used(1, ""), kept(2, "", 60), kept(3, "", 3600), kept(4, "", 600, term(now.Add(50*time.Minute))),
				kept(5, "", 1200, term(now)),
			},
			want: []string{"term 10.0.0.2 59m0s", "free 10.0.0.3: it was kept for 1h", "term 10.0.0.5 40m0s"}, next: 2400,
		},
		"a term that no policy asks for any more": {claim: of(v1.ReleaseNever, deployment), leases: []lease.Lease{kept(1, "", 60, term(now))}, want: []string{"term 10.0.0.1 none"}},
		"two of one pod": {
			claim: of(v1.ReleaseNever, set), leases: []lease.Lease{
				kept(1, "web-0", 60), kept(2, "web-0", 30), used(3, "web-1"), kept(4, "web-1", 1),
			},
			want: []string{"free 10.0.0.1: its pod has another", "free 10.0.0.4: its pod has another"},
		},
		"two interfaces, slots and families of one pod": {claim: of(v1.ReleaseNever, set), leases: []lease.Lease{
			kept(1, "web-0", 60), kept(2, "web-0", 30, func(l *lease.Lease) { l.IfName = "net1" }),
			kept(3, "web-0", 20, func(l *lease.Lease) { l.Slot = 1 }),
			kept(4, "web-0", 10, func(l *lease.Lease) { l.Addr = netip.MustParseAddr("2001:db8::1") }),
		}},
		"the claim is deleted": {
			claim:  of(v1.ReleaseNever, set, func(c *Claim) { c.Deleting = true }),
			leases: []lease.Lease{used(1, "web-0"), kept(2, "web-1", 0)},
			want:   []string{"free 10.0.0.2: its claim is being deleted"},
		},
		"the claim is deleted, and made again from annotations": {
			claim:  of(v1.ReleaseNever, set, func(c *Claim) { c.Deleting, c.Managed, c.DeletedAt = true, true, now.Add(-30*time.Second) }),
			leases: []lease.Lease{used(1, "web-0"), kept(2, "web-1", 31), kept(3, "web-2", 30), kept(4, "web-3", 29)},
			// 3 in the same second
			want: []string{"free 10.0.0.2: its claim is being deleted", "free 10.0.0.3: its claim is being deleted"},
		},
		"the claim was made smaller": {
			claim:  of(v1.ReleaseNever, workload.Workload{}, size(2)),
			leases: []lease.Lease{used(1, ""), used(2, ""), kept(3, "", 60)},
			want:   []string{"free 10.0.0.3: its claim has more addresses than it needs"},
		},
		"a shared pool was made smaller": {claim: of(v1.ReleaseNever, workload.Workload{}, size(1), func(c *Claim) { c.SharedName = "s" }), leases: []lease.Lease{used(1, ""), kept(2, "", 60), kept(3, "", 60)}},
		"a shared claim that is not for ever was made smaller": {
			claim:  of(v1.ReleaseImmutable, workload.Workload{}, size(1), func(c *Claim) { c.SharedName = "s" }),
			leases: []lease.Lease{used(1, ""), kept(2, "", 60)},
			want:   []string{"free 10.0.0.2: its claim has more addresses than it needs"},
		},
		"other addresses": {
			claim:  of(v1.ReleaseNever, deployment, func(c *Claim) { c.Addresses = addresses }),
			leases: []lease.Lease{kept(5, "", 0), kept(6, "", 0), used(7, "")},
			want:   []string{"free 10.0.0.6: it is no longer one of the addresses of its claim"},
		},
		"another pool": {
			claim:  of(v1.ReleaseNever, deployment, func(c *Claim) { c.Pools = []string{"b"} }),
			leases: []lease.Lease{kept(5, "", 0), used(7, "")},
			want:   []string{"free 10.0.0.5: its claim is for pool b"},
		},
		"the pool is split": {
			claim: of(v1.ReleaseNever, deployment, func(c *Claim) { c.Pools = []string{"net"} }),
			leases: []lease.Lease{
				kept(8, "", 0, func(l *lease.Lease) { l.Pool = "net-10-0-0-8-29" }),
				kept(16, "", 0, func(l *lease.Lease) { l.Pool = "net-10-0-0-16-29" }), // was removed by force
				kept(24, "", 0),
			},
			want: []string{"free 10.0.0.24: its claim is for pool net"},
		},
		"smaller, of addresses for one pod and for any": {
			claim:  of(v1.ReleaseNever, set, size(3)),
			leases: []lease.Lease{used(1, "web-0"), kept(2, "web-1", 60), kept(3, "", 90), kept(4, "", 80)},
			want:   []string{"free 10.0.0.3: its claim has more addresses than it needs"},
		},
		"preallocated, and not needed": {claim: of(v1.ReleaseImmutable, deployment, ahead, size(3)), need: &Need{Replicas: 1}, leases: []lease.Lease{used(1, ""), kept(2, "", 60), kept(3, "", 60)}},
		"preallocated by address":      {claim: of(v1.ReleaseImmutable, deployment, ahead), need: &Need{Replicas: 1}, leases: []lease.Lease{used(1, ""), kept(2, "", 60)}},
		"preallocated, gone":           {claim: of(v1.ReleaseImmutable, deployment, ahead, size(3)), need: &Need{Gone: true}, leases: []lease.Lease{kept(2, "", 60)}},
		"preallocated, made smaller": {
			claim: of(v1.ReleaseImmutable, deployment, ahead, size(1)), need: &Need{Replicas: 2},
			leases: []lease.Lease{used(1, ""), kept(2, "", 60)},
			want:   []string{"free 10.0.0.2: its claim has more addresses than it needs"},
		},
		"preallocated, numbered pods": {
			claim: of(v1.ReleaseImmutable, set, ahead, size(4)), need: &Need{Replicas: 1},
			leases: []lease.Lease{used(1, "web-0"), kept(2, "web-1", 60), kept(3, "web-2", 5), kept(4, "", 5)},
			want:   []string{"any 10.0.0.2: StatefulSet shop/web was scaled down"}, next: 10,
		},
		"preallocated, the numbered pods are gone": {
			claim: of(v1.ReleaseImmutable, set, ahead, size(2)), need: &Need{Gone: true},
			leases: []lease.Lease{kept(2, "web-1", 0), kept(4, "", 5)},
			want:   []string{"any 10.0.0.2: StatefulSet shop/web is gone"},
		},
		"preallocated, and deleted": {
			claim:  of(v1.ReleaseNever, set, ahead, size(2), func(c *Claim) { c.Deleting = true }),
			leases: []lease.Lease{kept(4, "", 5)},
			want:   []string{"free 10.0.0.4: its claim is being deleted"},
		},
		"a shared pool, made smaller": {
			claim:  of(v1.ReleaseNever, workload.Workload{}, shared, size(1)),
			leases: []lease.Lease{kept(1, "", 60, taken(3, 1)), kept(2, "", 60, taken(3, 2)), kept(3, "", 60, taken(3, 3))},
		},
		"a shared pool, taken twice": {
			claim: of(v1.ReleaseNever, workload.Workload{}, shared, size(2)),
			leases: []lease.Lease{
				used(1, ""), kept(2, "", 60, taken(2, 9)), kept(3, "", 60, taken(2, 4)), kept(4, "", 60, taken(2, 7)),
				kept(5, "", 60),
			},
			want: []string{
				"free 10.0.0.2: it was taken beyond the size of its claim", "free 10.0.0.3: it was taken beyond the size of its claim", "free 10.0.0.4: it was taken beyond the size of its claim",
			},
		},
		"a shared pool, the last of those taken twice": {
			claim: of(v1.ReleaseNever, workload.Workload{}, shared, size(2)),
			leases: []lease.Lease{
				kept(2, "", 60, taken(2, 9)), kept(3, "", 60, taken(2, 4)), kept(4, "", 60, taken(2, 7)),
				kept(5, "", 5, taken(2, 11)),
			},
			want: []string{"free 10.0.0.2: it was taken beyond the size of its claim"}, next: 10,
		},
		"a shared pool, taken twice for a larger size": {
			claim:  of(v1.ReleaseNever, workload.Workload{}, shared, size(0)),
			leases: []lease.Lease{kept(2, "", 60, taken(2, 9)), kept(3, "", 60, taken(2, 4)), kept(4, "", 60, taken(1, 7))},
			want:   []string{"free 10.0.0.2: it was taken beyond the size of its claim"},
		},
		"a shared pool, more than its size by pods and by hand": {
			claim: of(v1.ReleaseNever, workload.Workload{}, shared, size(1)), leases: []lease.Lease{
				kept(2, "", 60, taken(1, 2), func(l *lease.Lease) { l.Namespace, l.PodName = "shop", "web-x" }), kept(3, "", 60),
				used(4, ""),
				kept(5, "", 60, taken(-1, 5)), kept(6, "", 60, func(l *lease.Lease) {
					l.History = lease.NewHistory([]lease.Past{
						{Holder: "shop/web-y"}, {Change: lease.Change{Verb: lease.VerbReserve, Reason: "preallocated for a size of 1"}},
					})
				}),
			},
		},
		"a shared pool that was deleted, taken twice": {claim: of(v1.ReleaseNever, workload.Workload{}, shared), leases: []lease.Lease{kept(2, "", 60, taken(0, 9))}},
		"an object that is being deleted": {
			claim: of(v1.ReleaseNever, deployment), leases: []lease.Lease{kept(5, "", 0,
				func(l *lease.Lease) { l.Deleting = true })},
			want: []string{"free 10.0.0.5: its object is being deleted"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			steps, next := Steps(tc.claim, split.Pools, tc.need, tc.leases, now)
			var got []string
			for _, s := range steps {
				switch {
				case s.Free:
					got = append(got, fmt.Sprintf("free %s: %s", s.Lease.Addr, s.Why))
				case s.Any:
					got = append(got, fmt.Sprintf("any %s: %s", s.Lease.Addr, s.Why))
				case s.Expires.IsZero():
					got = append(got, fmt.Sprintf("term %s none", s.Lease.Addr))
				default:
					got = append(got, fmt.Sprintf("term %s %s", s.Lease.Addr, s.Expires.Sub(now)))
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
			var want time.Time
			if tc.next != 0 {
				want = now.Add(time.Duration(tc.next) * time.Second)
			}
			if !next.Equal(want) {
				t.Errorf("next = %v, want %v", next, want)
			}
		})
	}
}

// A claim that somebody deletes stays for the requests that do not know yet; one that annotations made does not.
func TestLinger(t *testing.T) {
	deleted := Claim{Deleting: true, DeletedAt: now}
	last := allocator.MaxRequestTime + time.Second
	for name, c := range map[string]struct {
		claim Claim
		after time.Duration
		want  time.Duration
	}{
		"one that is there":      {Claim{}, 0, 0},
		"just deleted":           {deleted, 0, last},
		"a while ago":            {deleted, 10 * time.Second, last - 10*time.Second},
		"long ago":               {deleted, last, 0},
		"one of annotations":     {Claim{Deleting: true, DeletedAt: now, Managed: true}, 0, 0},
		"by a clock that is new": {deleted, -time.Second, last + time.Second},
	} {
		if got := c.claim.Linger(now.Add(c.after)); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
