package site

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// WantStatus waits for the counts of a pool.
func (s *Site) WantStatus(p *v1.BCSNetPool, capacity, available, active int64) {
	s.Helper()
	controlplane.EventuallyWithin(s.T, Patience, func() error {
		if err := s.Admin.Get(s.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		got := p.Status
		if got.Capacity != capacity || got.Available != available || got.Active != active ||
			got.ObservedGeneration != p.Generation {
			return fmt.Errorf("pool %s: capacity %d, available %d, active %d of generation %d; want %d, %d, %d of %d",
				p.Name, got.Capacity, got.Available, got.Active, got.ObservedGeneration, capacity, available, active,
				p.Generation)
		}
		return nil
	})
}

// WantCondition waits for a condition whose message holds some words.
func (s *Site) WantCondition(
	p *v1.BCSNetPool, kind string, status metav1.ConditionStatus, reason string, words ...string,
) {
	s.Helper()
	controlplane.EventuallyWithin(s.T, Patience, func() error {
		if err := s.Admin.Get(s.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		c := meta.FindStatusCondition(p.Status.Conditions, kind)
		if c == nil || c.Status != status || c.Reason != reason {
			return fmt.Errorf("pool %s: condition %s is %+v; want %s, %s", p.Name, kind, c, status, reason)
		}
		for _, w := range words {
			if !strings.Contains(c.Message, w) {
				return fmt.Errorf("pool %s: condition %s says %q; want %q in it", p.Name, kind, c.Message, w)
			}
		}
		return nil
	})
}

// WantReady waits until hosts can draw from a pool, which may be full or drain.
func (s *Site) WantReady(p *v1.BCSNetPool) {
	s.Helper()
	controlplane.EventuallyWithin(s.T, Patience, func() error {
		if err := s.Admin.Get(s.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(p.Status.Conditions, v1.ConditionReady) {
			return fmt.Errorf("pool %s is not ready: %+v", p.Name, p.Status.Conditions)
		}
		return nil
	})
}

// WantGone waits until a pool has gone, and returns when it was last there: it went no earlier.
func (s *Site) WantGone(p *v1.BCSNetPool) (last time.Time) {
	s.Helper()
	controlplane.EventuallyWithin(s.T, 2*Patience, func() error {
		asked := time.Now()
		err := s.Admin.Get(s.Context(), client.ObjectKeyFromObject(p), p)
		if err == nil {
			last = asked
			return fmt.Errorf("pool %s is still there", p.Name)
		}
		return client.IgnoreNotFound(err)
	})
	return last
}

// WantObjects waits until exactly these addresses have an object that names the pool.
func (s *Site) WantObjects(pool string, want ...string) {
	s.Helper()
	controlplane.EventuallyWithin(s.T, Patience, func() error {
		var list v1.BCSNetIPList
		if err := s.Admin.List(s.Context(), &list, client.MatchingFields{"spec.pool": pool}); err != nil {
			return err
		}
		var got []string
		for _, ip := range list.Items {
			got = append(got, ip.Name)
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			return fmt.Errorf("pool %s has the objects %v, want %v", pool, got, want)
		}
		return nil
	})
}

// CountObjects returns how many objects name the pool.
func (s *Site) CountObjects(pool string) int {
	s.Helper()
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(v1.GroupVersion.WithKind("BCSNetIPList"))
	if err := s.Admin.List(s.Context(), &list, client.MatchingFields{"spec.pool": pool}); err != nil {
		s.Fatal(err)
	}
	return len(list.Items)
}

// WaitForObjects waits until enough objects name the pool, or few enough.
func (s *Site) WaitForObjects(pool string, enough func(int) bool) {
	s.Helper()
	controlplane.EventuallyWithin(s.T, Patience, func() error {
		if n := s.CountObjects(pool); !enough(n) {
			return fmt.Errorf("pool %s has %d objects", pool, n)
		}
		return nil
	})
}

// WantObjectCount waits until that many objects name the pool.
func (s *Site) WantObjectCount(pool string, want int) {
	s.Helper()
	s.WaitForObjects(pool, func(n int) bool { return n == want })
}
