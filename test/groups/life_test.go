package groups_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/site"
)

// newGroup makes a pool that is carved from another, for whom that one is.
func newGroup(s *site.Site, name, parent string, addresses ...string) *v1.BCSNetPool {
	s.Helper()
	return s.NewPool(name, func(s *v1.BCSNetPoolSpec) { s.Parent, s.Hosts = parent, nil }, addresses...)
}

// TestGroup: the parent stops at once, the group serves when its range is unheld, and gives it back when it goes.
func TestGroup(t *testing.T) {
	t.Parallel()
	s := at(t)
	parent := s.NewPool("campus", nil, "10.60.0.20-10.60.0.29")
	s.WantStatus(parent, 10, 10, 0)
	for _, pod := range []string{"campus-a", "campus-b"} {
		s.NewPod(pod)
	}
	if a := s.Ask(http.MethodPost, "campus-a", "10.60.0.25"); a.Code != 0 {
		t.Fatal(a.Message)
	}

	began := time.Now()
	group := newGroup(s, "campus-eng", "campus", "10.60.0.24-10.60.0.26")
	s.WantCondition(group, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonCarving,
		"it waits for 1 address of pool campus in this range: 10.60.0.25 (default/campus-a on host "+s.Host+")",
		"bcsnetctl ip release", "bcsnetctl pool remove-ip campus-eng")
	s.WantStatus(parent, 8, 7, 1) // with the lease that stays
	s.WantCondition(parent, v1.ConditionDraining, metav1.ConditionTrue, v1.ReasonAddressesRetire, "1 address ")
	s.WantCondition(parent, v1.ConditionOverlap, metav1.ConditionFalse, v1.ReasonNoOverlap)
	s.WantCondition(group, v1.ConditionOverlap, metav1.ConditionFalse, v1.ReasonNoOverlap)
	s.WantObjects(group.Name, "10.60.0.24", "10.60.0.26")
	s.WantObjects(parent.Name, "10.60.0.20", "10.60.0.21", "10.60.0.22", "10.60.0.23", "10.60.0.25", "10.60.0.27",
		"10.60.0.28", "10.60.0.29")
	if a := s.Ask(http.MethodPost, "campus-b", "10.60.0.24"); a.Reason != "PoolCordoned" {
		t.Errorf("an address of a group that is being carved: %+v", a)
	}

	if a := s.Ask(http.MethodDelete, "campus-a", ""); a.Code != 0 {
		t.Fatal(a.Message)
	}
	s.WantReady(group)
	if took := time.Since(began); took < allocator.MaxRequestTime {
		t.Errorf("the group serves after %s, before a request that began earlier is over", took)
	}
	if want := []string{"10.60.0.24-10.60.0.26"}; !slices.Equal(group.Status.Carved, want) || group.Status.Hosts != 1 {
		t.Errorf("carved %v for %d hosts, want %v for the parent's", group.Status.Carved, group.Status.Hosts, want)
	}
	s.WantObjects(group.Name, "10.60.0.24", "10.60.0.25", "10.60.0.26")
	s.WantStatus(group, 3, 3, 0)
	s.WantStatus(parent, 7, 7, 0)
	s.WantCondition(parent, v1.ConditionDraining, metav1.ConditionFalse, v1.ReasonNothingToDrain)
	if a := s.Ask(http.MethodPost, "campus-b", "10.60.0.24"); a.Code != 0 || a.Address.Pool != group.Name {
		t.Fatalf("of the group: %+v", a)
	}

	// The parent is deleted: it waits for its child, which waits for its lease.
	if err := s.Admin.Delete(t.Context(), parent); err != nil {
		t.Fatal(err)
	}
	s.WantCondition(parent, v1.ConditionDraining, metav1.ConditionTrue, v1.ReasonPoolDeleted,
		"the pool goes when its child is deleted: campus-eng")
	s.WantCondition(group, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonInvalidParent,
		"parent campus is being deleted")
	if err := s.Admin.Delete(t.Context(), group); err != nil {
		t.Fatal(err)
	}
	s.WantCondition(group, v1.ConditionDraining, metav1.ConditionTrue, v1.ReasonPoolDeleted,
		"1 address in use is released")
	if a := s.Ask(http.MethodDelete, "campus-b", ""); a.Code != 0 {
		t.Error(a.Message)
	}
	s.WantGone(group)
	s.WantGone(parent)
	s.WantObjectCount(group.Name, 0)
	s.WantObjectCount(parent.Name, 0)
}

// TestGroupGivesBack: when a group is gone, its parent has its addresses, those that were set aside with it; also
// where it was removed by force while somebody had one.
func TestGroupGivesBack(t *testing.T) {
	t.Parallel()
	s := at(t)
	parent := s.NewPool("lent", nil, "10.61.0.20-10.61.0.23")
	s.WantStatus(parent, 4, 4, 0)
	group := newGroup(s, "lent-eng", "lent", "10.61.0.22-10.61.0.23")
	s.WantReady(group)
	setAside(s, "10.61.0.22")
	s.WantStatus(group, 2, 1, 0)
	if err := s.Admin.Delete(t.Context(), group); err != nil {
		t.Fatal(err)
	}
	s.WantGone(group)
	s.WantObjects(parent.Name, "10.61.0.20", "10.61.0.21", "10.61.0.22", "10.61.0.23")
	s.WantStatus(parent, 4, 3, 0)

	again := newGroup(s, "lent-ops", "lent", "10.61.0.22-10.61.0.23")
	s.WantReady(again)
	s.WantStatus(again, 2, 1, 0) // what is set aside stays so
	s.NewPod("lent-a")
	if a := s.Ask(http.MethodPost, "lent-a", "10.61.0.23"); a.Code != 0 || a.Address.Pool != again.Name {
		t.Fatalf("of the group: %+v", a)
	}
	if err := s.Admin.Delete(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	s.WantCondition(again, v1.ConditionDraining, metav1.ConditionTrue, v1.ReasonPoolDeleted, "1 address in use")
	byForce(s, again)
	s.WantGone(again)
	s.NewPod("lent-b")
	if a := s.Ask(http.MethodPost, "lent-b", "10.61.0.23"); a.Reason != "AddressInUse" {
		t.Errorf("an address that somebody has still: %+v", a)
	}
	if a := s.Ask(http.MethodDelete, "lent-a", ""); a.Code != 0 {
		t.Error(a.Message)
	}
	s.WantObjects(parent.Name, "10.61.0.20", "10.61.0.21", "10.61.0.22", "10.61.0.23")
	if a := s.Ask(http.MethodPost, "lent-b", "10.61.0.23"); a.Code != 0 || a.Address.Pool != parent.Name {
		t.Errorf("of the parent again: %+v", a)
	}
	if a := s.Ask(http.MethodDelete, "lent-b", ""); a.Code != 0 {
		t.Error(a.Message)
	}
}

// TestGroupLeavesWhatCools: an address that rests when its group goes rests on in the parent, and in the next group.
func TestGroupLeavesWhatCools(t *testing.T) {
	controlplane.TakesLong(t)
	t.Parallel()
	s := at(t)
	cools := func(s *v1.BCSNetPoolSpec) { s.Cooldown = &metav1.Duration{Duration: time.Hour} }
	parent := s.NewPool("rests", cools, "10.69.0.20-10.69.0.23")
	group := newGroup(s, "rests-eng", "rests", "10.69.0.22-10.69.0.23")
	s.Edit(group, cools)
	s.WantReady(group)
	s.NewPod("rests-a")
	for _, method := range []string{http.MethodPost, http.MethodDelete} {
		if a := s.Ask(method, "rests-a", "10.69.0.22"); a.Code != 0 {
			t.Fatal(a.Message)
		}
	}
	if err := s.Admin.Delete(t.Context(), group); err != nil {
		t.Fatal(err)
	}
	s.WantGone(group)
	s.WantObjects(parent.Name, "10.69.0.20", "10.69.0.21", "10.69.0.22", "10.69.0.23")
	s.NewPod("rests-b")
	if a := s.Ask(http.MethodPost, "rests-b", "10.69.0.22"); a.Reason != "AddressCooling" {
		t.Errorf("an address that rests: %+v", a)
	}
}

// TestGroupsThatDoNotFit: a group that others have applied says what is wrong, serves nothing and takes nothing from
// its parent; it is mended when that changes.
func TestGroupsThatDoNotFit(t *testing.T) {
	t.Parallel()
	s := at(t)
	orphan := newGroup(s, "fits-orphan", "fits", "10.62.0.20-10.62.0.21")
	s.WantCondition(orphan, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonInvalidParent,
		"parent fits does not exist")
	parent := s.NewPool("fits", nil, "10.62.0.20-10.62.0.29")
	s.WantReady(orphan)
	s.WantStatus(parent, 8, 8, 0)

	for name, tc := range map[string]struct{ addresses, words string }{
		"fits-beyond": {"10.62.0.29-10.62.0.30", "bad ip-pool 10.62.0.29-10.62.0.30, EPG ip-pool must be a subset of network 10.0.0.0/8"},
		"fits-whole":  {"10.62.0.20-10.62.0.29", "bad ip-pool 10.62.0.20-10.62.0.29, EPG ip-pool must be a subset of network 10.0.0.0/8"},
		"fits-twice":  {"10.62.0.21-10.62.0.22", "10.62.0.21 is also in pool fits-orphan, a child of parent fits"},
	} {
		wrong := newGroup(s, name, "fits", tc.addresses)
		s.WantCondition(wrong, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonInvalidParent, tc.words)
		s.WantObjects(name)
	}
	s.Edit(parent, func(s *v1.BCSNetPoolSpec) { s.Network = "fits" })
	lab := s.NewPool("fits-lab", func(s *v1.BCSNetPoolSpec) { s.Parent, s.Hosts, s.Network = "fits", nil, "lab" },
		"10.62.0.22")
	s.WantCondition(lab, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonInvalidParent,
		"its network lab is not fits, the network of parent fits")
	s.Edit(lab, func(s *v1.BCSNetPoolSpec) { s.Network = "" })
	s.WantReady(lab)
	s.WantStatus(parent, 7, 7, 0)
	if err := s.Admin.Delete(t.Context(), lab); err != nil {
		t.Fatal(err)
	}
	s.WantStatus(parent, 8, 8, 0)
	grandchild := newGroup(s, "fits-grandchild", "fits-orphan", "10.62.0.20")
	s.WantCondition(grandchild, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonInvalidParent,
		"parent fits-orphan has a parent itself, fits: a child cannot have children")
	s.WantStatus(parent, 8, 8, 0)

	// The parent shrinks, and grows again; it is cordoned, and its child with it.
	s.Edit(parent, func(s *v1.BCSNetPoolSpec) { s.AvailableIPs = []string{"10.62.0.21-10.62.0.29"} })
	s.WantCondition(orphan, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonInvalidParent,
		"parent fits does not have 10.62.0.20")
	s.Edit(parent, func(s *v1.BCSNetPoolSpec) { s.AvailableIPs = []string{"10.62.0.20-10.62.0.29"} })
	s.WantReady(orphan)
	s.Edit(parent, func(s *v1.BCSNetPoolSpec) { s.Cordoned = true })
	s.WantCondition(orphan, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonCordoned, "its parent fits is cordoned")
	s.Edit(parent, func(s *v1.BCSNetPoolSpec) { s.Cordoned = false })
	s.WantReady(orphan)

	// The parent is removed by force, and made again.
	if err := s.Admin.Delete(t.Context(), parent); err != nil {
		t.Fatal(err)
	}
	byForce(s, parent)
	s.WantCondition(orphan, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonInvalidParent,
		"parent fits does not exist")
	parent = s.NewPool("fits", nil, "10.62.0.20-10.62.0.29")
	s.WantReady(orphan)
	s.WantStatus(parent, 8, 8, 0)
	s.WantStatus(orphan, 2, 2, 0)
}

// TestGroupGrows: what a group grows by is carved anew, and the group serves the rest meanwhile.
func TestGroupGrows(t *testing.T) {
	t.Parallel()
	s := at(t)
	parent := s.NewPool("grows", nil, "10.63.0.20-10.63.0.29")
	group := newGroup(s, "grows-eng", "grows", "10.63.0.20")
	s.WantReady(group)
	for _, pod := range []string{"grows-a", "grows-b"} {
		s.NewPod(pod)
	}
	if a := s.Ask(http.MethodPost, "grows-a", "10.63.0.21"); a.Code != 0 || a.Address.Pool != parent.Name {
		t.Fatalf("of the parent: %+v", a)
	}
	s.Edit(group, func(s *v1.BCSNetPoolSpec) { s.AvailableIPs = []string{"10.63.0.20-10.63.0.22"} })
	s.WantCondition(group, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady,
		"10.63.0.21-10.63.0.22 are still being carved out of pool grows: it waits for 1 address of pool grows")
	if a := s.Ask(http.MethodPost, "grows-b", "10.63.0.22"); a.Reason != "AddressInUse" {
		t.Errorf("an address that is not handed over: %+v", a)
	}
	if a := s.Ask(http.MethodPost, "grows-b", "10.63.0.20"); a.Code != 0 || a.Address.Pool != group.Name {
		t.Errorf("of the group: %+v", a)
	}
	if a := s.Ask(http.MethodDelete, "grows-a", ""); a.Code != 0 {
		t.Fatal(a.Message)
	}
	s.WantStatus(group, 3, 2, 1)
	if a := s.Ask(http.MethodPost, "grows-a", "10.63.0.22"); a.Code != 0 || a.Address.Pool != group.Name {
		t.Errorf("of what it has grown by: %+v", a)
	}
	for _, pod := range []string{"grows-a", "grows-b"} {
		if a := s.Ask(http.MethodDelete, pod, ""); a.Code != 0 {
			t.Error(a.Message)
		}
	}
	// What it gives back and takes again was the parent's in between.
	s.Edit(group, func(s *v1.BCSNetPoolSpec) { s.AvailableIPs = []string{"10.63.0.20"} })
	s.WantStatus(group, 1, 1, 0)
	s.WantStatus(parent, 9, 9, 0)
	if want := []string{"10.63.0.20"}; !slices.Equal(group.Status.Carved, want) {
		t.Errorf("carved %v, want %v", group.Status.Carved, want)
	}
}

// byForce takes the finalizers off a pool.
func byForce(s *site.Site, p *v1.BCSNetPool) {
	s.Helper()
	none := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
	if err := client.IgnoreNotFound(s.Admin.Patch(s.Context(), p, none)); err != nil {
		s.Fatal(err)
	}
}

// setAside reserves an address by hand.
func setAside(s *site.Site, name string) {
	s.Helper()
	controlplane.EventuallyWithin(s.T, site.Patience, func() error {
		ip := &v1.BCSNetIP{}
		if err := s.Admin.Get(s.Context(), client.ObjectKey{Name: name}, ip); err != nil {
			return err
		}
		ip.Status.Status = v1.IPReserved
		ip.Finalizers = append(ip.Finalizers, v1.HeldFinalizer)
		return s.Admin.Update(s.Context(), ip)
	})
	s.Cleanup(func() {
		ip := &v1.BCSNetIP{}
		if err := s.Admin.Get(context.Background(), client.ObjectKey{Name: name}, ip); err != nil {
			return
		}
		ip.Status.Status, ip.Finalizers = v1.IPAvailable, nil
		if err := s.Admin.Update(context.Background(), ip); err != nil {
			s.Error(fmt.Errorf("%s stays set aside: %w", name, err))
		}
	})
}
