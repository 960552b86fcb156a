package ipamclaim_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// The controller is killed after each step of a machine's life: nothing is lost, and nothing is left behind.
func TestKilledBetweenSteps(t *testing.T) {
	_ = account(t)
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
	first := s.launch(hostA, networks("vm.a"))
	has := first.add()
	again() // before the claim is made, or just after
	if got := first.add(); !cmp.Equal(got, has) {
		t.Errorf("it has %v, not %v", got, has)
	}
	s.shows("vm.a", status{ips: has[0] + "/24", ownerPod: first.pod.Name, condition: "True/SuccessfulAllocation"})
	controlplane.Eventually(t, func() error {
		return admin.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "ipamclaim-vm.a"}, &v1.BCSNetIPClaim{})
	})
	first.stop()
	again()
	next := s.launch(hostB, networks("vm.a"))
	if got := next.addSoon(); !cmp.Equal(got, has) {
		t.Errorf("started again it has %v, not %v", got, has)
	}
	if err := c.Kill(); err != nil {
		t.Fatal(err)
	}
	s.unclaim("vm.a") // nobody sees it go
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := next.add(); !cmp.Equal(got, has) {
		t.Errorf("the pod has %v, not %v", got, has)
	}
	next.stop()
	again()
	s.becomes(has[0], "Available")
}

// TestClaimThatWasNeverMade: an IPAMClaim and its pods came and went while no leader could create the claim. Its
// address is returned, but not while the IPAMClaim is there.
func TestClaimThatWasNeverMade(t *testing.T) {
	controlplane.TakesLong(t)
	_ = account(t)
	install(t, asPublished)
	c, err := cluster.StartController(t.Context(), controlplane.ControllerOptions{
		Args: []string{"--ipam-claims", "--leader-elect=false"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Stop() })
	s := newSite(t, c.URL)
	long := "vm." + strings.Repeat("a", 240) // its claim has a shortened name
	kept := map[string]string{}
	for _, name := range []string{"vm.off", "vm.gone", long} {
		s.claim(name)
		pod := s.launch(hostA, networks(name))
		kept[name] = pod.add()[0]
		pod.stop()
		s.becomes(kept[name], "Reserved")
	}
	if err := c.Kill(); err != nil {
		t.Fatal(err)
	}
	var all v1.BCSNetIPClaimList
	if err := admin.List(t.Context(), &all, client.InNamespace(s.namespace)); err != nil {
		t.Fatal(err)
	}
	for _, o := range all.Items {
		o.Finalizers = nil
		err := errors.Join(admin.Update(t.Context(), &o), client.IgnoreNotFound(admin.Delete(t.Context(), &o)))
		if err != nil {
			t.Fatal(err)
		}
	}
	s.unclaim("vm.gone")
	s.unclaim(long)
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.becomes(kept["vm.gone"], "Available")
	s.becomes(kept[long], "Available")
	s.becomes(kept["vm.off"], "Reserved")
	s.unclaim("vm.off")
	s.becomes(kept["vm.off"], "Available")
}

// Without the role, pods that name an IPAMClaim are refused and the rest is served.
func TestWithoutTheRole(t *testing.T) {
	_ = account(t)
	install(t, asPublished)
	var role rbacv1.ClusterRole
	name := client.ObjectKey{Name: "bcsnet-controller-ipamclaims"}
	if err := admin.Get(t.Context(), name, &role); err != nil {
		t.Fatal(err)
	}
	without := role.DeepCopy()
	without.Rules = nil
	if err := admin.Update(t.Context(), without); err != nil {
		t.Fatal(err)
	}
	c := start(t)
	s := newSite(t, c.URL)
	s.claim("vm.a")
	pod := s.launch(hostA, networks("vm.a"))
	pod.refused(ipam.ReasonForbidden, "ipamclaims")
	if a := pod.ask("POST", "eth0"); a.Reason != "" {
		t.Errorf("eth0: %+v", a)
	}
	without.Rules = role.Rules
	if err := admin.Update(t.Context(), without); err != nil {
		t.Fatal(err)
	}
	has := pod.addSoon()
	s.shows("vm.a", status{ips: has[0] + "/24", ownerPod: pod.pod.Name, condition: "True/SuccessfulAllocation"})
}

// The example is what it says.
func TestExample(t *testing.T) {
	install(t, asPublished)
	c := start(t)
	s := newSite(t, c.URL)
	root, err := controlplane.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(filepath.Join(root, "examples", "ipamclaims", "machine.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	documents := yaml.NewYAMLOrJSONDecoder(file, 4096)
	strict := client.WithFieldValidation(admin, metav1.FieldValidationStrict)
	for range 2 {
		o := &unstructured.Unstructured{}
		if err := documents.Decode(o); err != nil {
			t.Fatal(err)
		}
		o.SetNamespace(s.namespace)
		if err := strict.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	var p corev1.Pod
	if err := admin.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "virt-launcher-desktop-x2x4z"}, &p); err != nil {
		t.Fatal(err)
	}
	has := (&launcher{site: s, pod: &p, host: hostA, container: "c"}).add()
	s.shows("desktop.tenant-red", status{ips: has[0] + "/24", ownerPod: p.Name, condition: "True/SuccessfulAllocation"})
	controlplane.Eventually(t, func() error {
		return admin.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "ipamclaim-desktop.tenant-red"},
			&v1.BCSNetIPClaim{})
	})
}

// manyEnv says how many machines TestMany has, if not a few.
const manyEnv = "IPAMCLAIMS"

// Many machines start, stop, and start again: each has its own address.
func TestMany(t *testing.T) {
	controlplane.TakesLong(t)
	n := 40
	if text := os.Getenv(manyEnv); text != "" {
		_, _ = fmt.Sscan(text, &n)
	}
	install(t, asPublished)
	c := start(t)
	s := newSite(t, c.URL)
	s.create(&v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: s.pool + "-many"}, Spec: v1.BCSNetPoolSpec{
		Net: "10.64.0.0", Mask: 16, Gateway: "10.64.255.254", AvailableIPs: []string{"10.64.0.0/17"}, Priority: 100,
		Hosts: []string{hostA, hostB}, Namespaces: []string{s.namespace},
	}})
	names, has := make([]string, n), make([]string, n)
	began := time.Now()
	for i := range n {
		names[i] = fmt.Sprintf("vm-%d.red", i)
		s.claim(names[i])
	}
	t.Logf("%d IPAMClaims made after %s", n, time.Since(began))
	for round := range 2 {
		began := time.Now()
		for i := range n {
			pod := s.launch(hostA, networks(names[i]))
			got := pod.addSoon()
			if has[i] == "" {
				has[i] = got[0]
			}
			if got[0] != has[i] {
				t.Errorf("round %d: %s has %s, not %s", round, names[i], got[0], has[i])
			}
			pod.stop()
		}
		t.Logf("round %d: %d machines started and stopped after %s", round, n, time.Since(began))
	}
	began = time.Now()
	for i := range n {
		controlplane.EventuallyWithin(t, 5*time.Minute, func() error {
			got, err := s.shown(names[i])
			if want := (status{ips: has[i] + "/16", condition: "True/SuccessfulAllocation"}); err == nil && got != want {
				err = errDiffers(got, want)
			}
			return err
		})
	}
	t.Logf("all shown after another %s", time.Since(began))
}
