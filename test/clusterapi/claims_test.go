package clusterapi_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/intercept"
)

// A claim gets the lowest address of its pool, in the whole form of the contract, in each version of it. That takes one
// write of ours, and two of theirs: the IPAddress, and the claim's status. It goes back with the claim.
func TestAnswered(t *testing.T) {
	for _, version := range []string{"v1beta1", "v1beta2"} {
		t.Run(version, func(t *testing.T) {
			install(t, version)
			tap := &intercept.Tap{}
			start(t, tap)
			s := newSite(t)
			s.newPool(s.pool+"-v6", func(p *v1.BCSNetPool) {
				p.Spec = v1.BCSNetPoolSpec{Net: "2001:db8::", Mask: 64, AvailableIPs: []string{"2001:db8::5"}}
			})
			s.cluster("blue", false)
			s.settled()
			tap.Forget()
			claim := s.claim("m-0", inCluster("blue"))
			if got, want := s.answered("m-0"), s.prefix+"1"; got != want {
				t.Errorf("it has %s, want %s", got, want)
			}
			s.settled()
			writes := func(matches ...intercept.Match) int {
				return tap.Count(intercept.All(append(matches, intercept.Writes)...))
			}
			here := func(r *http.Request) bool { return strings.Contains(r.URL.Path, "/"+s.namespace+"/") }
			got := []int{
				writes(intercept.Of("bcsnetips"), intercept.Named(s.prefix+"1")), writes(intercept.Of("ipaddresses"), here),
				writes(intercept.Of("ipaddressclaims"), here),
			}
			if diff := cmp.Diff([]int{1, 1, 1}, got); diff != "" {
				t.Errorf("writes of lease, IPAddress and claim (-want +got): %s", diff)
			}
			s.wantAddress(claim, s.pool, map[string]any{
				"address": s.prefix + "1", "prefix": int64(24), "gateway": s.prefix + "254",
			})
			if state, owner := s.lease(s.prefix + "1"); state != "Active" || owner != "capi/"+s.namespace+"/m-0" {
				t.Errorf("the lease is %s of %s", state, owner)
			}

			// A pool without a gateway has none to say.
			six := s.claim("m-6", ofPool(s.pool+"-v6"))
			s.answered("m-6")
			s.wantAddress(six, s.pool+"-v6", map[string]any{"address": "2001:db8::5", "prefix": int64(64)})

			s.remove(claim)
			s.remove(six)
			s.gone("IPAddress", "m-0")
			s.gone("IPAddress", "m-6")
			s.becomes(s.prefix+"1", "Available")
			s.becomes("2001:db8::5", "Available")
			s.remove(&v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: s.pool + "-v6"}})
		})
	}
}

// wantAddress compares the IPAddress of a claim with what the contract says. before are owners that it had already.
func (s *site) wantAddress(
	claim *unstructured.Unstructured, pool string, spec map[string]any, before ...metav1.OwnerReference,
) {
	s.Helper()
	var p v1.BCSNetPool
	if err := admin.Get(s.Context(), client.ObjectKey{Name: pool}, &p); err != nil {
		s.Fatal(err)
	}
	u := s.get("IPAddress", claim.GetName())
	spec["claimRef"] = map[string]any{"name": claim.GetName()}
	spec["poolRef"] = s.poolRef("BCSNetPool", pool)
	if diff := cmp.Diff(spec, u.Object["spec"]); diff != "" {
		s.Errorf("spec (-want +got): %s", diff)
	}
	if diff := cmp.Diff([]string{"ipam.cluster.x-k8s.io/protect-address"}, u.GetFinalizers()); diff != "" {
		s.Errorf("finalizers (-want +got): %s", diff)
	}
	owners := slices.Concat(before, []metav1.OwnerReference{
		{
			APIVersion: "ipam.cluster.x-k8s.io/" + served, Kind: "IPAddressClaim", Name: claim.GetName(), UID: claim.GetUID(),
			Controller: new(true), BlockOwnerDeletion: new(true),
		},
		{
			APIVersion: v1.GroupVersion.String(), Kind: "BCSNetPool", Name: pool, UID: p.UID,
			Controller: new(false), BlockOwnerDeletion: new(true),
		},
	})
	if diff := cmp.Diff(owners, u.GetOwnerReferences()); diff != "" {
		s.Errorf("owners (-want +got): %s", diff)
	}
	name, _, _ := unstructured.NestedString(claim.Object, "spec", "clusterName")
	if got := u.GetLabels()["cluster.x-k8s.io/cluster-name"]; got != name {
		s.Errorf("it is of the cluster %q, want %q", got, name)
	}
}

// A claim of another provider's pool is none of ours, whatever the pool is called.
func TestOthersClaim(t *testing.T) {
	install(t, "v1beta2")
	start(t, nil)
	s := newSite(t)
	s.claim("other", func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedMap(u.Object, map[string]any{
			"apiGroup": "ipam.cluster.x-k8s.io", "kind": "InClusterIPPool", "name": s.pool,
		}, "spec", "poolRef")
	})
	s.settled()
	if got := s.condition("other"); got != "" || s.get("IPAddress", "other") != nil {
		t.Errorf("it is %s", got)
	}
}

// What belongs to a paused Cluster, or to one that does not exist, stays as it is, and so does a paused claim. A claim
// under deletion does not wait for a Cluster that is gone.
func TestPausedClusters(t *testing.T) {
	install(t, "v1beta2")
	start(t, nil)
	s := newSite(t)
	s.claim("a", inCluster("red"))
	s.claim("b", func(u *unstructured.Unstructured) {
		u.SetLabels(map[string]string{"cluster.x-k8s.io/cluster-name": "red"})
	})
	s.claim("c", func(u *unstructured.Unstructured) {
		u.SetAnnotations(map[string]string{"cluster.x-k8s.io/paused": ""})
	})
	waits := func(names ...string) {
		t.Helper()
		s.settled()
		for _, name := range names {
			if got := s.condition(name); got != "" || s.get("IPAddress", name) != nil {
				t.Errorf("claim %s is %s", name, got)
			}
		}
	}
	waits("a", "b", "c") // there is no Cluster
	s.cluster("red", true)
	waits("a", "b", "c") // it is paused
	s.pause("red", false)
	a, b := s.answered("a"), s.answered("b")
	s.patch(s.object("Cluster", "red"), `{"metadata":{"annotations":{"cluster.x-k8s.io/paused":""}}}`)
	s.settled()
	s.remove(s.object("IPAddressClaim", "a"))
	s.settled()
	if state, _ := s.lease(a); state != "Active" || s.get("IPAddress", "a") == nil {
		t.Errorf("address %s went back although its Cluster is paused", a)
	}
	s.patch(s.object("Cluster", "red"), `{"metadata":{"annotations":{"cluster.x-k8s.io/paused":null}}}`)
	s.becomes(a, "Available")
	s.gone("IPAddress", "a")

	// A finalizer of somebody else keeps the claim after its Cluster is gone.
	s.patch(s.object("IPAddressClaim", "b"), `{"metadata":{"finalizers":["example.com/keep"]}}`)
	s.remove(s.object("Cluster", "red"))
	s.gone("Cluster", "red")
	s.remove(s.object("IPAddressClaim", "b"))
	s.becomes(b, "Available")
	s.gone("IPAddress", "b")
	s.patch(s.object("IPAddressClaim", "b"), `{"metadata":{"finalizers":[]}}`)

	s.patch(s.object("IPAddressClaim", "c"), `{"metadata":{"annotations":{"cluster.x-k8s.io/paused":null}}}`)
	s.answered("c")

	pool := &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: s.pool}}
	s.patch(pool, `{"metadata":{"annotations":{"cluster.x-k8s.io/paused":""}}}`)
	s.settled()
	s.claim("d")
	waits("d")
	has, _, _ := unstructured.NestedString(s.get("IPAddress", "c").Object, "spec", "address")
	s.remove(s.object("IPAddressClaim", "c"))
	s.settled()
	if state, _ := s.lease(has); state != "Active" || s.get("IPAddress", "c") == nil {
		t.Errorf("address %s went back although its pool is paused", has)
	}
	s.patch(pool, `{"metadata":{"annotations":{"cluster.x-k8s.io/paused":null}}}`)
	s.answered("d")
	s.gone("IPAddress", "c")
}

// A claim says in the contract's words why it has no address, and gets one when that has changed.
func TestRefused(t *testing.T) {
	install(t, "v1beta2")
	start(t, nil)
	s := newSite(t, func(p *v1.BCSNetPool) { p.Spec.AvailableIPs = p.Spec.AvailableIPs[:0] })
	s.patch(&v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: s.pool}},
		`{"spec":{"availableIPs":["`+s.prefix+`1"]}}`)
	s.claim("first")
	s.answered("first")
	s.claim("second")
	s.refused("second", "PoolExhausted", s.pool)
	s.remove(s.object("IPAddressClaim", "first"))
	if got := s.answered("second"); got != s.prefix+"1" {
		t.Errorf("it has %s", got)
	}
	s.claim("third")
	s.refused("third", "PoolExhausted")
	s.patch(&v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: s.pool}}, `{"spec":{"availableIPs":["`+s.prefix+`1","`+s.prefix+`2"]}}`)
	s.answered("third")

	s.claim("early", ofPool(s.pool+"-later"))
	s.refused("early", "PoolNotReady", s.pool+"-later")
	s.newPool(s.pool+"-later", func(p *v1.BCSNetPool) {
		p.Spec.AvailableIPs, p.Spec.Cordoned = []string{s.prefix + "7"}, true
	})
	s.claim("cordoned", ofPool(s.pool+"-later"))
	s.refused("cordoned", "PoolNotReady", "cordoned")
	s.patch(&v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: s.pool + "-later"}}, `{"spec":{"cordoned":false}}`)
	controlplane.Eventually(t, func() error {
		if s.condition("early") == "True/Ready" || s.condition("cordoned") == "True/Ready" {
			return nil
		}
		return errNobody
	})
}

// The namespaces, blocks and quotas of a pool hold for the namespace of a claim, and its hosts do not.
func TestNamespacesBlocksAndQuotas(t *testing.T) {
	install(t, "v1beta2")
	start(t, nil)
	s := newSite(t, func(p *v1.BCSNetPool) {
		p.Spec.Hosts, p.Spec.Namespaces, p.Spec.MaxPerNamespace = []string{"10.9.0.1"}, []string{"elsewhere"}, 2
	})
	s.claim("foreign")
	s.refused("foreign", "AllocationFailed", s.namespace)
	s.patch(&v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: s.pool}}, `{"spec":{"namespaces":["`+s.namespace+`"]}}`)
	s.answered("foreign")
	s.claim("second")
	s.answered("second")
	s.claim("third")
	s.refused("third", "AllocationFailed", "2")
	s.remove(s.object("IPAddressClaim", "second"))
	s.answered("third")

	blocks := newSite(t, func(p *v1.BCSNetPool) {
		p.Spec.AvailableIPs = []string{p.Spec.Net + "/26"}
		p.Spec.BlockSize, p.Spec.AutoAssign = 28, true
	})
	blocks.claim("a")
	blocks.answered("a")
	var pools v1.BCSNetPoolList
	if err := admin.List(t.Context(), &pools); err != nil {
		t.Fatal(err)
	}
	found := false
	for _, p := range pools.Items {
		found = found || p.Spec.Parent == blocks.pool && slices.Equal(p.Spec.Namespaces, []string{blocks.namespace})
	}
	if !found {
		t.Error("the namespace has no block of the pool")
	}
	other := &site{T: t, namespace: blocks.namespace + "-b", pool: blocks.pool, prefix: blocks.prefix}
	other.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: other.namespace}})
	other.claim("a")
	if a, b := blocks.answered("a"), other.answered("a"); a == b {
		t.Errorf("both have %s", a)
	}
}
