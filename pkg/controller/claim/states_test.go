package claim

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"testing"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/bcsnet/bcsnet/pkg/controller/leadership"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// atOnce knows no delay.
type atOnce struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
}

func (q *atOnce) AddAfter(r reconcile.Request, _ time.Duration) { q.Add(r) }

// remembering returns states that know claims of as many workloads.
func remembering(tb testing.TB, workloads int) (*States, func() []string) {
	tb.Helper()
	leads := leading(tb)
	entered := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	tb.Cleanup(entered.ShutDown)
	s := NewStates(leads)
	s.queue.Start(&atOnce{entered})
	s.queue.Open(tb.Context())
	for i := range workloads {
		s.remember(fmt.Sprintf("shop/deploy-%d", i), deployment(i))
	}
	return s, func() (names []string) {
		for entered.Len() > 0 {
			got, _ := entered.Get()
			names = append(names, got.String())
			entered.Done(got)
		}
		slices.Sort(names)
		return names
	}
}

// leading returns terms of which one is under way until the test ends.
func leading(tb testing.TB) *leadership.Terms {
	tb.Helper()
	leads, began := leadership.NewTerms(slog.New(slog.DiscardHandler)), make(chan struct{})
	leads.OnTerm(func(context.Context) error { close(began); return nil })
	go leads.Lead(tb.Context(), func() {})
	<-began
	return leads
}

func addressOf(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 0, byte(1 + i/256), byte(i)})
}

func deployment(i int) workload.Workload {
	return workload.Workload{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: fmt.Sprintf("web-%d", i)}
}

// TestRemember: the other claims of a workload are looked at when one comes, goes, or is another workload's from now
// on.
func TestRemember(t *testing.T) {
	s, entered := remembering(t, 3)
	entered()
	for _, step := range []struct {
		name string
		of   workload.Workload
		want []string
	}{
		{"shop/mine", deployment(1), []string{"shop/deploy-1"}},
		{"shop/mine", deployment(1), nil},
		{"shop/mine", deployment(2), []string{"shop/deploy-1", "shop/deploy-2"}},
		{"shop/mine", workload.Workload{}, []string{"shop/deploy-2"}},
		{"shop/mine", workload.Workload{}, nil},
		{"shop/deploy-0", workload.Workload{}, nil},
	} {
		s.remember(step.name, step.of)
		if got := entered(); !slices.Equal(got, step.want) {
			t.Errorf("%s of %s: %v are looked at, want %v", step.name, step.of.Name, got, step.want)
		}
	}
	if known, of := len(s.claims), len(s.byWorkload); known != 2 || of != 2 {
		t.Errorf("%d claims of %d workloads are left, want 2 of 2", known, of)
	}
}

// BenchmarkRemember is what a new claim costs, under the lock that each ADD takes.
func BenchmarkRemember(b *testing.B) {
	for _, workloads := range []int{100, 10_000} {
		b.Run(fmt.Sprint(workloads), func(b *testing.B) {
			s, _ := remembering(b, workloads)
			for b.Loop() {
				s.remember("shop/mine", deployment(workloads))
				s.remember("shop/mine", workload.Workload{})
			}
		})
	}
}

// entered notes after how long each object is entered.
type entered struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	after []time.Duration
}

func (e *entered) AddAfter(_ reconcile.Request, after time.Duration) {
	e.after = append(e.after, after)
}

// TestLargeClaimsGatherLonger: each look at a claim goes over all that it has, so there are fewer of them.
func TestLargeClaimsGatherLonger(t *testing.T) {
	leads := leading(t)
	var q entered
	r := &Reconciler{Config: Config{Terms: leads, States: NewStates(leads), Index: index.New()}}
	r.States.queue.Start(&q)
	r.States.queue.Open(t.Context())
	r.Index.Feed.Subscribe(r.leaseChanged)
	const all = 6000
	for i := range all {
		r.Index.Feed.Watched(lease.Lease{
			Addr: addressOf(i), Params: lease.Params{Pool: "p", Bits: 8}, State: lease.Active, Version: uint64(i + 1),
			Retention: lease.Retention{Claim: "shop/all"},
		})
	}
	for at, want := range map[int]time.Duration{0: claimDelay, 999: claimDelay + time.Second, all - 1: maxClaimDelay} {
		if got := q.after[at]; got < want || got > want+claimDelayEach {
			t.Errorf("with %d addresses it is looked at after %s, want %s", at+1, got, want)
		}
	}
}
