package ipamclaim_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// machine is a virtual machine of KubeVirt, of whose objects the test writes what KubeVirt would.
type machine struct {
	*site
	vmi *unstructured.Unstructured
	n   int
}

// machine makes a machine that runs.
func (s *site) machine(name string) *machine {
	s.Helper()
	vmi := controlplane.KubeVirtObject("VirtualMachineInstance", s.namespace, name,
		map[string]any{"status": map[string]any{"phase": "Running"}})
	s.create(vmi)
	return &machine{site: s, vmi: vmi}
}

// launch makes a pod of the machine on a host, for the migration by, if that is not nil.
func (m *machine) launch(host, annotation string, by *unstructured.Unstructured) *launcher {
	m.Helper()
	return m.site.launch(host, annotation, m.owns, func(p *corev1.Pod) {
		if by != nil {
			p.Labels["kubevirt.io/migrationJobUID"] = string(by.GetUID())
			p.Annotations["kubevirt.io/migrationJobName"] = by.GetName()
		}
	})
}

// owns makes a pod one of the machine's.
func (m *machine) owns(p *corev1.Pod) {
	p.OwnerReferences = []metav1.OwnerReference{controlplane.ControlledBy(m.vmi)}
	p.Labels = map[string]string{"kubevirt.io": "virt-launcher", "vm.kubevirt.io/name": m.vmi.GetName()}
}

// lists has the machine list its pods, as virt-controller does once it has seen them.
func (m *machine) lists(pods ...*launcher) {
	m.Helper()
	all := map[string]any{}
	for _, p := range pods {
		all[string(p.pod.UID)] = p.pod.Spec.NodeName
	}
	_ = unstructured.SetNestedField(m.vmi.Object, all, "status", "activePods")
	if err := admin.Update(m.Context(), m.vmi); err != nil {
		m.Fatal(err)
	}
}

// migration begins one.
func (m *machine) migration() *unstructured.Unstructured {
	m.Helper()
	m.n++
	by := controlplane.KubeVirtObject("VirtualMachineInstanceMigration", m.namespace,
		fmt.Sprint(m.vmi.GetName(), "-", m.n), map[string]any{"spec": map[string]any{"vmiName": m.vmi.GetName()}})
	m.create(by)
	_ = unstructured.SetNestedField(by.Object, "Scheduling", "status", "phase")
	if err := admin.Status().Update(m.Context(), by); err != nil {
		m.Fatal(err)
	}
	return by
}

// target begins a migration to a host; its pod has the machine's addresses, as the source's has.
func (m *machine) target(source *launcher, host, annotation string, has []string) *launcher {
	m.Helper()
	to := m.launch(host, annotation, m.migration())
	m.lists(source, to)
	a := to.ask(http.MethodPost, ifName)
	if a.Reason != "" || !a.Address.Migration || !slices.Equal(addresses(a), has) {
		m.Fatalf("the target got %s %s %+v, want %v for a migration", a.Reason, a.Message, a.Address, has)
	}
	return to
}

// attached waits until an address is of certain pods, the first attachment first.
func (s *site) attached(address string, pods ...*launcher) {
	s.Helper()
	var want []string
	for _, p := range pods {
		want = append(want, p.pod.Name)
	}
	controlplane.EventuallyWithin(s.T, 2*time.Minute, func() error {
		o, err := s.leased(address)
		if err != nil {
			return err
		}
		got := []string{o.Status.PodName}
		if o.Status.SecondAttachment != nil {
			got = append(got, o.Status.SecondAttachment.PodName)
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("%s is of %v, want %v", address, got, want)
		}
		return nil
	})
}

// A machine whose address an IPAMClaim keeps migrates live: the address is in two pods for that time, the IPAMClaim
// shows the one that the machine is in until that ends, and whichever ends leaves it to the other.
func TestMigratesLive(t *testing.T) {
	cluster.InstallKubeVirt(t)
	for name, as := range map[string]form{"as published": asPublished, "with requests": withRequests} {
		t.Run(name, func(t *testing.T) {
			install(t, as)
			c := start(t)
			s := newSite(t, c.URL, "v4", "v6")
			s.claim("vm.tenantred")
			m, annotation := s.machine("vm"), networks("vm.tenantred")
			source := m.launch(hostA, annotation, nil)
			m.lists(source)
			has := source.add()
			if len(has) != 2 {
				t.Fatalf("got %v, want one of each family", has)
			}
			shows := func(pod string) {
				t.Helper()
				s.shows("vm.tenantred", status{
					ips: strings.Join([]string{has[0] + "/24", has[1] + "/64"}, " "), ownerPod: pod,
					condition: "True/SuccessfulAllocation",
				})
			}
			shows(source.pod.Name)

			// Too early: the machine does not list the pod yet.
			early := m.launch(hostB, annotation, m.migration())
			early.refused(ipam.ReasonClaimConflict, has[0], "does not list it among its pods yet")
			m.lists(source, early)
			if got := early.addSoon(); !cmp.Equal(got, has) {
				t.Fatalf("the target has %v, not %v", got, has)
			}
			for _, address := range has {
				s.attached(address, source, early)
			}
			shows(source.pod.Name)
			if a := early.ask(http.MethodPost, ifName); a.Reason != "" || !a.Address.Migration {
				t.Errorf("asked again: %s, %+v", a.Reason, a.Address)
			}
			// An interface that the IPAMClaim is not for is none that the machine takes along.
			if a := early.ask(http.MethodPost, "eth0"); a.Reason != "" || a.Address.Migration || cmp.Equal(addresses(a), has) {
				t.Errorf("eth0: %s, %+v", a.Reason, a.Address)
			}
			early.stop() // cancelled
			for _, address := range has {
				s.attached(address, source)
			}
			shows(source.pod.Name)

			// The next one succeeds, and the one after that goes back.
			target := m.target(source, hostB, annotation, has)
			source.stop()
			shows(target.pod.Name)
			for _, address := range has {
				s.attached(address, target)
			}
			back := m.target(target, hostA, annotation, has)
			shows(target.pod.Name)
			target.stop()
			shows(back.pod.Name)
			back.stop()
			s.becomes(has[0], "Reserved")
			shows("")
		})
	}
}

// A pod that says it is a target gets nothing that an IPAMClaim keeps, nor does one of another machine that names the
// same IPAMClaim.
func TestClaimsToBeATarget(t *testing.T) {
	cluster.InstallKubeVirt(t)
	install(t, asPublished)
	c := start(t)
	s := newSite(t, c.URL)
	s.claim("vm.a")
	m, annotation := s.machine("vm"), networks("vm.a")
	source := m.launch(hostA, annotation, nil)
	m.lists(source)
	has := source.add()

	lone := s.launch(hostB, annotation)
	lone.refused(ipam.ReasonClaimConflict, source.pod.Name, "still has it")
	other := s.machine("another")
	stranger := other.launch(hostB, annotation, other.migration())
	other.lists(stranger)
	stranger.refused(ipam.ReasonClaimConflict, "not of one virtual machine")
	s.attached(has[0], source)
}

// An IPAMClaim that is deleted while its machine migrates takes nothing from either pod. The address goes back when
// both have ended.
func TestDeletedWhileItsMachineMigrates(t *testing.T) {
	controlplane.TakesLong(t)
	cluster.InstallKubeVirt(t)
	install(t, asPublished)
	c := start(t)
	s := newSite(t, c.URL)
	s.claim("vm.a")
	m, annotation := s.machine("vm"), networks("vm.a")
	source := m.launch(hostA, annotation, nil)
	m.lists(source)
	has := source.add()
	target := m.target(source, hostB, annotation, has)
	s.unclaim("vm.a")
	s.attached(has[0], source, target)
	source.stop()
	s.attached(has[0], target)
	target.stop()
	s.becomes(has[0], "Available")
}

// Both pods go without a DEL, as with nodes that are lost: the machine's next pod has the address when neither is
// there. What the earlier ones say late changes nothing.
func TestPodsGoWhileTheMachineMigrates(t *testing.T) {
	controlplane.TakesLong(t)
	cluster.InstallKubeVirt(t)
	install(t, asPublished)
	c := start(t)
	for name, sourceFirst := range map[string]bool{"the source first": true, "the target first": false} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, c.URL)
			s.claim("vm.a")
			m, annotation := s.machine("vm"), networks("vm.a")
			source := m.launch(hostA, annotation, nil)
			m.lists(source)
			has := source.add()
			target := m.target(source, hostB, annotation, has)
			gone, stays := source, target
			if !sourceFirst {
				gone, stays = target, source
			}
			gone.vanish()
			next := m.launch(hostA, annotation, nil)
			controlplane.Eventually(t, func() error {
				return refusedWith(next.ask(http.MethodPost, ifName), ipam.ReasonClaimConflict, stays.pod.Name, "still has it")
			})
			stays.vanish()
			if got := next.addSoon(); !cmp.Equal(got, has) {
				t.Errorf("the machine's next pod has %v, not %v", got, has)
			}
			for _, late := range []*launcher{source, target} {
				if a := late.ask(http.MethodDelete, ifName); a.Reason != "" {
					t.Errorf("DEL: %s: %s", a.Reason, a.Message)
				}
			}
			s.attached(has[0], next)
			s.shows("vm.a", status{ips: has[0] + "/24", ownerPod: next.pod.Name, condition: "True/SuccessfulAllocation"})
		})
	}
}

// The controller is killed after each step of a migration.
func TestKilledWhileMigrating(t *testing.T) {
	controlplane.TakesLong(t)
	_ = account(t)
	cluster.InstallKubeVirt(t)
	install(t, asPublished)
	c, err := cluster.StartController(t.Context(), controlplane.ControllerOptions{
		Args: []string{"--ipam-claims", "--leader-elect=false"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Stop() })
	s := newSite(t, c.URL)
	again := func() {
		t.Helper()
		if err := c.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := c.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	s.claim("vm.a")
	m, annotation := s.machine("vm"), networks("vm.a")
	source := m.launch(hostA, annotation, nil)
	m.lists(source)
	has := source.add()
	again()
	target := m.target(source, hostB, annotation, has)
	again()
	a := target.ask(http.MethodPost, ifName)
	if a.Reason != "" || !a.Address.Migration || !slices.Equal(addresses(a), has) {
		t.Errorf("the target, again: %s %s %+v", a.Reason, a.Message, a.Address)
	}
	s.attached(has[0], source, target)
	source.stop()
	again()
	s.attached(has[0], target)
	s.shows("vm.a", status{ips: has[0] + "/24", ownerPod: target.pod.Name, condition: "True/SuccessfulAllocation"})
	target.stop()
	again()
	s.becomes(has[0], "Reserved")
}
