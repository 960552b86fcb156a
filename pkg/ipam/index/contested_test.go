package index

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// contestedBy is a quarantined address for which a MAC answered so many minutes ago.
func contestedBy(mac string, i, minutes int, change ...func(*lease.Lease)) lease.Lease {
	at := now.Add(-time.Duration(minutes) * time.Minute)
	l := lease.Lease{
		Addr: netip.MustParseAddr(fmt.Sprintf("10.0.0.%d", i)), Version: uint64(i), State: lease.Reserved, Updated: at,
		Params: lease.Params{Pool: "a", Bits: 24}, HeldFinalizer: true,
		Conflict: &lease.Conflict{
			MAC: mac, Host: netip.MustParseAddr("192.168.0.1"), ContainerID: "c", At: at,
			Outcome: lease.ConflictQuarantined,
			Until:   at.Add(time.Hour),
		},
	}
	for _, c := range change {
		c(&l)
	}
	return l
}

// The third address of a MAC within an hour is not quarantined, nor is what is more than a hundredth of its pool, at
// least three. Older reports, other pools, and the address itself do not count.
func TestBrakes(t *testing.T) {
	other := func(l *lease.Lease) { l.Pool = "b" }
	kept := func(l *lease.Lease) {
		c := *l.Conflict
		c.Outcome, l.Conflict = lease.ConflictKept, &c
	}
	elsewhere := func(l *lease.Lease) {
		c := *l.Conflict
		c.Host, l.Conflict = netip.MustParseAddr("192.168.0.2"), &c
	}
	for what, test := range map[string]struct {
		all    ipam.Contested
		size   uint64
		braked bool
		host   int
	}{
		"nothing":                {nil, 50, false, 0},
		"a MAC's second address": {ipam.Contested{contestedBy("m", 1, 1)}, 50, false, 1},
		"its third": {ipam.Contested{contestedBy("m", 1, 1), contestedBy("m", 2, 59)}, 50, true,
			2},
		"in another pool": {ipam.Contested{contestedBy("m", 1, 1, other), contestedBy("m", 2, 1,
			other)}, 50, true, 2},
		"of holders that keep theirs": {ipam.Contested{contestedBy("m", 1, 1, kept), contestedBy("m", 2, 1, kept)},
			50, true, 0},
		"of another host": {ipam.Contested{contestedBy("m", 1, 1, elsewhere), contestedBy("m", 2, 1)},
			50, true, 1},
		"its third, an hour later": {ipam.Contested{contestedBy("m", 1, 1), contestedBy("m", 2, 60)}, 50, false,
			1},
		"its third, which is the same address": {ipam.Contested{contestedBy("m", 1, 1), contestedBy("m", 9, 1)}, 50, false,
			2},
		"a pool's fourth": {ipam.Contested{contestedBy("x", 1, 1), contestedBy("y", 2, 1),
			contestedBy("z", 3, 1)}, 50, true, 3},
		"a pool's fourth, in 400": {ipam.Contested{contestedBy("x", 1, 1), contestedBy("y", 2, 1),
			contestedBy("z", 3, 1)}, 400, false, 3},
		"a pool's fifth, in 400": {ipam.Contested{contestedBy("x", 1, 1), contestedBy("y", 2, 1),
			contestedBy("z", 3, 1), contestedBy("w", 4, 1)}, 499, true, 4},
		"a pool's third": {ipam.Contested{contestedBy("x", 1, 1), contestedBy("y", 2, 1)}, 0, false,
			2},
		"a pool's fourth, one of another": {ipam.Contested{contestedBy("x", 1, 1), contestedBy("y", 2, 1),
			contestedBy("z", 3, 1, other)}, 50, false, 3},
		"a pool's fourth, one of which is kept": {ipam.Contested{contestedBy("x", 1, 1), contestedBy("y", 2, 1),
			contestedBy("z", 3, 1, kept)}, 50, false, 2},
	} {
		t.Run(what, func(t *testing.T) {
			if got := test.all.Braked(netip.MustParseAddr("10.0.0.9"), "m", "a", test.size, now); got != test.braked {
				t.Errorf("braked: %v", got)
			}
			if got := test.all.From(netip.MustParseAddr("192.168.0.1"), now); len(got) != test.host {
				t.Errorf("reported by the host: %v, want %d", got, test.host)
			}
		})
	}
}

// The index finds reports on whatever address they are, as long as they are there.
func TestIndexOfContested(t *testing.T) {
	x := New()
	l := contestedBy("m", 1, 1)
	x.Feed.Watched(l)
	x.Feed.Watched(lease.Lease{Addr: netip.MustParseAddr("10.0.0.2"), Version: 2, Params: l.Params})
	compare := cmpopts.EquateComparable(netip.Addr{})
	if diff := cmp.Diff(ipam.Contested{l}, x.Leases.Contested(), compare); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	free, _ := lease.Free(l, l.Conflict.Until, lease.Change{})
	free.Version = 3
	x.Feed.Watched(free)
	if diff := cmp.Diff(ipam.Contested{free}, x.Leases.Contested(), compare); diff != "" {
		t.Errorf("free again, -want +got:\n%s", diff)
	}
	free.Conflict, free.Version = nil, 4
	if x.Feed.Watched(free); len(x.Leases.Contested()) != 0 {
		t.Errorf("forgotten: %v", x.Leases.Contested())
	}
}

// A quarantined address is given to nobody, also when it is asked for: the refusal names the MAC and the end.
func TestQuarantinedIsRefused(t *testing.T) {
	p := pool(t, "a", "10.0.0.0/24", []string{"10.0.0.9"})
	x := indexOf(p)
	l := contestedBy("02:00:5e:10:00:01", 9, 1)
	x.Feed.Watched(l)
	for what, w := range map[string]ipam.PickRequest{"any": want(), "this one": want(asking("10.0.0.9"))} {
		// what is over is ended by a write, not by the clock
		picks, refusal := x.Pick(w, l.Conflict.Until.Add(time.Hour))
		if refusal == nil {
			t.Errorf("%s: picked %v", what, picks)
			continue
		}
		if words := "quarantined until 2026-05-04T04:01:01Z: 02:00:5e:10:00:01 answered for it"; what == "this one" &&
			(refusal.Reason != ipam.ReasonAddressInUse || !strings.Contains(refusal.Message, words)) {
			t.Errorf("%s: %s: %s", what, refusal.Reason, refusal.Message)
		}
	}
}
