package clusterapi_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

var errNobody = errors.New("nobody has the address")

// moved makes the IPAddress of a claim as clusterctl does it on the way to another cluster: after the claim, whose
// status does not come along, with the owner's new UID.
func (s *site) moved(claim *unstructured.Unstructured, address string) *unstructured.Unstructured {
	s.Helper()
	u := s.object("IPAddress", claim.GetName())
	u.Object["spec"] = map[string]any{
		"claimRef": map[string]any{"name": claim.GetName()}, "poolRef": s.poolRef("BCSNetPool", s.pool),
		"address": address, "prefix": int64(24), "gateway": s.prefix + "254",
	}
	u.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: claim.GetAPIVersion(), Kind: claim.GetKind(), Name: claim.GetName(), UID: claim.GetUID(),
		Controller: new(true), BlockOwnerDeletion: new(true),
	}})
	s.create(u)
	return u
}

// clusterctl move: on the way in, an IPAddress that exists is adopted with its address, or refused, and never replaced.
// On the way out, what the finalizers were taken from keeps its address: the machine goes on with it elsewhere.
func TestMove(t *testing.T) {
	install(t, "v1beta2")
	start(t, nil)
	s := newSite(t)
	s.cluster("green", true)
	claim := s.claim("m-0", inCluster("green"))
	address := s.moved(claim, s.prefix+"3")
	s.claim("taken") // belongs to no Cluster
	if got := s.answered("taken"); got != s.prefix+"1" {
		t.Errorf("the claim beside has %s", got)
	}
	late := s.claim("m-1", inCluster("green"))
	s.moved(late, s.prefix+"1")
	elsewhere := s.claim("m-2", inCluster("green"))
	s.moved(elsewhere, "10.250.0.1")
	s.pause("green", false)

	if got := s.answered("m-0"); got != s.prefix+"3" {
		t.Errorf("it has %s", got)
	}
	if now := s.get("IPAddress", "m-0"); now.GetUID() != address.GetUID() {
		t.Error("the IPAddress was replaced")
	}
	s.wantAddress(claim, s.pool, map[string]any{
		"address": s.prefix + "3", "prefix": int64(24), "gateway": s.prefix + "254",
	})
	if _, owner := s.lease(s.prefix + "3"); owner != "capi/"+s.namespace+"/m-0" {
		t.Errorf("the lease is of %s", owner)
	}
	s.refused("m-1", "AllocationFailed", s.prefix+"1")
	s.refused("m-2", "AllocationFailed", "10.250.0.1")
	s.remove(s.object("IPAddressClaim", "taken"))
	if got := s.answered("m-1"); got != s.prefix+"1" { // it is free now
		t.Errorf("it has %s", got)
	}

	s.pause("green", true)
	s.settled()
	s.moveAway("m-0")
	s.remove(s.object("Cluster", "green"))
	s.settled()
	if state, owner := s.lease(s.prefix + "3"); state != "Active" {
		t.Errorf("the address of a machine that moved away is %s (%s)", state, owner)
	}
}

// moveAway deletes a claim and its IPAddress as clusterctl does when it has moved them: what is owned first, and each
// whatever finalizers it has.
func (s *site) moveAway(claim string) {
	s.Helper()
	for _, kind := range []string{"IPAddress", "IPAddressClaim"} {
		s.patch(s.object(kind, claim), `{"metadata":{"annotations":{"clusterctl.cluster.x-k8s.io/delete-for-move":""}}}`)
		s.remove(s.object(kind, claim))
		if s.get(kind, claim) != nil {
			s.patch(s.object(kind, claim), `{"metadata":{"finalizers":[]}}`)
		}
		s.gone(kind, claim)
	}
}

// An IPAddress that is there before its claim stays, and becomes the claim's: what it lacks is added, and what it has
// of others is left.
func TestIPAddressBeforeClaim(t *testing.T) {
	install(t, "v1beta2")
	start(t, nil)
	s := newSite(t)
	early := s.object("IPAddress", "m-0")
	early.Object["spec"] = map[string]any{
		"claimRef": map[string]any{"name": "m-0"}, "poolRef": s.poolRef("BCSNetPool", s.pool),
		"address": s.prefix + "2", "prefix": int64(24), "gateway": s.prefix + "254",
	}
	other := metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Thing", Name: "thing", UID: "abc"}
	early.SetOwnerReferences([]metav1.OwnerReference{other})
	s.create(early)
	s.settled()
	claim := s.claim("m-0")
	if got := s.answered("m-0"); got != s.prefix+"2" {
		t.Errorf("it has %s", got)
	}
	s.wantAddress(claim, s.pool, map[string]any{
		"address": s.prefix + "2", "prefix": int64(24), "gateway": s.prefix + "254",
	}, other)
	if now := s.get("IPAddress", "m-0"); now.GetUID() != early.GetUID() {
		t.Error("the IPAddress was replaced")
	}
	s.remove(claim)
	s.becomes(s.prefix+"2", "Available")
	s.gone("IPAddress", "m-0")
}

// An address that an operator takes from a claim is taken again, because its IPAddress names it. If somebody else was
// faster, the claim says so, and nobody has it twice.
func TestLeaseTakenAway(t *testing.T) {
	install(t, "v1beta2")
	c := start(t, nil)
	s := newSite(t)
	s.claim("m-0")
	has, owner := s.answered("m-0"), "capi/"+s.namespace+"/m-0"
	take := func() {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodDelete,
			c.URL+"/netservicecontroller/v1/allocator/ip/"+has, strings.NewReader(`{"owner":"`+owner+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("releasing %s: %s", has, resp.Status)
		}
	}
	take()
	s.becomes(has, "Active")
	if _, now := s.lease(has); now != owner {
		t.Errorf("address %s is of %s", has, now)
	}

	s.pauseClaim("m-0", true)
	s.settled()
	take()
	s.becomes(has, "Available")
	other := s.claim("m-1", func(u *unstructured.Unstructured) {
		u.SetAnnotations(map[string]string{"cluster.x-k8s.io/paused": ""})
	})
	s.moved(other, has)
	s.pauseClaim("m-1", false)
	s.answered("m-1")
	s.pauseClaim("m-0", false)
	s.refused("m-0", "AllocationFailed", has)
	s.remove(other)
	if got := s.answered("m-0"); got != has {
		t.Errorf("it has %s", got)
	}
}

// pauseClaim sets or removes the annotation that stops the reconciliation of a claim.
func (s *site) pauseClaim(name string, paused bool) {
	s.Helper()
	value := `null`
	if paused {
		value = `""`
	}
	s.patch(s.object("IPAddressClaim", name), `{"metadata":{"annotations":{"cluster.x-k8s.io/paused":`+value+`}}}`)
}

// What somebody took off an IPAddress comes back. One that somebody deletes stays until its claim goes.
func TestIPAddressStays(t *testing.T) {
	install(t, "v1beta2")
	start(t, nil)
	s := newSite(t)
	claim := s.claim("m-0")
	has := s.answered("m-0")
	s.patch(s.object("IPAddress", "m-0"), `{"metadata":{"finalizers":[],"ownerReferences":[]}}`)
	controlplane.Eventually(t, func() error {
		if u := s.get("IPAddress", "m-0"); len(u.GetFinalizers()) != 1 || len(u.GetOwnerReferences()) != 2 {
			return fmt.Errorf("it has finalizers %v and owners %v", u.GetFinalizers(), u.GetOwnerReferences())
		}
		return nil
	})
	s.remove(s.object("IPAddress", "m-0"))
	s.settled()
	if u := s.get("IPAddress", "m-0"); u == nil || u.GetDeletionTimestamp() == nil {
		t.Fatalf("it is gone: %v", u)
	}
	if state, _ := s.lease(has); state != "Active" {
		t.Errorf("address %s is %s", has, state)
	}
	s.remove(claim)
	s.gone("IPAddress", "m-0")
	s.becomes(has, "Available")

	// A claim of the same name gets an IPAddress of its own, also where the earlier one's is still on its way out.
	first := s.claim("m-1")
	old := s.answered("m-1")
	s.patch(s.object("IPAddress", "m-1"), `{"metadata":{"finalizers":["ipam.cluster.x-k8s.io/protect-address","example.com/keep"]}}`)
	s.remove(first)
	s.becomes(old, "Available")
	second := s.claim("m-1")
	s.patch(s.object("IPAddress", "m-1"), `{"metadata":{"finalizers":[]}}`)
	s.answered("m-1")
	if u := s.get("IPAddress", "m-1"); u.GetOwnerReferences()[0].UID != second.GetUID() {
		t.Error("the IPAddress is that of the earlier claim")
	}
	// One that is taken away by force is made again, with the address of the lease.
	u := s.get("IPAddress", "m-1")
	s.patch(s.object("IPAddress", "m-1"), `{"metadata":{"finalizers":[]}}`)
	s.remove(s.object("IPAddress", "m-1"))
	controlplane.Eventually(t, func() error {
		now := s.get("IPAddress", "m-1")
		if now == nil || now.GetUID() == u.GetUID() && now.GetDeletionTimestamp() == nil {
			return errors.New("it was not deleted and made again")
		}
		if now.GetDeletionTimestamp() == nil {
			return nil
		}
		s.patch(s.object("IPAddress", "m-1"), `{"metadata":{"finalizers":[]}}`) // the controller was faster
		return errors.New("it is being deleted")
	})
	was, _, _ := unstructured.NestedString(u.Object, "spec", "address")
	if got := s.answered("m-1"); got != was {
		t.Errorf("it has %s, not %s", got, was)
	}
}
