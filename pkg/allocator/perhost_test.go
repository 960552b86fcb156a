package allocator

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// TestMaxPerHostAtOnce: of many requests at once a host gets as many addresses as the pool lets it have, and another
// one when one is given up; what a container has it keeps.
func TestMaxPerHostAtOnce(t *testing.T) {
	s := newSite("9-60")
	s.pool.Spec.MaxPerHost = 5
	r := newReplica(t, s.pool)
	const asking = 20
	var group sync.WaitGroup
	answers := make(chan error, asking)
	var got sync.Map
	for i := range asking {
		group.Go(func() {
			request := s.vm(fmt.Sprint("many", i))
			leases, err := r.Allocate(t.Context(), request)
			if answers <- err; err == nil {
				got.Store(leases[0].Addr, request)
			}
		})
	}
	group.Wait()
	close(answers)
	served := 0
	for err := range answers {
		if why, ok := errors.AsType[*ipam.Refusal](err); err != nil && (!ok || why.Reason != ipam.ReasonHostFull) {
			t.Errorf("%v", err)
		}
		if err == nil {
			served++
		}
	}
	if served != 5 {
		t.Errorf("%d were served, want 5", served)
	}
	got.Range(func(addr, request any) bool {
		if again := r.one(request.(Request)); again != addr {
			t.Errorf("%v has %s, it had %s", request, again, addr)
		}
		if _, err := r.Release(t.Context(), del(request.(Request))); err != nil {
			t.Error(err)
		}
		return false
	})
	next := r.one(s.vm("next"))
	if _, held := r.index.Leases.Get(next); !held || next == (netip.Addr{}) {
		t.Errorf("the next got %s", next)
	}
	if _, err := r.Allocate(t.Context(), s.vm("one more")); err == nil {
		t.Error("a sixth was served")
	}
}
