package upgrade

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/previous"
)

// longEnv has the tests take as long as they were made for: make test-upgrade.
const longEnv = "UPGRADE_LONG"

// long returns how much of something a test does: all in the long form, else what fits beside the other tests.
func long(all, short int) int {
	if os.Getenv(longEnv) != "" {
		return all
	}
	return short
}

// host is that of all pools and pods, and what requests come from: this machine, which both releases answer by plain
// HTTP whatever it asks. What is refused of other machines is nothing that this traffic shows; test/attacks has that.
const host = "127.0.0.1"

var cluster *controlplane.ControlPlane

func TestMain(m *testing.M) { os.Exit(controlplane.Main(m, &cluster)) }

// site is the control plane of the test, with two replicas of the controller, each of one of the releases.
type site struct {
	*testing.T
	cluster  *controlplane.ControlPlane
	admin    client.Client
	caller   *http.Client
	old, now previous.Release
	replicas []*controlplane.Controller
	// made counts the programs that were started.
	made int
}

// newSite installs the release before this one on a control plane, or skips the test.
func newSite(t *testing.T, on *controlplane.ControlPlane) *site {
	t.Helper()
	s := &site{T: t, cluster: on, admin: on.AdminFor(t), caller: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
	t.Cleanup(s.caller.CloseIdleConnections)
	var err error
	if s.now, err = previous.Current(); err != nil {
		t.Fatal(err)
	}
	s.old, err = previous.Get(t.Context())
	if errors.Is(err, previous.ErrNoHistory) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.definitions(s.old)
	s.rights(s.old)
	for i := range 2 {
		s.replicas = append(s.replicas, nil)
		s.run(i, s.old)
	}
	return s
}

// definitions installs the CRDs of a release.
func (s *site) definitions(r previous.Release) {
	s.Helper()
	if err := s.cluster.InstallCRDs(s.Context(), filepath.Join(r.Root, "config", "crd")); err != nil {
		s.Fatal(err)
	}
}

// rights installs what else a release has, but for its Deployment.
func (s *site) rights(r previous.Release) {
	s.Helper()
	if err := s.cluster.InstallRightsOf(s.Context(), r.Root); err != nil {
		s.Fatal(err)
	}
}

// run puts a replica of a release into a place, as a Deployment does: what runs there ends first.
func (s *site) run(place int, r previous.Release) {
	s.Helper()
	address := ""
	if c := s.replicas[place]; c != nil {
		address = strings.TrimPrefix(c.URL, "http://")
		if err := c.Stop(); err != nil {
			s.Fatal(err)
		}
	}
	s.made++
	c, err := s.cluster.StartController(s.Context(), controlplane.ControllerOptions{
		Name: fmt.Sprintf("replica-%d-%d", place, s.made), Binary: r.Controller, HTTPAddress: address, Args: s.arguments(r),
	})
	if err != nil {
		s.Fatal(err)
	}
	s.replicas[place] = c
	s.Logf("replica %d is of %s", place, r.Name)
}

// arguments returns those of the Deployment of a release, but for the addresses, which a test chooses. An upgrade to
// this release goes on answering plain HTTP, which the release before it did.
func (s *site) arguments(r previous.Release) []string {
	s.Helper()
	text, err := os.ReadFile(filepath.Join(r.Root, "config", "manager", "deployment.yaml"))
	if err != nil {
		s.Fatal(err)
	}
	var d appsv1.Deployment
	if err := yaml.Unmarshal(text, &d); err != nil {
		s.Fatal(err)
	}
	if len(d.Spec.Template.Spec.Containers) != 1 {
		s.Fatalf("the Deployment of %s is %s", r.Name, text)
	}
	args := slices.DeleteFunc(slices.Clone(d.Spec.Template.Spec.Containers[0].Args), func(arg string) bool {
		return strings.Contains(arg, "-bind-address=")
	})
	if r.Name == s.now.Name { // as upgrades go on; nothing here comes from another machine
		args = append(args, "--plain-http")
	}
	return args
}

// urls returns where the replicas answer; these stay when releases change.
func (s *site) urls() (all []string) {
	for _, c := range s.replicas {
		all = append(all, c.URL)
	}
	return all
}

// create makes objects.
func (s *site) create(objects ...client.Object) {
	s.Helper()
	for _, o := range objects {
		if err := s.admin.Create(s.Context(), o); err != nil {
			s.Fatalf("create %s: %v", o.GetName(), err)
		}
	}
}

// namespace makes a namespace with a pool of its own, and pods that nobody runs.
func (s *site) namespace(name string, pods int, spec v1.BCSNetPoolSpec) {
	s.Helper()
	s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	spec.Hosts, spec.Namespaces = []string{host}, []string{name}
	s.create(&v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec})
	for i := range pods {
		s.create(pod(name, i, nil))
	}
}

// subnet is the spec of a pool of 10.X.0.0/24 that has the addresses 10.X.0.1 up to some last one.
func subnet(x, last int) v1.BCSNetPoolSpec {
	return v1.BCSNetPoolSpec{
		Net: fmt.Sprintf("10.%d.0.0", x), Mask: 24, Gateway: fmt.Sprintf("10.%d.0.254", x),
		AvailableIPs: []string{fmt.Sprintf("10.%d.0.1-10.%d.0.%d", x, x, last)},
	}
}

// pod returns a pod of a namespace that asks for an address in some way.
func pod(namespace string, i int, annotations map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("%s-%d", namespace, i), Annotations: annotations},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "c"}}},
	}
}

// pools waits until the controller has seen the pools.
func (s *site) pools(names ...string) {
	s.Helper()
	controlplane.Eventually(s, func() error {
		for _, name := range names {
			var p v1.BCSNetPool
			if err := s.admin.Get(context.WithoutCancel(s.Context()), client.ObjectKey{Name: name}, &p); err != nil {
				return err
			}
			if p.Status.ObservedGeneration < p.Generation || p.Status.Capacity == 0 {
				return fmt.Errorf("pool %s is not seen yet: %+v", name, p.Status)
			}
		}
		return nil
	})
}
