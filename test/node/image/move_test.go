//go:build linux

package image

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bcsnet/bcsnet/pkg/cni/runstate"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/node/bed"
	"github.com/bcsnet/bcsnet/test/previous"
)

// released is the conflist of nodes of the released system: the address of the node, and the allocator by plain HTTP.
// By its name it comes before that of the chart.
const released = "05-released.conflist"

// patience is the time that a pod may take to be ready.
const patience = time.Minute

// toTLSAndBack begins with the release before this one, and with plugins on nodes that call it by plain HTTP, as those
// of the released system do: each asks the replicas on both machines. The controller is upgraded, the nodes go over to
// HTTPS with a token, plain HTTP is switched off, and all goes back, while pods come and go: no ADD fails.
func toTLSAndBack(t *testing.T) {
	controlplane.TakesLong(t)
	s := newSite(t)
	upgrade := func(plainHTTP string, node bool) {
		t.Helper()
		s.helm("upgrade", "bcsnet", s.chart(), "--install", "--namespace", controlplane.SystemNamespace, "--take-ownership",
			"--server-side=true", "--force-conflicts", "--set", "plainHTTP="+plainHTTP,
			"--set", fmt.Sprintf("node.enabled=%t", node))
		s.rolledOut("deployment/bcsnet-controller")
		if node {
			s.rolledOut("daemonset/bcsnet-node")
		}
	}
	asReleased := func() {
		t.Helper()
		for _, n := range s.Nodes() {
			s.writeReleased(n)
		}
	}
	// As it was before: the controller of that time, on nodes the plugin, a conflist, and nothing else of ours.
	asReleased()
	s.before()
	for _, n := range s.Nodes() {
		netD := filepath.Join(n.EtcCNI(), "net.d")
		if err := errors.Join(os.RemoveAll(filepath.Join(netD, "bcsnet.d")), os.RemoveAll(filepath.Join(netD, "10-bcsnet.conflist"))); err != nil {
			t.Fatal(err)
		}
	}
	come := s.startTraffic()
	come.atLeast(2)

	upgrade("auto", false) // which finds that the one that runs answers plain HTTP
	come.atLeast(2)
	upgrade("auto", true)
	come.atLeast(2)
	for _, n := range s.Nodes() {
		if err := os.Remove(filepath.Join(n.EtcCNI(), "net.d", released)); err != nil {
			t.Fatal(err)
		}
	}
	come.atLeast(2)
	upgrade("false", true)
	come.atLeast(4)
	status, text, err := s.get(plain(s.Nodes()[0]) + "/netservicecontroller/v1/allocator")
	if err != nil || status != http.StatusForbidden || !strings.Contains(text, "PlainHTTP") {
		t.Errorf("plain HTTP is answered with %d, %s, %v", status, text, err)
	}

	upgrade("true", true)
	asReleased()
	come.atLeast(2)
	upgrade("true", false)
	come.atLeast(4)
	pods := come.end()
	t.Logf("%d pods came and went", pods)
}

// before has the release before this one in the place of what is installed, as its manifests have it, and the pool of
// the documentation.
func (s *site) before() {
	s.t.Helper()
	old, err := previous.Get(s.t.Context())
	if errors.Is(err, previous.ErrNoHistory) {
		s.t.Skip(err)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	const image = "bcsnet.test/bcsnet-controller:before"
	archive := filepath.Join(s.t.TempDir(), "before.tar")
	s.tool("go", "run", "./hack/image", "-program", old.Controller, "-name", image, "-o", archive)
	s.importArchive(archive)

	s.bcsnetctl("uninstall", "--crds", "--delete-leases", "--yes")
	s.kubectl("wait", "--for=delete", "namespace/"+controlplane.SystemNamespace, "--timeout=2m")
	server, err := url.Parse(s.Cluster.Config.Host)
	if err != nil {
		s.t.Fatal(err)
	}
	// With the image, and where the API server is: the bed has no proxy for Services.
	const ip = "        - name: BCSNET_POD_IP\n"
	objects := strings.NewReplacer("image: bcsnet-controller:latest", "image: "+image, ip, fmt.Sprintf(
		"        - {name: KUBERNETES_SERVICE_HOST, value: %q}\n        - {name: KUBERNETES_SERVICE_PORT, value: %q}\n",
		server.Hostname(), server.Port())+ip,
	).Replace(s.kubectl("kustomize", filepath.Join(old.Root, "config", "default")))
	if out, err := s.Kubectl(s.t.Context(), []byte(objects), "apply", "--server-side", "-f", "-"); err != nil {
		s.t.Fatalf("%v: %s", err, out)
	}
	s.rolledOut("deployment/bcsnet-controller")
	s.bcsnetctl(s.threeCommands()[1][1:]...)
}

// plain returns the URL of the replica on a node, by plain HTTP.
func plain(n *bed.Node) string {
	return "http://" + netip.AddrPortFrom(n.Address4.Addr(), bed.AllocatorPort).String()
}

// writeReleased gives a node the conflist of the released system, by rename.
func (s *site) writeReleased(n *bed.Node) {
	s.t.Helper()
	var replicas []string
	for _, other := range s.Nodes() {
		replicas = append(replicas, plain(other))
	}
	text := fmt.Appendf(nil, `{"cniVersion": "1.1.0", "name": "underlay", "plugins": [{"type": "bridge", "bridge": "br0", "ipam": {
		"type": "bcsnet-ipam", "host": %q, "netserviceEndpoint": %q, "routes": [{"dst": "0.0.0.0/0"}]}}]}`,
		n.Address4.Addr(), strings.Join(replicas, ","))
	path := filepath.Join(n.EtcCNI(), "net.d", released)
	err := errors.Join(os.WriteFile(path+".new", text, 0o600), os.Rename(path+".new", path))
	if err != nil {
		s.t.Fatal(err)
	}
}

// traffic are pods that come and go on each node, one after the other.
type traffic struct {
	s         *site
	client    client.Client
	namespace string
	stop      context.CancelFunc
	nodes     sync.WaitGroup

	mu    sync.Mutex
	ready map[string]int // by node
	errs  []error
}

func (s *site) startTraffic() *traffic {
	s.t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "traffic-"}}
	c := s.Cluster.AdminFor(s.t)
	if err := c.Create(s.t.Context(), namespace); err != nil {
		s.t.Fatal(err)
	}
	controlplane.Eventually(s.t, func() error { // pods need it
		return c.Get(s.t.Context(), types.NamespacedName{Namespace: namespace.Name, Name: "default"}, &corev1.ServiceAccount{})
	})
	ctx, stop := context.WithCancel(s.t.Context())
	t := &traffic{s: s, client: c, namespace: namespace.Name, stop: stop, ready: map[string]int{}}
	s.t.Cleanup(func() {
		stop()
		t.nodes.Wait()
	})
	for _, n := range s.Nodes() {
		t.nodes.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				err := t.comeAndGo(context.WithoutCancel(ctx), fmt.Sprintf("%s-%d", n.Name, i), n.Name)
				t.mu.Lock()
				t.ready[n.Name]++
				if err != nil {
					t.errs = append(t.errs, err)
					stop()
				}
				t.mu.Unlock()
			}
		})
	}
	return t
}

// comeAndGo starts a pod, waits until it is ready, and has it end.
func (t *traffic) comeAndGo(ctx context.Context, name, node string) error {
	pod := bed.Pod(t.namespace, name, node)
	if err := t.client.Create(ctx, pod); err != nil {
		return err
	}
	if err := controlplane.WaitFor(ctx, patience, func() error {
		if err := t.client.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
			return err
		}
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("the pod %s is not ready: %+v", name, pod.Status)
	}); err != nil {
		return err
	}
	return t.client.Delete(ctx, pod)
}

// atLeast waits until so many pods more have become ready on each node.
func (t *traffic) atLeast(n int) {
	t.s.t.Helper()
	before := t.counts()
	controlplane.EventuallyWithin(t.s.t, 2*patience, func() error {
		t.mu.Lock()
		defer t.mu.Unlock()
		for _, node := range t.s.Nodes() {
			if more := t.ready[node.Name] - before[node.Name]; more < n && len(t.errs) == 0 {
				return fmt.Errorf("%d pods more became ready on %s, want %d", more, node.Name, n)
			}
		}
		return nil
	})
}

func (t *traffic) counts() map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.ready)
}

// end ends the traffic, checks that no ADD failed and no address is left, and returns how many pods there were.
func (t *traffic) end() (pods int) {
	t.s.t.Helper()
	t.stop()
	t.nodes.Wait()
	if err := errors.Join(t.errs...); err != nil {
		t.s.t.Errorf("%v\n%s", err, t.s.describe())
	}
	for _, n := range t.counts() {
		pods += n
	}
	events := &corev1.EventList{}
	if err := t.client.List(t.s.t.Context(), events, client.InNamespace(t.namespace)); err != nil {
		t.s.t.Fatal(err)
	}
	for i := range events.Items {
		if e := &events.Items[i]; e.Reason == "FailedCreatePodSandBox" {
			t.s.t.Errorf("%s: %s", e.InvolvedObject.Name, e.Message)
		}
	}
	adds := 0
	for _, n := range t.s.Nodes() {
		r, err := n.Run(t.s.t.Context(), bed.Call{Args: []string{"cat", "/run/bcsnet/calls.log"}})
		if err != nil || r.Code != 0 {
			t.s.t.Fatalf("%v, %s", err, r.Errors)
		}
		for line := range strings.Lines(string(r.Output)) {
			var c runstate.Call
			if err := json.Unmarshal([]byte(line), &c); err != nil {
				t.s.t.Fatal(err)
			}
			if !strings.HasPrefix(c.Pod, t.namespace+"/") || c.Command != "ADD" {
				continue
			}
			adds++
			if c.Outcome != runstate.OK {
				t.s.t.Errorf("on %s: %+v", n.Name, c)
			}
		}
	}
	if adds != pods {
		t.s.t.Errorf("%d ADDs of %d pods", adds, pods)
	}
	return pods
}
