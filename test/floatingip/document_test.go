package floatingip_test

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
)

// TestDocument applies the ConfigMap of galaxy's document, with its indentation mended, and its Deployment as it
// stands: the three pods get three addresses of the range, on whichever hosts of the node subnet they are.
func TestDocument(t *testing.T) {
	prepare(t)
	for i, name := range []string{"node-a", "node-b"} {
		newNode(t, name, fmt.Sprintf("10.0.0.%d", 11+i))
	}
	newNode(t, "node-c", "10.1.0.13") // outside the node subnet, and without the resource
	for _, name := range []string{"node-a", "node-b"} {
		kubectl(t, "wait", "--for=condition=Ready", "node/"+name, "--timeout=60s")
	}
	kubectl(t, "apply", "-f", "testdata/floatingip-config.yaml")
	const pool = "floatingip-10.0.70.0-24"
	want := is("10.0.70.1 vlan 2, 10.0.70.2~10.0.70.241, for 10.0.0.0/16")
	pools(t, map[string]func(*v1.BCSNetPool) error{pool: func(o *v1.BCSNetPool) error {
		switch ready := o.Status.Conditions; {
		case want(o) != nil:
			return want(o)
		case o.Labels[v1.SourceLabel] != "floatingip-config" ||
			o.Annotations[v1.FloatingIPConfigAnnotation] != "kube-system/floatingip-config":
			return fmt.Errorf("pool %s does not say where it comes from: %v, %v", o.Name, o.Labels, o.Annotations)
		case len(ready) == 0 || ready[0].Message != "240 addresses for 2 hosts, with the nodes in 10.0.0.0/16" ||
			o.Status.Hosts != 2:
			return fmt.Errorf("%d hosts; conditions %+v", o.Status.Hosts, ready)
		}
		return nil
	}})
	told(t, v1.ReasonFloatingIPConfigApplied, "created "+pool)

	kubectl(t, "apply", "-f", "testdata/nginx-deployment.yaml")
	kubectl(t, "rollout", "status", "deployment/nginx-deployment", "--timeout=60s")
	var pods corev1.PodList
	if err := admin.List(t.Context(), &pods, client.InNamespace("default"),
		client.MatchingLabels{"app": "nginx"}); err != nil {
		t.Fatal(err)
	}
	if len(pods.Items) != 3 {
		t.Fatalf("%d pods, want 3", len(pods.Items))
	}
	from, to := netip.MustParseAddr("10.0.70.2"), netip.MustParseAddr("10.0.70.241")
	seen := map[netip.Addr]string{}
	for _, p := range pods.Items {
		a := ask(t, http.MethodPost, p.Status.HostIP, p.Name)
		got, err := netip.ParseAddr(a.Address.IPAddr)
		if a.Code != 0 || err != nil || got.Less(from) || to.Less(got) || seen[got] != "" {
			t.Fatalf("pod %s on %s: %+v, %v; others have %v", p.Name, p.Status.HostIP, a, err, seen)
		}
		seen[got] = p.Name
		if a.Address.VLAN != 2 || a.Address.Gateway != "10.0.70.1" || fmt.Sprint(a.Address.Mask) != "24" ||
			a.Address.Pool != pool {
			t.Errorf("pod %s: VLAN %d, gateway %s, mask %v, pool %s", p.Name, a.Address.VLAN, a.Address.Gateway, a.Address.Mask,
				a.Address.Pool)
		}
		if again := ask(t, http.MethodPost, p.Status.HostIP, p.Name); again.Address.IPAddr != a.Address.IPAddr {
			t.Errorf("pod %s got %s, then %s", p.Name, a.Address.IPAddr, again.Address.IPAddr)
		}
	}
	newPod(t, "elsewhere")
	if a := ask(t, http.MethodPost, "10.1.0.13", "elsewhere"); a.Reason != "HostNotInPool" ||
		!strings.HasPrefix(a.Message, "host 10.1.0.13 does not exist in pools") {
		t.Errorf("a host outside the node subnet: %+v", a)
	}
	newNode(t, "node-d", "10.0.200.14") // joins later
	if a := ask(t, http.MethodPost, "10.0.200.14", "elsewhere"); a.Code != 0 {
		t.Errorf("a host that joined: %+v", a)
	}
	for _, p := range pods.Items {
		ask(t, http.MethodDelete, p.Status.HostIP, p.Name)
	}
	ask(t, http.MethodDelete, "10.0.200.14", "elsewhere")
	kubectl(t, "delete", "deployment/nginx-deployment", "--timeout=60s")
	// Its policy is never: the addresses stay with the app until somebody gives them up.
	kubectl(t, "wait", "--for=create", "bnc/deploy-nginx-deployment", "--timeout=60s") // a moment after the first ADD
	kubectl(t, "wait", "--for=jsonpath={.status.usage}=0/3", "bnc/deploy-nginx-deployment", "--timeout=60s")
	kubectl(t, "delete", "bnc/deploy-nginx-deployment", "--timeout=60s")
	document(t, "[]")
	pools(t, nil)
}

func newNode(t *testing.T, name, ip string) {
	t.Helper()
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
			Labels: map[string]string{corev1.LabelHostname: name},
		},
		Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: ip}}},
	}
	if err := admin.Create(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := admin.Delete(context.Background(), n); err != nil {
			t.Error(err)
		}
	})
}

func kubectl(t *testing.T, args ...string) {
	t.Helper()
	if out, err := cluster.Kubectl(t.Context(), args...).CombinedOutput(); err != nil {
		t.Fatalf("kubectl %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// The files are those of the document: what is mended is the indentation of one line.
func TestFilesAreTheDocuments(t *testing.T) {
	for file, line := range map[string]string{
		"testdata/floatingip-config.yaml": `  floatingips: '[{"routableSubnet":"10.0.0.0/16","ips":["10.0.70.2~10.0.70.241"],"subnet":"10.0.70.0/24","gateway":"10.0.70.1","vlan":2}]'`,
		"testdata/nginx-deployment.yaml":  "        k8s.v1.cni.galaxy.io/release-policy: never",
	} {
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(text), "\n"+line+"\n") {
			t.Errorf("%s lacks %q: %v", file, line, err)
		}
	}
}
