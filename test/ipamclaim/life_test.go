package ipamclaim_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	ipamclaims "github.com/k8snetworkplumbingwg/ipamclaims/pkg/crd/ipamclaims/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// A machine keeps its address while its IPAMClaim is there: stopped, started again on another host, and only one pod
// has it at a time. It goes back when the machine is deleted, and the IPAMClaim with it.
func TestMachineLife(t *testing.T) {
	install(t, asPublished)
	c := start(t)
	s := newSite(t, c.URL)
	s.claim("vm.tenantred")
	first := s.launch(hostA, networks("vm.tenantred"))
	has := first.add()
	if len(has) != 1 {
		t.Fatalf("got %v", has)
	}
	if diff := cmp.Diff(has, first.add()); diff != "" {
		t.Error("a repeated request:", diff)
	}
	s.shows("vm.tenantred", status{ips: has[0] + "/24", ownerPod: first.pod.Name, condition: "True/SuccessfulAllocation"})
	s.typed("vm.tenantred", has[0]+"/24", first.pod.Name)

	// The claim is one like any other.
	var claim v1.BCSNetIPClaim
	controlplane.Eventually(t, func() error {
		return admin.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "ipamclaim-vm.tenantred"}, &claim)
	})
	want := v1.BCSNetIPClaimSpec{
		Owner:    &v1.ClaimOwner{APIVersion: "k8s.cni.cncf.io/v1alpha1", Kind: "IPAMClaim", Name: "vm.tenantred"},
		Replicas: new(int32(1)), ReleasePolicy: v1.ReleaseImmutable,
	}
	if diff := cmp.Diff(want, claim.Spec); diff != "" {
		t.Error(diff)
	}

	// The other interfaces of the pod have nothing to do with it.
	if a := first.ask(http.MethodPost, "eth0"); a.Reason != "" || cmp.Equal(addresses(a), has) {
		t.Errorf("eth0: %+v", a)
	}
	second := s.launch(hostB, networks("vm.tenantred"))
	second.refused(ipam.ReasonClaimConflict, has[0], "ipamclaim-vm.tenantred", first.pod.Name, "still has it")
	s.shows("vm.tenantred", status{ips: has[0] + "/24", ownerPod: first.pod.Name, condition: "True/SuccessfulAllocation"})

	first.stop()
	s.becomes(has[0], "Reserved")
	s.shows("vm.tenantred", status{ips: has[0] + "/24", condition: "True/SuccessfulAllocation"})
	if got := second.addSoon(); !cmp.Equal(got, has) {
		t.Errorf("started again on another host it has %v, not %v", got, has)
	}
	s.shows("vm.tenantred", status{ips: has[0] + "/24", ownerPod: second.pod.Name, condition: "True/SuccessfulAllocation"})

	// Its host dies: no DEL comes, and the next pod takes the address over.
	second.vanish()
	third := s.launch(hostA, networks("vm.tenantred"))
	if got := third.addSoon(); !cmp.Equal(got, has) {
		t.Errorf("after its host was lost it has %v, not %v", got, has)
	}
	third.stop()
	s.unclaim("vm.tenantred")
	s.becomes(has[0], "Available")
	controlplane.Eventually(t, func() error {
		err := admin.Get(t.Context(), client.ObjectKeyFromObject(&claim), &v1.BCSNetIPClaim{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("the claim is still there"), err)
	})
	s.launch(hostA, networks("vm.tenantred")).refused(ipam.ReasonClaimNotFound,
		"IPAMClaim "+s.namespace+"/vm.tenantred does not exist")
}

// typed holds the status against the types that the IPAMClaims' own module has.
func (s *site) typed(name, ips, pod string) {
	s.Helper()
	out, err := cluster.Kubectl(s.Context(), "get", "ipamclaim", "-n", s.namespace, name, "-o", "json").Output()
	if err != nil {
		s.Fatal(err)
	}
	var o ipamclaims.IPAMClaim
	if err := yaml.UnmarshalStrict(out, &o); err != nil {
		s.Fatal(err)
	}
	want := ipamclaims.IPAMClaimStatus{IPs: []string{ips}, OwnerPod: &ipamclaims.OwnerPod{Name: pod}}
	for i := range o.Status.Conditions {
		c := &o.Status.Conditions[i]
		if c.LastTransitionTime.IsZero() {
			s.Error("a condition without a time")
		}
		c.LastTransitionTime = metav1.Time{}
	}
	want.Conditions = []metav1.Condition{{
		Type: "IPsAllocated", Status: metav1.ConditionTrue, Reason: "SuccessfulAllocation",
		Message: ips + " of pool " + s.pool + "-v4",
	}}
	if diff := cmp.Diff(want, o.Status); diff != "" {
		s.Error(diff)
	}
}

// An IPAMClaim that is deleted takes nothing from a pod that runs: the address goes with the pod.
func TestDeletedWhileItsPodRuns(t *testing.T) {
	controlplane.TakesLong(t)
	install(t, asPublished)
	c := start(t)
	s := newSite(t, c.URL)
	s.claim("vm.a")
	pod := s.launch(hostA, networks("vm.a"))
	has := pod.add()
	s.unclaim("vm.a")
	if got := pod.add(); !cmp.Equal(got, has) {
		t.Errorf("it has %v, not %v", got, has)
	}
	pod.stop()
	s.becomes(has[0], "Available")
}

// An IPAMClaim that is made again with its name before the address went back has that address, as a claim of any
// workload has: backups and replaced CRDs bring IPAMClaims with other UIDs.
func TestRecreated(t *testing.T) {
	install(t, withRequests)
	c := start(t)
	s := newSite(t, c.URL)
	s.claim("vm.a")
	pod := s.launch(hostA, networks("vm.a"))
	has := pod.add()
	pod.stop()
	s.becomes(has[0], "Reserved")
	s.unclaim("vm.a")
	s.claim("vm.a")
	next := s.launch(hostB, networks("vm.a"))
	if got := next.addSoon(); !cmp.Equal(got, has) {
		t.Errorf("it has %v, not %v", got, has)
	}
	s.shows("vm.a", status{ips: has[0] + "/24", ownerPod: next.pod.Name, condition: "True/SuccessfulAllocation"})

	// The one after that asks for another address: it gets that, and the old one goes back.
	next.stop()
	s.unclaim("vm.a")
	other := s.address(17)
	if has[0] == other {
		other = s.address(18)
	}
	s.claim("vm.a", other+"/24")
	if got := s.launch(hostA, networks("vm.a")).addSoon(); !cmp.Equal(got, []string{other}) {
		t.Errorf("it has %v, not the address that it asks for", got)
	}
	s.becomes(has[0], "Available")
}
