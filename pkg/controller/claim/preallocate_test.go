package claim

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/claim"
	"github.com/bcsnet/bcsnet/pkg/controller/leadership"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// TestPreallocatedSaysWhatLasts: the condition says Taking after one error, and the error while that comes again, in
// the same words, until something else lasts or the addresses are there.
func TestPreallocatedSaysWhatLasts(t *testing.T) {
	forbidden := func(n int) error {
		return fmt.Errorf("claim a/b: %w", ipam.Refuse(ipam.ReasonForbidden, "patching %d is forbidden", n))
	}
	late := ipam.Refuse(ipam.ReasonUnavailable, "the request ran out of time")
	s := NewStates(nil)
	for i, step := range []struct {
		err           error
		reason, words string
	}{
		{forbidden(1), "Taking", "takes more"},
		{forbidden(2), "Forbidden", "cannot take more: patching 2 is forbidden"},
		{forbidden(3), "Forbidden", "patching 2"},
		{late, "Forbidden", "patching 2"},
		{forbidden(4), "Forbidden", "patching 2"},
		{late, "Forbidden", "patching 2"},
		{late, "Unavailable", "ran out of time"},
		{nil, "Complete", "has 3 addresses of a family"},
		{late, "Taking", "takes more"},
		{errors.New("a body that is no lease"), "Taking", "takes more"},
		{errors.New("a body that is no lease"), "Internal", "a body that is no lease"},
	} {
		view := statusView{
			taking: step.err != nil, stock: allocator.Stock{Has: 3}, failure: s.notePreallocation("a/b", step.err),
		}
		got := preallocated(claim.Claim{Name: "a/b", Preallocate: true}, view)
		if got.Reason != step.reason || !strings.Contains(got.Message, step.words) {
			t.Errorf("%d, %v: %s: %s; want %s: %s", i, step.err, got.Reason, got.Message, step.reason, step.words)
		}
		if other := s.notePreallocation("a/other", nil); other != nil {
			t.Errorf("another claim fails: %v", other)
		}
	}
}

// TestFreedBesideReconciles: addresses become free while claims are reconciled.
func TestFreedBesideReconciles(*testing.T) {
	s := NewStates(leadership.NewTerms(slog.New(slog.DiscardHandler)))
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for range 1000 {
				s.short.Set("a/b", false)
			}
		})
		all.Go(func() {
			for range 1000 {
				s.enqueueAll(s.short.Wake(""))
			}
		})
	}
	all.Wait()
}
