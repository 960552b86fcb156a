package conditions

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
)

// simulated has objects change at a steady rate for a time, each asking again when its wait is over, as the reconcilers
// have it, and returns how often each was written and the longest that one waited.
func simulated(
	objects, perSecond int, length time.Duration, change func(object int) Urgency,
) (writes map[int]int, longest time.Duration) {
	now := time.Unix(1_800_000_000, 0)
	b := NewBudget(func() time.Time { return now })
	type pending struct{ since, ask time.Time }
	waiting := map[int]*pending{}
	writes = map[int]int{}
	const step = 10 * time.Millisecond
	changes := 0
	for elapsed := time.Duration(0); elapsed < length; elapsed += step {
		now = now.Add(step)
		for ; changes < int(elapsed.Seconds()*float64(perSecond)); changes++ {
			if i := changes % objects; waiting[i] == nil {
				waiting[i] = &pending{since: now, ask: now.Add(WriteDelay)}
			}
		}
		for i, p := range waiting {
			if now.Before(p.ask) {
				continue
			}
			if wait := b.Ask(fmt.Sprint(i), change(i)); wait > 0 {
				p.ask = now.Add(wait)
				continue
			}
			writes[i]++
			longest = max(longest, now.Sub(p.since))
			delete(waiting, i)
		}
	}
	return writes, longest
}

// TestStatusBudgetOfManyPools: with 500 busy pools there is at most one status write for ten allocations, and each pool
// has its turn before another has its second.
func TestStatusBudgetOfManyPools(t *testing.T) {
	const pools, perSecond, length = 500, 200, 10 * time.Minute
	writes, longest := simulated(pools, perSecond, length, func(int) Urgency { return Numbers })
	all, least, most := 0, 1<<30, 0
	for i := range pools {
		all, least, most = all+writes[i], min(least, writes[i]), max(most, writes[i])
	}
	if operations := int(length.Seconds()) * perSecond; all > operations/10 {
		t.Errorf("%d status writes for %d allocations", all, operations)
	}
	if most-least > 1 {
		t.Errorf("one pool was written %d times, another %d times", most, least)
	}
	if bound := pools/statusRate*time.Second + 2*WriteDelay; longest > bound {
		t.Errorf("one pool waited %s, want at most %s", longest, bound)
	}
}

// TestStatusBudgetOfOnePool: alone, a pool is written once in WriteDelay, and waits no longer.
func TestStatusBudgetOfOnePool(t *testing.T) {
	writes, longest := simulated(1, 400, time.Minute, func(int) Urgency { return Numbers })
	if most := int(time.Minute / WriteDelay); writes[0] > most || writes[0] < most*9/10 {
		t.Errorf("%d writes, want about %d", writes[0], most)
	}
	if longest > 2*WriteDelay {
		t.Errorf("it waited %s", longest)
	}
}

// TestStatusBudgetOfEdges: a pool that has become full is written before 500 whose numbers changed earlier; one that
// becomes full and has addresses again all the time is written no more often than others.
func TestStatusBudgetOfEdges(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	b := NewBudget(func() time.Time { return now })
	for i := range 500 {
		b.Ask(fmt.Sprint(i), Numbers)
	}
	if wait := b.Ask("499", Edge); wait != 0 {
		t.Errorf("an edge of a pool that waited with its numbers waits %s", wait)
	}
	if wait := b.Ask("499", Edge); wait != WriteDelay {
		t.Errorf("the next Edge of the same pool waits %s, want %s", wait, WriteDelay)
	}
	if wait, isEdge := b.Until("499"); wait != WriteDelay || !isEdge {
		t.Errorf("it has a turn in %s, as an edge: %t", wait, isEdge)
	}
	if wait := b.Ask("499", Unchanged); wait != 0 {
		t.Errorf("what needs no write waits %s", wait)
	}
	if wait, _ := b.Until("499"); wait != 0 {
		t.Errorf("the turn of what needs no write is kept: %s", wait)
	}
	if wait := b.Ask("498", Answer); wait != 0 {
		t.Errorf("what somebody waits for waits %s", wait)
	}
	b.Forget("499")
	if wait := b.Ask("499", Edge); wait != 0 {
		t.Errorf("another of the name waits %s", wait)
	}
}

// TestStatusBudgetOfWhatIsNotWritten: changes that are undone before their turn, and objects that go, keep nobody
// waiting.
func TestStatusBudgetOfWhatIsNotWritten(t *testing.T) {
	for name, drop := range map[string]func(*Budget, string){
		"undone": func(b *Budget, object string) { b.Ask(object, Unchanged) },
		"gone":   func(b *Budget, object string) { b.Forget(object) },
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(1_800_000_000, 0)
			b := NewBudget(func() time.Time { return now })
			for i := range 5000 {
				now = now.Add(10 * time.Millisecond)
				object := fmt.Sprint(i)
				if b.Ask(object, Numbers) > 0 {
					drop(b, object)
				}
			}
			if wait := b.Ask("another", Numbers); wait > WriteDelay {
				t.Errorf("behind 5000 that need no write, one waits %s", wait)
			}
		})
	}
}

func TestUrgency(t *testing.T) {
	conditions := func(status metav1.ConditionStatus, message string) []metav1.Condition {
		return []metav1.Condition{{Type: v1.ConditionReady, Status: status, Reason: "R", Message: message}}
	}
	before := v1.BCSNetPoolStatus{
		Status: v1.PoolNormal, UpdateTime: "then", ObservedGeneration: 1, Available: 5,
		Conditions: conditions(metav1.ConditionTrue, "a"),
	}
	for name, test := range map[string]struct {
		change func(*v1.BCSNetPoolStatus)
		want   Urgency
	}{
		"nothing":          {func(*v1.BCSNetPoolStatus) {}, Unchanged},
		"counts":           {func(s *v1.BCSNetPoolStatus) { s.Available, s.Active = 4, 1 }, Numbers},
		"a text":           {func(s *v1.BCSNetPoolStatus) { s.Conditions = conditions(metav1.ConditionTrue, "b") }, Numbers},
		"full":             {func(s *v1.BCSNetPoolStatus) { s.Available = 0 }, Edge},
		"turned":           {func(s *v1.BCSNetPoolStatus) { s.Conditions = conditions(metav1.ConditionFalse, "a") }, Edge},
		"a condition less": {func(s *v1.BCSNetPoolStatus) { s.Conditions = nil }, Edge},
		"a new spec":       {func(s *v1.BCSNetPoolStatus) { s.ObservedGeneration = 2 }, Answer},
		"deleted":          {func(s *v1.BCSNetPoolStatus) { s.Status = v1.PoolTerminating }, Answer},
	} {
		t.Run(name, func(t *testing.T) {
			now := *before.DeepCopy()
			test.change(&now)
			if got := UrgencyOfPool(&before, &now); got != test.want {
				t.Errorf("%d, want %d", got, test.want)
			}
		})
	}
	first := v1.BCSNetIPClaimStatus{Usage: "0/0", ObservedGeneration: 1, Conditions: conditions(metav1.ConditionTrue, "a")}
	for managed, want := range map[bool]Urgency{false: Answer, true: Numbers} {
		if got := UrgencyOfClaim(managed, &v1.BCSNetIPClaimStatus{}, &first); got != want {
			t.Errorf("the first status of a claim, made from annotations: %t: %d, want %d", managed, got, want)
		}
	}
}
