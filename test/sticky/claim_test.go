package sticky_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// ownAddresses: a Deployment that names its addresses has those and no others, also while it is updated and after it
// was deleted.
func (f *fixture) ownAddresses(t *testing.T) {
	t.Helper()
	s := f.newSite(t, "own", 8*replicas, sharedNodes)
	named := map[string]string{s.address(7): "named", s.address(9): "named"}
	a := s.newApp(deployment, terms{never, map[string]string{
		"networkextension.bkbcs.tencent.com/ip": s.address(7) + "," + s.address(9), ownPolicy: never,
	}}, 2)
	a.onObject = true
	a.apply(t)
	now := a.expect(t, "the app to have its addresses", want{pods: 2, same: named})
	for _, op := range []operation{podDelete, rollInPlace, foreground} {
		now = a.do(t, op, now)
	}
	a.expect(t, "no others", want{pods: 2, same: named})
}

// namedClaim: pods of a claim that somebody made have as many addresses as that says. It grows at once and shrinks as
// pods go, and when it is deleted it stays until the last has gone.
func (f *fixture) namedClaim(t *testing.T) {
	t.Helper()
	s := f.newSite(t, "claim", 8*replicas, sharedNodes)
	c := &v1.BCSNetIPClaim{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "partners"}}
	c.Spec.Replicas, c.Spec.Pool, c.Spec.ReleasePolicy = new(int32(replicas)), s.pool, v1.ReleaseNever
	f.create(t, c)
	a := s.newApp(deployment, terms{never, map[string]string{"networkextension.bkbcs.tencent.com/claim": c.Name}},
		replicas)
	a.claim = c.Name
	a.start(t)
	a.replicas++
	a.apply(t)
	eventually(t, "the pod too many to be refused", func() error { return a.someRefused(t, ipam.ReasonClaimFull) })
	f.resize(t, c, replicas+1)
	had := a.expect(t, "all to run", want{pods: replicas + 1})
	a.replicas = 2
	a.apply(t)
	a.expect(t, "all to be kept", want{pods: 2, same: had.held})
	f.resize(t, c, 2)
	a.expect(t, "the claim to shrink", want{pods: 2})
	if err := f.admin.Delete(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	a.replicas = 1
	a.apply(t)
	a.expect(t, "nothing more to be kept", want{pods: 1})
	a.delete(t, metav1.DeletePropagationBackground)
	a.expect(t, "all to be given back", want{})
	f.goes(t, c)
}

// goes waits until a claim is no more.
func (f *fixture) goes(t *testing.T, c *v1.BCSNetIPClaim) {
	t.Helper()
	eventually(t, "the claim to go", func() error {
		if err := f.admin.Get(t.Context(), client.ObjectKeyFromObject(c), c); !apierrors.IsNotFound(err) {
			return errors.Join(errors.New("it is there"), err)
		}
		return nil
	})
}

// ownersClaim: the pods of a Deployment for which somebody made a claim have the addresses of that and no others,
// without an annotation. Of two claims for it none is taken.
func (f *fixture) ownersClaim(t *testing.T) {
	t.Helper()
	s := f.newSite(t, "owner", 8*replicas, sharedNodes)
	made := func(name string, addresses ...string) *v1.BCSNetIPClaim {
		c := &v1.BCSNetIPClaim{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
		c.Spec.Owner = &v1.ClaimOwner{APIVersion: "apps/v1", Kind: "Deployment", Name: "app"}
		c.Spec.Addresses, c.Spec.Preallocate, c.Spec.ReleasePolicy = addresses, true, v1.ReleaseNever
		f.create(t, c)
		return c
	}
	c := made("prepared", s.address(7), s.address(9))
	eventually(t, "the claim to take its addresses", func() error {
		err := f.admin.Get(t.Context(), client.ObjectKeyFromObject(c), c)
		if err == nil && c.Status.Held != 2 {
			err = fmt.Errorf("it has %d", c.Status.Held)
		}
		return err
	})
	named := map[string]string{s.address(7): "prepared", s.address(9): "prepared"}
	a := s.newApp(deployment, terms{never, nil}, 2)
	a.claim = c.Name
	a.apply(t)
	now := a.expect(t, "the app to have the claim's addresses", want{pods: 2, same: named})
	for _, op := range []operation{podDelete, rollInPlace, foreground} {
		now = a.do(t, op, now)
	}
	a.expect(t, "no others", want{pods: 2, same: named})
	another := made("another", s.address(11))
	a.replicas = 3
	a.apply(t)
	eventually(t, "the next pod to be refused", func() error { return a.someRefused(t, ipam.ReasonClaimConflict) })
	if err := f.admin.Delete(t.Context(), another); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the claim to be too small again", func() error { return a.someRefused(t, ipam.ReasonPoolExhausted) })
	a.replicas = 2
	a.apply(t)
	a.expect(t, "the app to have its own", want{pods: 2, same: named})
}

// lateClaim: a claim that is made for a Deployment that runs takes over what it may have of what the pods have, and no
// more: the rest would count as its own. While it is being deleted it has what its pods have.
func (f *fixture) lateClaim(t *testing.T) {
	t.Helper()
	s := f.newSite(t, "late", 8*replicas, sharedNodes)
	a := s.newApp(deployment, terms{plain, nil}, 2)
	before := a.start(t)
	theirs := slices.Sorted(maps.Values(before.pods))
	n := 1
	for slices.Contains(theirs, s.address(n)) {
		n++
	}
	mine := s.address(n)
	c := &v1.BCSNetIPClaim{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "late"}}
	c.Spec.Owner = &v1.ClaimOwner{APIVersion: "apps/v1", Kind: "Deployment", Name: "app"}
	c.Spec.Addresses, c.Spec.Replicas, c.Spec.Preallocate, c.Spec.ReleasePolicy = []string{theirs[1], mine},
		new(int32(2)), true, v1.ReleaseNever
	f.create(t, c)
	holds := func(addresses ...string) func() error {
		slices.Sort(addresses)
		return func() error {
			err := f.admin.Get(t.Context(), client.ObjectKeyFromObject(c), c)
			if has := slices.Sorted(slices.Values(c.Status.Addresses)); err == nil && !slices.Equal(has, addresses) {
				err = fmt.Errorf("it has %v, and should have %v", has, addresses)
			}
			return err
		}
	}
	eventually(t, "the claim to take over what it may have", holds(theirs[1], mine))
	a.expect(t, "the pods to keep what they have",
		want{pods: 2, same: map[string]string{theirs[0]: "a pod", theirs[1]: "a pod", mine: "the claim"}})
	a.policy, a.claim = never, c.Name
	a.rev, a.surge = a.rev+1, intstr.FromInt32(0)
	a.apply(t)
	a.expect(t, "the next pods to have the claim's",
		want{pods: 2, same: map[string]string{theirs[1]: "late", mine: "late"}})
	if err := f.admin.Delete(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	a.replicas = 1
	a.apply(t)
	eventually(t, "the claim to have what its last pod has", func() error {
		err := f.admin.Get(t.Context(), client.ObjectKeyFromObject(c), c)
		if err == nil && (len(c.Status.Addresses) != 1 || c.Status.Used != 1) {
			err = fmt.Errorf("it has %v, %d used", c.Status.Addresses, c.Status.Used)
		}
		return err
	})
	a.delete(t, metav1.DeletePropagationBackground)
	f.goes(t, c)
}

// claimDeleted: a claim that annotations made is made again when somebody deletes it while pods have its addresses, and
// they are kept as before.
func (f *fixture) claimDeleted(t *testing.T) {
	t.Helper()
	s := f.newSite(t, "claimdeleted", 8*replicas, sharedNodes)
	a := s.newApp(deployment, asks(never, deployment, s.namespace), replicas)
	had := a.start(t)
	key := client.ObjectKey{Namespace: s.namespace, Name: "deploy-app"}
	for range 2 {
		var old v1.BCSNetIPClaim
		eventually(t, "the claim to be made", func() error { return f.admin.Get(t.Context(), key, &old) })
		if err := f.admin.Delete(t.Context(), &old); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the claim to be made again", func() error {
			var made v1.BCSNetIPClaim
			err := f.admin.Get(t.Context(), key, &made)
			if err == nil && (made.UID == old.UID || made.Status.Held != replicas) {
				err = fmt.Errorf("it is the old one: %v, or holds %d", made.UID == old.UID, made.Status.Held)
			}
			return err
		})
		// what an ADD before the DEL of the pod before left over has gone with the old claim
		used := map[string]string{}
		for name, address := range had.pods {
			used[address] = name
		}
		had = a.do(t, podDelete, a.expect(t, "its pods to have what they had", want{pods: replicas, same: used}))
	}
	a.replicas = 0
	a.apply(t)
	a.expect(t, "its addresses to be kept", want{same: had.held})
}

// namespaceDeleted: nothing stays kept for an app whose namespace is gone, also where its claim goes before the
// addresses of pods that were on a node which is lost.
func (f *fixture) namespaceDeleted(t *testing.T) {
	t.Helper()
	for what, lost := range map[string]bool{"namespace": false, "namespace-lost": true} {
		s := f.newSite(t, what, 8*replicas, what)
		f.kubelet.addNodes(t, s.nodes, 1)
		a := s.newApp(deployment, asks(never, deployment, s.namespace), replicas)
		had := a.start(t)
		key := client.ObjectKey{Namespace: s.namespace, Name: "deploy-app"}
		eventually(t, "the claim to be made", func() error {
			return f.admin.Get(t.Context(), key,
				&v1.BCSNetIPClaim{})
		})
		var pods []corev1.Pod
		for name := range had.pods {
			pods = append(pods, *a.pod(t, name))
		}
		if lost {
			f.kubelet.lose(t, pods[0].Spec.NodeName)
		}
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
		if err := f.admin.Delete(t.Context(), ns); err != nil {
			t.Fatal(err)
		}
		for i := range pods {
			if !lost {
				break
			}
			if err := f.admin.Delete(t.Context(), &pods[i],
				client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
		}
		eventually(t, "the namespace to go", func() error {
			if err := f.admin.Get(t.Context(), client.ObjectKeyFromObject(ns), ns); !apierrors.IsNotFound(err) {
				return errors.Join(fmt.Errorf("it is there: %+v", ns.Status.Conditions), err)
			}
			return nil
		})
		a.expect(t, "all to be given back", want{})
	}
}

// claimLost: pods of a claim that is gone, past the guard of its finalizer, keep their addresses while they run, and no
// longer: nothing stays kept for a claim that nobody has.
func (f *fixture) claimLost(t *testing.T) {
	t.Helper()
	s := f.newSite(t, "lost", 8*replicas, sharedNodes)
	c := &v1.BCSNetIPClaim{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "lost"}}
	c.Spec.Pool, c.Spec.ReleasePolicy = s.pool, v1.ReleaseNever
	f.create(t, c)
	a := s.newApp(deployment, terms{never, map[string]string{"networkextension.bkbcs.tencent.com/claim": c.Name}}, 1)
	a.claim = c.Name
	had := a.start(t)
	is := func(state v1.IPPhase, claim string) func() error {
		return func() error {
			for address := range had.held {
				var ip v1.BCSNetIP
				if err := f.admin.Get(t.Context(), client.ObjectKey{Name: address}, &ip); err != nil {
					return err
				}
				if ip.Status.Status != state || ip.Status.Claim != claim {
					return fmt.Errorf("%s is %s of claim %q", address, ip.Status.Status, ip.Status.Claim)
				}
			}
			return nil
		}
	}
	eventually(t, "the claim to have its address", is(v1.IPActive, s.namespace+"/lost"))
	unguarded := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	if err := errors.Join(f.admin.Delete(t.Context(), c), f.admin.Patch(t.Context(), c, unguarded)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the address to be the pod's alone", is(v1.IPActive, ""))
	a.delete(t, metav1.DeletePropagationBackground)
	eventually(t, "the address to be free", is(v1.IPAvailable, ""))
}

// claimAhead: a claim takes its addresses before any pod is there; what is missing comes when it can be had, and what
// is too many goes back.
func (f *fixture) claimAhead(t *testing.T) {
	t.Helper()
	s := f.newSite(t, "ahead", replicas+1, sharedNodes)
	c := &v1.BCSNetIPClaim{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "ahead"}}
	c.Spec.Replicas, c.Spec.Pool, c.Spec.ReleasePolicy, c.Spec.Preallocate = new(int32(replicas)), s.pool,
		v1.ReleaseNever, true
	f.create(t, c)
	first := f.claimHas(t, c, replicas, metav1.ConditionTrue, v1.ReasonComplete)
	twice := f.takenTwice(t)
	a := s.newApp(deployment, terms{never, map[string]string{"networkextension.bkbcs.tencent.com/claim": c.Name}},
		replicas)
	a.claim = c.Name
	same := map[string]string{}
	for _, address := range first {
		same[address] = "taken ahead"
	}
	a.apply(t)
	a.expect(t, "the pods to have what was taken before", want{pods: replicas, same: same})
	f.resize(t, c, replicas+2)
	f.claimHas(t, c, replicas+1, metav1.ConditionFalse, string(ipam.ReasonPoolExhausted))
	grown := fmt.Appendf(nil, `{"spec":{"availableIPs":["%s-%s"]}}`, s.address(1), s.address(2*replicas))
	if err := f.admin.Patch(t.Context(), &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: s.pool}},
		client.RawPatch(types.MergePatchType, grown)); err != nil {
		t.Fatal(err)
	}
	f.claimHas(t, c, replicas+2, metav1.ConditionTrue, v1.ReasonComplete)
	f.resize(t, c, replicas)
	f.claimHas(t, c, replicas, metav1.ConditionTrue, v1.ReasonComplete)
	if err := f.admin.Delete(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	a.delete(t, metav1.DeletePropagationBackground)
	a.expect(t, "all to be given back", want{})
	twice()
}

// takenTwice makes a shared pool that takes its addresses, and has writes of a leader that was killed arrive when it
// has them. What it returns waits until these have gone back, and nothing else.
func (f *fixture) takenTwice(t *testing.T) (givenBack func()) {
	t.Helper()
	s := f.newSite(t, "twice", 2*replicas, sharedNodes)
	c := &v1.BCSNetIPClaim{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "twice"}}
	c.Spec.SharedName, c.Spec.Replicas, c.Spec.Pool, c.Spec.ReleasePolicy, c.Spec.Preallocate = s.namespace,
		new(int32(2)), s.pool, v1.ReleaseNever, true
	f.create(t, c)
	had := f.claimHas(t, c, 2, metav1.ConditionTrue, v1.ReasonComplete)
	cfg, err := cluster.ControllerConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	leases, err := store.New(cfg, nil, store.NewClock(nil))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pool to have its objects", func() error {
		n := 0
		err := leases.Each(t.Context(), "spec.pool="+s.pool, func(lease.Lease) error { n++; return nil })
		if err == nil && n < 2*replicas {
			err = fmt.Errorf("%d of %d", n, 2*replicas)
		}
		return err
	})
	late := 0
	err = leases.Each(t.Context(), "spec.pool="+s.pool, func(l lease.Lease) error {
		change := lease.Change{
			Verb: lease.VerbReserve, By: "claim " + s.namespace + "/" + c.Name, Reason: "preallocated for a size of 2",
		}
		// long enough to be seen
		next, free := lease.ReserveFor(l, l.Params, lease.Retention{Claim: s.namespace + "/" + c.Name, Fixed: true},
			leases.Now().Add(20*time.Second), change)
		if !free || late == 2 {
			return nil
		}
		late++
		_, err := leases.Write(t.Context(), next)
		return err
	})
	if err != nil || late == 0 {
		t.Fatalf("%d more were taken: %v", late, err)
	}
	f.claimHas(t, c, 2+late, metav1.ConditionTrue, v1.ReasonComplete)
	return func() {
		t.Helper()
		if got := f.claimHas(t, c, 2, metav1.ConditionTrue, v1.ReasonComplete); !slices.Equal(got, had) {
			t.Errorf("the claim has %v, and had %v", got, had)
		}
	}
}

// claimConflict: claims whose addresses somebody else names, or no pool has, whose owner another claim is for, or which
// belongs to another workload, say so and whom they mean, until that has ended.
func (f *fixture) claimConflict(t *testing.T) {
	t.Helper()
	s := f.newSite(t, "conflict", 8, sharedNodes)
	claim := func(name string, addresses ...string) *v1.BCSNetIPClaim {
		c := &v1.BCSNetIPClaim{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
		c.Spec.Addresses, c.Spec.ReleasePolicy = addresses, v1.ReleaseNever
		f.create(t, c)
		return c
	}
	says := func(c *v1.BCSNetIPClaim, reason, words string) {
		t.Helper()
		eventually(t, c.Name+" to say "+reason, func() error {
			var now v1.BCSNetIPClaim
			if err := f.admin.Get(t.Context(), client.ObjectKeyFromObject(c), &now); err != nil {
				return err
			}
			got := meta.FindStatusCondition(now.Status.Conditions, v1.ConditionConflict)
			if got == nil || got.Reason != reason || !strings.Contains(got.Message, words) {
				return fmt.Errorf("it says %+v", got)
			}
			return nil
		})
	}
	first := claim("first", s.address(1), s.address(2))
	says(first, v1.ReasonNoConflict, "")
	second := claim("second", s.address(2))
	says(first, v1.ReasonAddressesShared, "claim "+s.namespace+"/second names "+s.address(2))
	says(second, v1.ReasonAddressesShared, "claim "+s.namespace+"/first names "+s.address(2))
	says(claim("outside", s.address(1), s.address(99)), string(ipam.ReasonAddressNotInPool), s.address(99)+
		" is in no pool")
	if err := f.admin.Delete(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	says(first, v1.ReasonAddressesShared, "claim "+s.namespace+"/outside names "+s.address(1))

	labels := map[string]string{"app": "outer"}
	outer := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "outer"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "c"}}},
			},
		}}
	f.create(t, outer)
	var inner appsv1.ReplicaSetList
	eventually(t, "the Deployment to have a ReplicaSet", func() error {
		err := f.admin.List(t.Context(), &inner, client.InNamespace(s.namespace), client.MatchingLabels(labels))
		if err == nil && len(inner.Items) != 1 {
			err = fmt.Errorf("there are %d", len(inner.Items))
		}
		return err
	})
	of := func(kind, name string) *v1.BCSNetIPClaim {
		c := &v1.BCSNetIPClaim{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, GenerateName: "of-"}}
		c.Spec.Owner, c.Spec.ReleasePolicy = &v1.ClaimOwner{APIVersion: "apps/v1", Kind: kind, Name: name},
			v1.ReleaseNever
		f.create(t, c)
		return c
	}
	says(of("ReplicaSet", inner.Items[0].Name), v1.ReasonOwnerControlled, "belongs to Deployment "+s.namespace+"/outer")
	one, two := of("Deployment", outer.Name), of("Deployment", outer.Name)
	says(one, v1.ReasonOwnerShared, two.Name+" is for Deployment "+s.namespace+"/outer, too")
	says(two, v1.ReasonOwnerShared, one.Name+" is for Deployment "+s.namespace+"/outer, too")
	if err := f.admin.Delete(t.Context(), two); err != nil {
		t.Fatal(err)
	}
	says(one, v1.ReasonNoConflict, "")
	nobodys := of("Deployment", "outre")
	eventually(t, "it to be said that its owner does not exist", func() error {
		if err := f.admin.Get(t.Context(), client.ObjectKeyFromObject(nobodys), nobodys); err != nil {
			return err
		}
		if got := meta.FindStatusCondition(nobodys.Status.Conditions, v1.ConditionReady); got == nil ||
			!strings.HasSuffix(got.Message, "; there is no Deployment "+s.namespace+"/outre") {
			return fmt.Errorf("it says %+v", got)
		}
		return nil
	})
}

// claimHas waits until a claim has so many addresses and says so, and returns them.
func (f *fixture) claimHas(
	t *testing.T, c *v1.BCSNetIPClaim, n int, status metav1.ConditionStatus, reason string,
) []string {
	t.Helper()
	now := &v1.BCSNetIPClaim{}
	eventually(t, fmt.Sprintf("the claim to have %d addresses", n), func() error {
		if err := f.admin.Get(t.Context(), client.ObjectKeyFromObject(c), now); err != nil {
			return err
		}
		got := meta.FindStatusCondition(now.Status.Conditions, v1.ConditionPreallocated)
		if got == nil || now.Status.Held != int64(n) || got.Status != status || got.Reason != reason {
			return fmt.Errorf("it has %s, and says %+v", now.Status.IPPool, got)
		}
		return nil
	})
	return now.Status.Addresses
}

func (f *fixture) resize(t *testing.T, c *v1.BCSNetIPClaim, n int32) {
	t.Helper()
	err := f.admin.Patch(t.Context(), c, client.RawPatch(types.MergePatchType,
		fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, n)))
	if err != nil {
		t.Fatal(err)
	}
}

// someRefused says whether a pod of the app was refused for a reason.
func (a *app) someRefused(t *testing.T, reason ipam.Reason) error {
	t.Helper()
	pods, err := a.pods(t.Context())
	if err != nil {
		return err
	}
	for _, p := range pods {
		if why, ok := a.kubelet.lastRefusal(p.Namespace, p.Name); ok && why.reason == string(reason) {
			return nil
		}
	}
	return fmt.Errorf("none of %d pods was refused with %s", len(pods), reason)
}
