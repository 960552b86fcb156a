package ipamclaim_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/bcsnet/bcsnet/pkg/controller"
	"github.com/bcsnet/bcsnet/test/inprocess"
)

// The flag --ipam-claims is turned on where a policy has kept the address of a machine until then: a machine that runs
// keeps its address, which is the IPAMClaim's from then on. That of a machine which is off stays with the policy's
// claim.
func TestFlagIsTurnedOn(t *testing.T) {
	cluster.InstallKubeVirt(t)
	top := t
	var s *site
	var m, other *machine
	var running *launcher
	var has, off []string
	keeps := func(p *corev1.Pod) {
		p.Annotations["networkextension.bkbcs.tencent.com/release-policy"] = "never"
	}
	t.Run("off", func(t *testing.T) {
		cfg := account(t)
		install(t, asPublished)
		c := inprocess.ForTest(t, cfg, func(o *controller.Options) { o.LeaderElect = false })
		s = newSite(t, c.URL)
		s.T = top // its pods outlive the controller
		m = s.machine("vm")
		s.claim("vm.a")
		running = s.launch(hostA, networks("vm.a"), m.owns, keeps)
		has = running.add()
		if o, err := s.leased(has[0]); err != nil || o.Status.Claim == "" {
			t.Fatalf("it is not kept: %+v, %v", o.Status, err)
		}
		other = s.machine("off")
		s.claim("vm.off")
		stopped := s.launch(hostA, networks("vm.off"), other.owns, keeps)
		off = stopped.add()
		stopped.stop()
		s.becomes(off[0], "Reserved")
	})
	if t.Failed() {
		return
	}
	t.Run("on", func(t *testing.T) {
		c := inprocess.ForTest(t, account(t), func(o *controller.Options) {
			o.LeaderElect, o.IPAMClaims = false, true
			o.CollectEvery, o.CollectAfter = time.Second, 2*time.Second
		})
		s.url = c.URL
		if got := running.add(); !cmp.Equal(got, has) {
			t.Errorf("asked again it has %v, not %v", got, has)
		}
		s.shows("vm.a", status{ips: has[0] + "/24", ownerPod: running.pod.Name, condition: "True/SuccessfulAllocation"})
		running.stop()
		next := s.launch(hostB, networks("vm.a"), m.owns, keeps)
		if got := next.addSoon(); !cmp.Equal(got, has) {
			t.Errorf("started again it has %v, not %v", got, has)
		}
		if got := s.launch(hostA, networks("vm.off"), other.owns, keeps).add(); cmp.Equal(got, off) {
			t.Errorf("the machine that was off has %v by another claim", got)
		}
		s.becomes(off[0], "Reserved")
	})
}
