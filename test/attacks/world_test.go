package attacks_test

import (
	"crypto/x509"
	"errors"
	"fmt"
	"testing"

	"github.com/google/uuid"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/access"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

const (
	serverName = "bcsnet-controller." + controlplane.SystemNamespace + ".svc"
	// shop is the namespace of the victim, and tenant that of an attacker who manages it.
	shop, tenant = "shop", "tenant"
	// mine is the host of the attacker's node, and theirs that of the victim's.
	mine, theirs = "10.77.0.11", "10.77.0.12"
	nodeMine     = "node-mine"
	nodeTheirs   = "node-theirs"
)

// world is the cluster that is attacked: two nodes with the plugin on each, people with roles, and an address that a
// pod of the other node has.
type world struct {
	// pool and bundle are the CA that is published.
	pool   *x509.CertPool
	bundle []byte
	// node is the token of the attacker's node, and so on for the others.
	node, theirNode, operator, operatorOnNode, viewer, nobody, tenant string
	// victim is the request by which the other node's pod got address.
	victim  object
	address string
	// owner is the request by which an owner got ownerAddress.
	owner        object
	ownerAddress string
	// replicaID is what the other replica is known by.
	replicaID string
}

// newWorld makes it. That the victim's ADD is answered shows that what is refused later is refused for its caller.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{pool: x509.NewCertPool()}
	for _, name := range []string{shop, tenant} {
		w.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	pool := &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: "shop"}, Spec: v1.BCSNetPoolSpec{
		Net: "10.78.0.0", Mask: 24, Gateway: "10.78.0.1", Hosts: []string{mine, theirs, "127.0.0.7", another, ledFrom, "10.77.0.14"},
		AvailableIPs: []string{"10.78.0.20-10.78.0.89"},
	}}
	w.create(t, pool)
	w.makeNode(t, nodeMine, mine)
	w.makeNode(t, nodeTheirs, theirs)
	for name, role := range map[string]string{
		"plugin": "bcsnet-node", "operator": "bcsnet-operator", "viewer": "bcsnet-viewer", "nobody": "",
	} {
		w.account(t, name, role, "")
	}
	w.account(t, "tenant", "bcsnet-operator", tenant)
	w.pod(t, shop, "plugin-mine", nodeMine, "plugin")
	w.pod(t, shop, "plugin-theirs", nodeTheirs, "plugin")
	w.pod(t, shop, "operator-mine", nodeMine, "operator")
	w.pod(t, shop, "web-mine", nodeMine, "")
	w.pod(t, shop, "web-theirs", nodeTheirs, "")
	w.pod(t, tenant, "web-tenant", nodeTheirs, "")
	w.node, w.theirNode = w.token(t, "plugin", "plugin-mine"), w.token(t, "plugin", "plugin-theirs")
	w.operator, w.operatorOnNode = w.token(t, "operator", ""), w.token(t, "operator", "operator-mine")
	w.viewer, w.nobody, w.tenant = w.token(t, "viewer", ""), w.token(t, "nobody", ""), w.token(t, "tenant", "")
	w.knowCA(t)
	w.victim = w.add("web-theirs", theirs)
	w.address = w.eventuallyAdd(t, w.theirNode, w.victim, "")
	w.owner = object{"host": theirs, "owner": "vm-9"}
	w.ownerAddress = w.eventuallyAdd(t, w.operator, w.owner, "")
	w.replicaID = w.send(t, ask{to: shared.strict, method: "GET", path: "/readyz"}).header.Get("Bcsnet-Answered-By")
	w.seen(t)
	return w
}

// knowCA reads the CA that is published.
func (w *world) knowCA(t *testing.T) {
	t.Helper()
	controlplane.Eventually(t, func() error {
		var o corev1.ConfigMap
		err := shared.admin.Get(t.Context(), client.ObjectKey{
			Namespace: controlplane.SystemNamespace, Name: "bcsnet-controller-ca",
		}, &o)
		if w.bundle = []byte(o.Data["ca.crt"]); err == nil && !w.pool.AppendCertsFromPEM(w.bundle) {
			err = errors.New("no certificate is published")
		}
		return err
	})
}

func (w *world) create(t *testing.T, o client.Object) {
	t.Helper()
	if err := shared.admin.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

func (w *world) makeNode(t *testing.T, name, host string) {
	t.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	w.create(t, n)
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: host}}
	n.ResourceVersion = "" // the controller may have written its capacity meanwhile
	if err := shared.admin.Status().Update(t.Context(), n); err != nil {
		t.Fatal(err)
	}
}

func (w *world) pod(t *testing.T, namespace, name, node, account string) *corev1.Pod {
	t.Helper()
	if account == "" {
		account = "default"
	}
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{
			NodeName: node, ServiceAccountName: account, Containers: []corev1.Container{{Name: "main", Image: "main"}},
		},
	}
	w.create(t, p)
	return p
}

// account makes a ServiceAccount with a role: in one namespace, or everywhere where that is empty.
func (w *world) account(t *testing.T, name, role, namespace string) {
	t.Helper()
	w.create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: name}})
	if role == "" {
		return
	}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: shop, Name: name}}
	meta := metav1.ObjectMeta{Name: "attacks-" + name, Namespace: namespace}
	if namespace == "" {
		w.create(t, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects})
		return
	}
	w.create(t, &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects})
}

// token returns a token of a ServiceAccount for our audience: bound to a pod, if one is named.
func (w *world) token(t *testing.T, account, pod string) string {
	t.Helper()
	return w.tokenFor(t, account, pod, access.Audience)
}

func (w *world) tokenFor(t *testing.T, account, pod, audience string) string {
	t.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{audience}}}
	if pod != "" {
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod}
	}
	o := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: account}}
	if err := shared.admin.SubResource("token").Create(t.Context(), o, request); err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

// add returns the body of a pod's ADD or DEL.
func (w *world) add(pod, host string) object {
	return object{"host": host, "containerID": uuid.NewString(), "podName": pod, "podNamespace": shop}
}

// calls returns a request for each route of the port that shows or changes something, as it would be answered to
// whoever may: of the victim's where it is about somebody.
func (w *world) calls() map[string]ask {
	ip := prefix + "/ip/" + w.address
	holder := object{"containerID": w.victim["containerID"], "ifName": "eth0"}
	return map[string]ask{
		"ADD":              {method: "POST", path: prefix, body: w.victim},
		"DEL":              {method: "DELETE", path: prefix, body: w.victim},
		"host release":     {method: "DELETE", path: prefix + "/host/" + theirs},
		"release":          {method: "DELETE", path: ip, body: holder},
		"conflict":         {method: "POST", path: ip + "/conflict", body: with(holder, "mac", "02:00:5e:10:00:01")},
		"GC":               {method: "POST", path: prefix + "/gc", body: gcOf(theirs)},
		"list":             {method: "GET", path: prefix},
		"container":        {method: "GET", path: prefix + "/container/" + fmt.Sprint(w.victim["containerID"])},
		"pod":              {method: "GET", path: prefix + "/pod/" + shop + "/web-theirs"},
		"host":             {method: "GET", path: prefix + "/host/" + theirs},
		"pool":             {method: "GET", path: prefix + "/pool/shop"},
		"address":          {method: "GET", path: ip},
		"galaxy's list":    {method: "GET", path: "/v1/ip"},
		"galaxy's release": {method: "POST", path: "/v1/ip", body: object{"ips": []object{{"ip": w.address}}}},
		"galaxy's pool":    {method: "GET", path: "/v1/pool/p"},
		"pool deletion":    {method: "DELETE", path: "/v1/pool/p"},
		"pool setting":     {method: "POST", path: "/v1/pool", body: object{"name": "p", "size": 1}},
		"filter":           {method: "POST", path: "/v1/filter", body: object{"Pod": object{}, "NodeNames": []string{}}},
		"priority":         {method: "POST", path: "/v1/priority", body: object{"Pod": object{}, "NodeNames": []string{}}},
	}
}

func gcOf(host string) object {
	return object{
		"host": host, "cniNetwork": "pods", "startedAt": "2026-01-02T03:04:05Z", "attachments": []any{},
	}
}
