package allocator

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// What clocks of hosts are off by.
var skews = []time.Duration{
	-8 * time.Hour, -time.Hour, -10 * time.Second, 0, time.Second, 10 * time.Second, 8 * time.Hour,
}

// clockTest plays requests of one host whose clock is off and then set, at times of the test's choice.
type clockTest struct {
	t     *testing.T
	r     *replica
	start time.Time
	skew  time.Duration
}

// at is a request that begins so many seconds after the start and arrives a moment later.
func (c clockTest) at(r Request, s int) Request {
	r.ArrivedAt = c.start.Add(time.Duration(s) * time.Second)
	r.StartedAt = r.ArrivedAt.Add(c.skew - 50*time.Millisecond)
	return r
}

func (c clockTest) del(r Request, s int) ([]lease.Lease, error) {
	r = c.at(r, s)
	d := del(r)
	d.StartedAt, d.ArrivedAt = r.StartedAt, r.ArrivedAt
	return c.r.Release(c.t.Context(), d)
}

// frees checks that the DEL of a holder is told apart from one that did something: it frees the address, or is refused
// and frees it once a clock that was set back by seconds has caught up.
func (c clockTest) frees(r Request, a netip.Addr, s int) {
	c.t.Helper()
	got, err := c.del(r, s)
	if err != nil {
		refused(c.t, err, ipam.ReasonReleaseOutdated, a.String())
		if c.r.lease(a).State != lease.Active {
			c.t.Errorf("a DEL that was refused freed %s", a)
		}
		if got, err = c.del(r, s+15); err != nil {
			c.t.Fatalf("a DEL fifteen seconds later: %v", err)
		}
	}
	if len(got) != 1 || got[0].Addr != a || c.r.lease(a).State != lease.Available {
		c.t.Errorf("released %v, want %s", got, a)
	}
}

// Rule 6: whatever the clock of a host says, and however it is set, its newer containers get the address of their pod,
// late requests of older ones change nothing, and a DEL of who holds an address frees it, or says that it does not.
func TestClocks(t *testing.T) {
	s := newSite("9-120")
	r := newReplica(t, s.pool)
	for _, before := range skews {
		for _, after := range skews {
			t.Run(fmt.Sprintf("%s then %s", before, after), func(t *testing.T) {
				r := r.in(t)
				c := clockTest{t, r, time.Now().Add(-9 * time.Minute), before}
				set := c
				set.skew = after
				c.ofPod(s, set)
				c.start = c.start.Add(2 * time.Minute)
				set.start = c.start
				c.ofOwner(s, set)
			})
		}
	}
}

func (c clockTest) ofPod(s site, set clockTest) {
	t, r := c.t, c.r
	p := newPod(t, fmt.Sprintf("clock-%d-%d", c.skew/time.Second+1e6, set.skew/time.Second+1e6), s.host, r)
	one, two, three := s.of(p, p.Name+"-1"), s.of(p, p.Name+"-2"), s.of(p, p.Name+"-3")
	a := r.one(c.at(one, 0))
	if _, err := r.Allocate(t.Context(), set.at(two, 5)); err != nil {
		refused(t, err, ipam.ReasonContainerSuperseded) // a clock that was set back by seconds
	}
	if got := r.one(set.at(two, 25)); got != a {
		t.Fatalf("the next container has %s, want %s", got, a)
	}
	for _, clock := range []clockTest{c, set} {
		if got, err := clock.del(one, 26); err != nil || len(got) != 0 {
			t.Errorf("the late DEL of the first container: %v, %v", got, err)
		}
		_, err := r.Allocate(t.Context(), clock.at(one, 27))
		if _, ok := errors.AsType[*ipam.Refusal](err); !ok {
			t.Errorf("the late ADD of the first container: %v", err)
		}
	}
	if l := r.lease(a); l.ContainerID != two.ContainerID {
		t.Errorf("the second container's address is %+v", l)
	}
	set.frees(two, a, 28)

	// Without another setting, a DEL that overtakes its ADD wins.
	d := del(three)
	d.StartedAt, d.ArrivedAt = set.at(three, 52).StartedAt, set.at(three, 52).ArrivedAt
	if got := r.del(d); len(got) != 0 {
		t.Errorf("released %v", got)
	}
	late := set.at(three, 53)
	late.StartedAt = late.StartedAt.Add(-3 * time.Second)
	_, err := r.Allocate(t.Context(), late)
	refused(t, err, ipam.ReasonContainerDeleted)
}

func (c clockTest) ofOwner(s site, set clockTest) {
	t, r := c.t, c.r
	vm := s.vm(fmt.Sprintf("clock-%s-%s", c.skew, set.skew))
	a := r.one(c.at(vm, 0))
	set.frees(vm, a, 5)
	a = r.one(set.at(vm, 30))
	late := set.at(vm, 31) // a DEL that began before that
	d := del(late)
	d.StartedAt, d.ArrivedAt = late.StartedAt.Add(-2*time.Second), late.ArrivedAt
	if -maxAge < set.skew && set.skew < clockError {
		_, err := r.Release(t.Context(), d)
		refused(t, err, ipam.ReasonReleaseOutdated, a.String())
	}
	set.frees(vm, a, 33)
}

// A plugin that does not tell when it begins is replaced by one that does, on a host whose clock is behind.
func TestClockIsTold(t *testing.T) {
	s := newSite("9-40")
	r := newReplica(t, s.pool)
	for _, skew := range skews {
		t.Run(skew.String(), func(t *testing.T) {
			r := r.in(t)
			c := clockTest{t, r, time.Now().Add(-4 * time.Minute), skew}
			p := newPod(t, fmt.Sprintf("told-%d", skew/time.Second+1e6), s.host, r)
			one, vm := s.of(p, p.Name+"-1"), s.vm("told-"+skew.String())
			one.ArrivedAt, vm.ArrivedAt = c.start, c.start
			a, b := r.one(one), r.one(vm)
			two := s.of(p, p.Name+"-2")
			if got := r.one(c.at(two, 15)); got != a {
				t.Errorf("got %s, want %s", got, a)
			}
			c.frees(two, a, 16)
			c.frees(vm, b, 16)
		})
	}
}

// A replica knows the API server's time to a second or two: what begins after its present is not taken for earlier than
// it is, or a late ADD of the container before would come after it.
func TestClockOfReplicaIsBehind(t *testing.T) {
	s := newSite("9-20")
	first, second := newReplica(t, s.pool), newReplica(t, s.pool)
	for what, behind := range map[string]time.Duration{
		"right": 0, "behind": 865 * time.Millisecond, "as far as it gets": clockError,
	} {
		t.Run(what, func(t *testing.T) {
			first, second := first.in(t), second.in(t)
			start := ago()(0)
			began := func(r Request, ms int, arrived time.Time) Request {
				r.StartedAt, r.ArrivedAt = start.Add(time.Duration(ms)*time.Millisecond), arrived
				return r
			}
			name := "replica-" + strings.ReplaceAll(what, " ", "-")
			p := newPod(t, name, s.host, first, second)
			old := began(s.of(p, name+"-1"), 857, start.Add(858*time.Millisecond))
			first.one(old)
			gone := began(old, 861, start.Add(862*time.Millisecond))
			d := del(gone)
			d.StartedAt, d.ArrivedAt = gone.StartedAt, gone.ArrivedAt
			first.del(d)
			second.picture(s, map[netip.Addr]string{})

			next := began(s.of(p, name+"-2"), 865, start.Add(865*time.Millisecond-behind))
			a := second.one(next)
			_, err := second.Allocate(t.Context(), began(old, 857, start.Add(876*time.Millisecond)))
			refused(t, err, ipam.ReasonContainerSuperseded, next.ContainerID)
			if l := second.lease(a); l.State != lease.Active || l.ContainerID != next.ContainerID {
				t.Errorf("after the late ADD: %+v", l)
			}

			// Its DEL frees it, right after and at whichever replica.
			end := began(next, 866, start.Add(866*time.Millisecond))
			d = del(end)
			d.StartedAt, d.ArrivedAt = end.StartedAt, end.ArrivedAt
			first.picture(s, map[netip.Addr]string{a: next.ContainerID})
			if got := first.del(d); !slices.Equal(got, []netip.Addr{a}) {
				t.Errorf("released %v, want %s", got, a)
			}
		})
	}
}

// Of two requests of a host that is ahead, the later one counts as later, also where only one of them is ahead by more
// than can be true: an address is not kept from its DEL.
func TestMomentIsMonotone(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	for lead := -maxAge; lead <= maxAge; lead += time.Second / 2 {
		for _, jitter := range []time.Duration{-time.Millisecond, 0, time.Millisecond} {
			add := moment{told: start.Add(lead), arrived: start}
			next := moment{told: add.told.Add(10*time.Millisecond + jitter), arrived: start.Add(10 * time.Millisecond)}
			if !next.counts().After(add.counts()) {
				t.Errorf("by a clock that is %s ahead, and then %s more: %s, and then %s", lead, jitter, add.counts(),
					next.counts())
			}
		}
	}
}

// When a request counts as begun, beside others.
func TestMoment(t *testing.T) {
	arrived := time.Unix(1_700_000_000, 0)
	told := func(told, after time.Duration) moment {
		return moment{told: arrived.Add(told), arrived: arrived.Add(after)}
	}
	for what, test := range map[string]struct {
		of   moment
		want time.Duration // after arrived
	}{
		"not told":          {begun(arrived), 0},
		"told":              {told(-time.Second, 0), -time.Second},
		"as old as it gets": {told(-maxAge, 0), -maxAge},
		"older":             {told(-maxAge-1, 0), 0},
		"to come":           {told(1, 0), 1},
		"as far as it gets": {told(clockError, 0), clockError},
		"further":           {told(8*time.Hour, 0), clockError},
	} {
		if got := test.of.counts().Sub(arrived); got != test.want {
			t.Errorf("%s: %s, want %s", what, got, test.want)
		}
	}
	for what, test := range map[string]struct {
		a, b moment
		want bool
	}{
		"later":                        {told(-time.Second, 0), told(-2*time.Second, time.Minute), true},
		"earlier, and came later":      {told(-2*time.Second, time.Minute), told(-time.Second, 0), false},
		"at once":                      {told(-1, 0), told(-1, time.Minute), false},
		"by a clock that is behind":    {told(-8*time.Hour, 0), told(-8*time.Hour-time.Second, time.Minute), true},
		"by a clock that is ahead":     {told(8*time.Hour, time.Minute), told(8*time.Hour+time.Second, 0), false},
		"the clock was set back":       {told(-8*time.Hour, time.Minute), told(-time.Second, 0), true},
		"the clock was set forward":    {told(time.Second, time.Minute), told(-8*time.Hour, 0), true},
		"one does not tell":            {begun(arrived), told(-time.Second, 0), true},
		"one does not tell, the other": {told(-time.Second, 0), begun(arrived), false},
	} {
		if got := test.a.after(test.b); got != test.want {
			t.Errorf("%s: %v", what, got)
		}
	}
}
