package ipamclaim_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bcsnet/bcsnet/pkg/controller"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/inprocess"
)

// The status has what the installed CRD knows, also when that is replaced under a running controller.
func TestForms(t *testing.T) {
	uninstall(t)
	install(t, asInTheBeginning)
	c := start(t)
	s := newSite(t, c.URL)
	s.claim("vm.a")
	pod := s.launch(hostA, networks("vm.a"))
	has := pod.add()
	s.shows("vm.a", status{ips: has[0] + "/24"})

	// A CRD is read once a minute: what it knows by then is shown with the next change at the latest.
	uninstall(t)
	install(t, withRequests)
	s.claim("vm.a")
	controlplane.EventuallyWithin(t, 3*time.Minute, func() error {
		got, err := s.shown("vm.a")
		if want := (status{has[0] + "/24", pod.pod.Name, "True/SuccessfulAllocation"}); err == nil && got != want {
			err = errDiffers(got, want)
		}
		return err
	})
	pod.stop()
	s.shows("vm.a", status{ips: has[0] + "/24", condition: "True/SuccessfulAllocation"})
	if n := strings.Count(c.Log.String(), "level=WARN"); n > 0 {
		t.Errorf("there are warnings:\n%s", c.Log)
	}
}

// The CRD comes after the start of the controller, goes, and comes again: nobody loses an address, and nothing is said
// again and again.
func TestCRDComesAndGoes(t *testing.T) {
	uninstall(t)
	c := start(t)
	s := newSite(t, c.URL)
	pod := s.launch(hostA, networks("vm.a"))
	for range 5 {
		pod.refused(ipam.ReasonClaimNotFound, "the API server serves no IPAMClaims", "vm.a")
	}
	// Other pods, and other interfaces of this one, are served.
	if a := pod.ask(http.MethodPost, "eth0"); a.Reason != "" {
		t.Errorf("eth0: %+v", a)
	}
	install(t, asPublished)
	controlplane.Eventually(t, func() error {
		return refusedWith(pod.ask(http.MethodPost, ifName), ipam.ReasonClaimNotFound, "vm.a does not exist")
	})
	s.claim("vm.a")
	has := pod.addSoon()
	s.shows("vm.a", status{ips: has[0] + "/24", ownerPod: pod.pod.Name, condition: "True/SuccessfulAllocation"})

	uninstall(t)
	if got := pod.add(); !cmp.Equal(got, has) {
		t.Errorf("without the CRD the pod has %v, not %v", got, has)
	}
	pod.stop()
	s.becomes(has[0], "Reserved")
	next := s.launch(hostB, networks("vm.a"))
	controlplane.Eventually(t, func() error {
		return refusedWith(next.ask(http.MethodPost, ifName), ipam.ReasonClaimNotFound)
	})
	install(t, asPublished)
	s.claim("vm.a")
	if got := next.addSoon(); !cmp.Equal(got, has) {
		t.Errorf("when the CRD is back the machine has %v, not %v", got, has)
	}
	if n := strings.Count(c.Log.String(), "level=WARN"); n > 1 {
		t.Errorf("%d warnings:\n%s", n, c.Log)
	}
}

// Without the flag the reference says nothing, and no IPAMClaim is read.
func TestWithoutTheFlag(t *testing.T) {
	install(t, asPublished)
	c := inprocess.ForTest(t, account(t), func(o *controller.Options) { o.LeaderElect = false })
	s := newSite(t, c.URL)
	s.claim("vm.a")
	pod := s.launch(hostA, networks("vm.a"))
	has := pod.add()
	pod.stop()
	s.becomes(has[0], "Available")
	if got, err := s.shown("vm.a"); err != nil || got != (status{}) {
		t.Errorf("%+v, %v", got, err)
	}
}
