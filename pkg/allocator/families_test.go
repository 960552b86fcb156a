package allocator

import (
	"net/http"
	"net/netip"
	"slices"
	"testing"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/test/intercept"
)

// taking is a request that says something about families.
func taking(r Request, policy ipam.FamilyPolicy, order ...ipaddr.Family) Request {
	r.Families = ipam.Families{Policy: policy, Order: order}
	return r
}

// What PreferDualStack got is what a repeated request gets, also where a pool of the other family has come since, and
// for a new container of the pod. A new pod takes what there is then.
func TestPreferDualStackDoesNotGrow(t *testing.T) {
	four, six := dual([]string{"9-12"}, "9", "a")
	r := newReplica(t, four.pool)
	p := newPod(t, "prefer-0", four.host, r)
	request := taking(four.of(p, "prefer-c1"), ipam.PreferDualStack)
	first := r.one(request)
	r.index.Pools.SetPool(poolOf(t, six.pool))
	r.tap.Forget()
	if again := r.one(request); again != first {
		t.Errorf("again: %s, want %s", again, first)
	}
	r.cost("a repeated ADD", 0, 1)
	if other := r.one(taking(four.of(p, "prefer-c2"), ipam.PreferDualStack)); other != first {
		t.Errorf("a new container of the pod: %s, want %s", other, first)
	}
	_, err := r.Allocate(t.Context(), taking(four.of(p, "prefer-c2"), ipam.RequireDualStack))
	refused(t, err, ipam.ReasonContainerHoldsOther)
	_, err = r.Allocate(t.Context(), taking(four.of(p, "prefer-c2"), ipam.SingleStack, ipaddr.IPv6))
	refused(t, err, ipam.ReasonContainerHoldsOther)
	q := newPod(t, "prefer-1", four.host, r)
	if got := r.add(taking(four.of(q, "prefer-c3"), ipam.PreferDualStack)); len(got) != 2 {
		t.Errorf("a new pod got %v", got)
	}
}

// A set that was begun is completed, and never answered as a part, whether or not the policy would do with less.
func TestPreferDualStackCompletes(t *testing.T) {
	four, six := dual([]string{"9-12"}, "9", "a")
	r := newReplica(t, four.pool, six.pool)
	p := newPod(t, "prefer-part", four.host, r)
	request := taking(four.of(p, "prefer-part-c"), ipam.PreferDualStack, ipaddr.IPv6, ipaddr.IPv4)
	r.tap.Forget()
	mend := r.tap.On(func(q *http.Request) bool { return writes(q) && r.tap.Count(writes) == 2 },
		intercept.Fail(errRefused))
	_, err := r.Allocate(t.Context(), request)
	refused(t, err, ipam.ReasonUnavailable)
	mend()
	got := r.add(request)
	if len(got) != 2 || !got[0].Is6() {
		t.Fatalf("completed to %v, want IPv6 first", got)
	}
	if again := r.add(request); !slices.Equal(again, got) {
		t.Errorf("again: %v, want %v", again, got)
	}
	if released := r.del(del(request)); len(released) != 2 {
		t.Errorf("released %v, want both", released)
	}
}

// RequireDualStack takes nothing where one family is missing, and PreferDualStack the other one.
func TestFamilyThatIsFull(t *testing.T) {
	four, six := dual([]string{"9-12"}, "9")
	r := newReplica(t, four.pool, six.pool)
	pods := []string{"require-0", "require-1", "require-2", "require-3"}
	request := func(i int, policy ipam.FamilyPolicy, order ...ipaddr.Family) Request {
		return taking(four.of(newPod(t, pods[i], four.host, r), pods[i]+"-c"), policy, order...)
	}
	if got := r.add(request(0, ipam.RequireDualStack)); len(got) != 2 {
		t.Fatalf("got %v", got)
	}
	_, err := r.Allocate(t.Context(), request(1, "", ipaddr.IPv4, ipaddr.IPv6))
	refused(t, err, ipam.ReasonPoolExhausted)
	if held := four.held(t); len(held) != 1 {
		t.Errorf("held: %v, want one", held)
	}
	if got := r.one(request(2, ipam.PreferDualStack)); !got.Is4() {
		t.Errorf("PreferDualStack got %s", got)
	}
	if got := r.one(request(3, ipam.SingleStack)); !got.Is4() {
		t.Errorf("SingleStack got %s", got)
	}
	r.index.Pools.RemovePool(six.pool.Name)
	_, err = r.Allocate(t.Context(), taking(four.vm("none"), ipam.SingleStack, ipaddr.IPv6))
	refused(t, err, ipam.ReasonFamilyNotServed)
}

// The request and the annotations say parts of one thing, and do not contradict each other.
func TestFamiliesOfTheAnnotations(t *testing.T) {
	four, six := dual([]string{"9-12"}, "9", "a")
	r := newReplica(t, four.pool, six.pool)
	p := newPod(t, "said-0", four.host, r)
	terms.set(p.Name, Constraints{Families: ipam.Families{Policy: ipam.SingleStack}})
	plain := four.of(p, "said-c")
	for what, contradicting := range map[string]Request{
		"policy":    taking(plain, ipam.PreferDualStack),
		"addresses": func() Request { q := plain; q.Addrs = []netip.Addr{four.addr(9), six.addr(9)}; return q }(),
	} {
		if _, err := r.Allocate(t.Context(), contradicting); err == nil {
			t.Errorf("another %s: no refusal", what)
		} else {
			refused(t, err, ipam.ReasonClaimConflict)
		}
	}
	got := r.one(taking(plain, "", ipaddr.IPv6))
	if !got.Is6() {
		t.Errorf("SingleStack of the annotation, IPv6 of the request: %s", got)
	}
	if again := r.one(plain); again != got {
		t.Errorf("again: %s, want %s", again, got)
	}
}

// The next pod of a key gets what the one before had, or of it what its own families say.
func TestFamiliesOfASuccessor(t *testing.T) {
	for name, tc := range map[string]struct {
		before, after ipam.Families
		want          int
		six           bool // the pool of IPv6 is there from the beginning
	}{
		"both, nothing said":     {want: 2, six: true},
		"both, then single":      {after: ipam.Families{Policy: ipam.SingleStack}, want: 1, six: true},
		"both, then single IPv6": {after: ipam.Families{Order: []ipaddr.Family{ipaddr.IPv6}}, want: 1, six: true},
		"one, then prefer":       {before: ipam.Families{Policy: ipam.PreferDualStack}, after: ipam.Families{Policy: ipam.PreferDualStack}, want: 1},
		"one, then require":      {before: ipam.Families{Policy: ipam.PreferDualStack}, after: ipam.Families{Policy: ipam.RequireDualStack}, want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			four, six := dual([]string{"9-12"}, "9", "a")
			r := newReplica(t, four.pool)
			if tc.six {
				r.index.Pools.SetPool(poolOf(t, six.pool))
			}
			p := newPod(t, "heir-"+four.pool.Name, four.host, r)
			on := four.keyed("default/" + p.Name)
			on.Families = tc.before
			terms.set(p.Name, on)
			first := r.add(four.of(p, p.Name+"-c1"))
			r.index.Pools.SetPool(poolOf(t, six.pool))
			on.Families = tc.after
			terms.set(p.Name, on)
			p = again(t, p, four, r)
			got := r.add(four.of(p, p.Name+"-c2"))
			if len(got) != tc.want {
				t.Fatalf("got %v after %v, want %d", got, first, tc.want)
			}
			for _, a := range got[:min(len(got), len(first))] {
				if !slices.Contains(first, a) {
					t.Errorf("got %v, the pod before had %v", got, first)
				}
			}
			if repeated := r.add(four.of(p, p.Name+"-c2")); !slices.Equal(repeated, got) {
				t.Errorf("again: %v, want %v", repeated, got)
			}
		})
	}
}
