package groups_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/site"
)

// TestGroupMadeAgain: a group that is deleted by force and made again at once, by the same name, is a new one: its
// parent could hand its addresses out in between. What somebody has of the group before is the new one's.
func TestGroupMadeAgain(t *testing.T) {
	controlplane.TakesLong(t)
	t.Parallel()
	s := at(t)
	s.NewPool("again", nil, "10.64.0.20-10.64.0.29")
	group := newGroup(s, "again-eng", "again", "10.64.0.24-10.64.0.26")
	s.WantReady(group)
	for _, pod := range []string{"again-a", "again-b"} {
		s.NewPod(pod)
	}
	if a := s.Ask(http.MethodPost, "again-a", "10.64.0.24"); a.Code != 0 || a.Address.Pool != group.Name {
		t.Fatalf("of the group: %+v", a)
	}
	if err := s.Admin.Delete(t.Context(), group); err != nil {
		t.Fatal(err)
	}
	byForce(s, group)
	s.WantGone(group)
	began := time.Now()
	group = newGroup(s, "again-eng", "again", "10.64.0.24-10.64.0.26")
	s.WantCondition(group, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonCarving)
	if len(group.Status.Carved) > 0 {
		t.Errorf("carved before anybody waited: %v", group.Status.Carved)
	}
	if a := s.Ask(http.MethodPost, "again-b", "10.64.0.25"); a.Reason != "PoolCordoned" {
		t.Errorf("of a group that is being carved: %+v", a)
	}
	s.WantReady(group)
	if took := time.Since(began); took < allocator.MaxRequestTime {
		t.Errorf("the group serves after %s, before a request that began earlier is over", took)
	}
	if a := s.Ask(http.MethodPost, "again-b", "10.64.0.25"); a.Code != 0 || a.Address.Pool != group.Name {
		t.Errorf("of the group: %+v", a)
	}
	s.WantStatus(group, 3, 1, 2)
	release(s, "again-a", "again-b")
}

// TestParentDeletedMeanwhile: a parent that is deleted while a group of it is being carved waits for the group, which
// does not serve; when the group is deleted, too, both go with the last lease.
func TestParentDeletedMeanwhile(t *testing.T) {
	t.Parallel()
	s := at(t)
	parent := s.NewPool("meanwhile", nil, "10.65.0.20-10.65.0.29")
	s.NewPod("meanwhile-a")
	s.NewPod("meanwhile-b")
	if a := s.Ask(http.MethodPost, "meanwhile-a", "10.65.0.25"); a.Code != 0 {
		t.Fatal(a.Message)
	}
	group := newGroup(s, "meanwhile-eng", "meanwhile", "10.65.0.24-10.65.0.26")
	s.WantCondition(group, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonCarving, "10.65.0.25")
	if err := s.Admin.Delete(t.Context(), parent); err != nil {
		t.Fatal(err)
	}
	s.WantCondition(group, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonInvalidParent, "is being deleted")
	s.WantCondition(parent, v1.ConditionDraining, metav1.ConditionTrue, v1.ReasonPoolDeleted, "meanwhile-eng")
	for _, addr := range []string{"10.65.0.24", "10.65.0.28"} {
		if a := s.Ask(http.MethodPost, "meanwhile-b", addr); a.Reason != "PoolCordoned" {
			t.Errorf("%s is answered by %+v", addr, a)
		}
	}
	if err := s.Admin.Delete(t.Context(), group); err != nil {
		t.Fatal(err)
	}
	s.WantGone(group)
	s.WantCondition(parent, v1.ConditionDraining, metav1.ConditionTrue, v1.ReasonPoolDeleted, "1 address in use")
	release(s, "meanwhile-a")
	s.WantGone(parent)
	s.WantObjectCount(parent.Name, 0)
	s.WantObjectCount(group.Name, 0)
}

// TestGroupsForOneRange: of two groups that are made for one range at once one has it, and the other says so; it gets
// the range when the first has gone, and not before everything of that is over.
func TestGroupsForOneRange(t *testing.T) {
	controlplane.TakesLong(t)
	t.Parallel()
	s := at(t)
	s.NewPool("range", nil, "10.66.0.20-10.66.0.29")
	var groups [2]*v1.BCSNetPool
	var making sync.WaitGroup
	for i := range groups {
		making.Go(func() {
			groups[i] = newGroup(s, fmt.Sprintf("range-%d", i), "range", fmt.Sprintf("10.66.0.%d-10.66.0.26", 24-i))
		})
	}
	making.Wait()
	if t.Failed() {
		return
	}
	var first, second *v1.BCSNetPool
	controlplane.EventuallyWithin(t, site.Patience, func() error {
		first, second = nil, nil
		for _, g := range groups {
			if err := s.Admin.Get(t.Context(), client.ObjectKeyFromObject(g), g); err != nil {
				return err
			}
			switch ready := meta.FindStatusCondition(g.Status.Conditions, v1.ConditionReady); {
			case ready == nil:
			case ready.Status == metav1.ConditionTrue:
				first = g
			case ready.Reason == v1.ReasonInvalidParent && strings.Contains(ready.Message, "children never overlap"):
				second = g
			}
		}
		if first == nil || second == nil {
			return errors.New("there is no group that serves and another that does not")
		}
		return nil
	})
	s.NewPod("range-a")
	if a := s.Ask(http.MethodPost, "range-a", "10.66.0.25"); a.Code != 0 || a.Address.Pool != first.Name {
		t.Errorf("of the one that serves: %+v", a)
	}
	if err := s.Admin.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	s.WantCondition(first, v1.ConditionDraining, metav1.ConditionTrue, v1.ReasonPoolDeleted, "1 address in use")
	release(s, "range-a")
	last := s.WantGone(first)
	s.WantReady(second)
	if took := time.Since(last); took < allocator.MaxRequestTime-time.Second {
		t.Errorf("the second group serves %s after the first has gone", took)
	}
	if a := s.Ask(http.MethodPost, "range-a", "10.66.0.25"); a.Code != 0 || a.Address.Pool != second.Name {
		t.Errorf("of the second: %+v", a)
	}
	release(s, "range-a")
}

// TestGroupOnCoolingAddress: an address that cools is handed over when it has cooled down, by its pool's cooldown.
func TestGroupOnCoolingAddress(t *testing.T) {
	controlplane.TakesLong(t)
	t.Parallel()
	s := at(t)
	const cooldown = 25 * time.Second
	parent := s.NewPool("cools", func(s *v1.BCSNetPoolSpec) {
		s.Cooldown = &metav1.Duration{Duration: cooldown}
	}, "10.67.0.20-10.67.0.29")
	s.WantReady(parent)
	s.NewPod("cools-a")
	if a := s.Ask(http.MethodPost, "cools-a", "10.67.0.25"); a.Code != 0 {
		t.Fatal(a.Message)
	}
	began := time.Now()
	release(s, "cools-a")
	group := newGroup(s, "cools-eng", "cools", "10.67.0.25-10.67.0.26")
	s.WantCondition(group, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonCarving, "10.67.0.25 (cooling until ")
	s.WantReady(group)
	if took := time.Since(began); took < cooldown-2*time.Second {
		t.Errorf("the group serves after %s, while an address cools for %s", took, cooldown)
	}
	s.WantStatus(group, 2, 2, 0)
	s.WantStatus(parent, 8, 8, 0)
}

// TestGroupThatDidNotFitMeanwhile: while a group does not fit, its parent hands its addresses out. What is given then
// is not the group's when it fits again, until it is released, however short that was.
func TestGroupThatDidNotFitMeanwhile(t *testing.T) {
	controlplane.TakesLong(t)
	t.Parallel()
	s := at(t)
	parent := s.NewPool("misfit", nil, "10.68.0.20-10.68.0.29")
	group := newGroup(s, "misfit-eng", "misfit", "10.68.0.20-10.68.0.23")
	s.WantReady(group)
	s.NewPod("misfit-a")
	s.NewPod("misfit-b")
	s.Edit(parent, func(s *v1.BCSNetPoolSpec) { s.AvailableIPs = []string{"10.68.0.21-10.68.0.29"} })
	controlplane.EventuallyWithin(t, site.Patience, func() error {
		if a := s.Ask(http.MethodPost, "misfit-a", "10.68.0.22"); a.Code != 0 || a.Address.Pool != parent.Name {
			return fmt.Errorf("%+v", a)
		}
		return nil
	})
	s.Edit(parent, func(s *v1.BCSNetPoolSpec) { s.AvailableIPs = []string{"10.68.0.20-10.68.0.29"} })
	controlplane.EventuallyWithin(t, site.Patience, func() error {
		if err := s.Admin.Get(t.Context(), client.ObjectKeyFromObject(group), group); err != nil {
			return err
		}
		ready := meta.FindStatusCondition(group.Status.Conditions, v1.ConditionReady)
		if ready == nil || !strings.Contains(ready.Message, "10.68.0.22 (default/misfit-a on host "+s.Host+")") {
			return fmt.Errorf("%+v", ready)
		}
		return nil
	})
	if slices.ContainsFunc(group.Status.Carved, func(r string) bool { return strings.Contains(r, "10.68.0.22") }) {
		t.Errorf("carved are %v", group.Status.Carved)
	}
	release(s, "misfit-a")
	s.WantStatus(group, 4, 4, 0)
	controlplane.EventuallyWithin(t, site.Patience, func() error {
		if a := s.Ask(http.MethodPost, "misfit-b", "10.68.0.22"); a.Code != 0 || a.Address.Pool != group.Name {
			return fmt.Errorf("%+v", a)
		}
		return nil
	})
	release(s, "misfit-b")
}

// TestGroupOfPoolThatLostItsLeases: while leases of the parent are lost, and not all of its pods have told of their
// addresses, a group of it takes none. The lease that is made again is the parent's.
func TestGroupOfPoolThatLostItsLeases(t *testing.T) {
	controlplane.TakesLong(t)
	t.Parallel()
	s, _, controller := aloneWith(t)
	parent := s.NewPool("bereft", nil, "10.69.0.20-10.69.0.29")
	for _, pod := range []string{"bereft-a", "bereft-b"} {
		s.BoundPod(pod)
	}
	for pod, addr := range map[string]string{"bereft-a": "10.69.0.21", "bereft-b": "10.69.0.25"} {
		if a := s.Ask(http.MethodPost, pod, addr); a.Code != 0 {
			t.Fatal(a.Message)
		}
	}
	s.WantStatus(parent, 10, 8, 2)
	s.Report("bereft-a", "10.69.0.21")
	if err := controller.Stop(); err != nil {
		t.Fatal(err)
	}
	var all v1.BCSNetIPList
	if err := s.Admin.List(t.Context(), &all, client.MatchingFields{"spec.pool": parent.Name}); err != nil {
		t.Fatal(err)
	}
	for _, ip := range all.Items {
		s.LoseAll(ip.Name)
	}
	group := newGroup(s, "bereft-eng", "bereft", "10.69.0.24-10.69.0.26")
	if err := controller.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.WantCondition(group, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonCarving, "leases of pool bereft were lost",
		"default/bereft-b")
	for range 2 * int(allocator.MaxRequestTime/time.Second) { // longer than a group waits as a rule
		if err := s.Admin.Get(t.Context(), client.ObjectKeyFromObject(group), group); err != nil || len(group.Status.Carved) > 0 {
			t.Fatalf("carved %v of a pool whose leases are lost; %v", group.Status.Carved, err)
		}
		<-time.After(time.Second)
	}
	s.Report("bereft-b", "10.69.0.25")
	s.WantCondition(group, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonCarving,
		"it waits for 1 address of pool bereft in this range: 10.69.0.25")
	for pod, addr := range map[string]string{"bereft-a": "10.69.0.21", "bereft-b": "10.69.0.25"} {
		// The container that asks again has its address as before.
		if a := s.Ask(http.MethodPost, pod, ""); a.Address.IPAddr != addr || a.Address.Pool != parent.Name {
			t.Errorf("pod %s: %+v", pod, a)
		}
	}
	release(s, "bereft-b")
	s.WantReady(group)
	release(s, "bereft-a")
}

// release sends the DELs of pods.
func release(s *site.Site, pods ...string) {
	s.Helper()
	for _, pod := range pods {
		if a := s.Ask(http.MethodDelete, pod, ""); a.Code != 0 {
			s.Errorf("pod %s: %s", pod, a.Message)
		}
	}
}
