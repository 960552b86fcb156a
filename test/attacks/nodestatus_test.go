package attacks_test

import (
	"path/filepath"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

// nodeStatus are attacks by the right to patch the status of Nodes.
func nodeStatus() []attack { return []attack{{"status_of_Nodes", statusOfNodes}} }

// statusOfNodes has the token of the pod that keeps the attacker's node: it may patch the status of Nodes, by which the
// controller knows who asks for which host.
func statusOfNodes(t *testing.T, w *world) {
	root, err := controlplane.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"service_account.yaml", "role.yaml", "role_binding.yaml"} {
		path := filepath.Join(root, "config", "node", file)
		if out, err := shared.cluster.Kubectl(t.Context(), "apply", "--server-side", "-f", path).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	const account = "bcsnet-node"
	w.pod(t, controlplane.SystemNamespace, "keeper", nodeMine, account)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: "keeper"},
	}}
	o := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: controlplane.SystemNamespace, Name: account}}
	if err := shared.admin.SubResource("token").Create(t.Context(), o, request); err != nil {
		t.Fatal(err)
	}
	cfg := rest.AnonymousClientConfig(shared.cluster.Config)
	cfg.BearerToken = request.Status.Token
	keeper, err := client.New(cfg, client.Options{Scheme: shared.admin.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	patch := func(node, text string) error {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
		return keeper.SubResource("status").Patch(t.Context(), n, client.RawPatch(types.StrategicMergePatchType, []byte(text)))
	}
	const ready = `{"status":{"conditions":[{"type":"BcsnetReady","status":"True"}]}}`
	controlplane.Eventually(t, func() error { return patch(nodeMine, ready) }) // the API server may not have read the role yet
	for what, of := range map[string]struct{ node, text string }{
		"the condition of another Node": {nodeTheirs, ready},
		"another Node's addresses":      {nodeTheirs, `{"status":{"addresses":[{"type":"InternalIP","address":"10.77.0.99"}]}}`},
		"their address as its own":      {nodeMine, `{"status":{"addresses":[{"type":"ExternalIP","address":"` + theirs + `"}]}}`},
		"their address by annotation": {
			nodeMine, `{"metadata":{"annotations":{"networkextension.bkbcs.tencent.com/host-addresses":"10.77.0.99"}}}`,
		},
		"whether a Node is ready": {nodeTheirs, `{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`},
		"numbers":                 {nodeMine, `{"status":{"capacity":{"cpu":"1000"},"allocatable":{"cpu":"1000"}}}`},
	} {
		if err := patch(of.node, of.text); !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
