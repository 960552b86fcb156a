package cni_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bcsnet/bcsnet/pkg/access"
	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// account is the ServiceAccount of the node side's pods, and its role.
const account = "bcsnet-node"

// setUpAccount gives the node side the rights that the manifests give it, and waits for the CA of the replicas.
func setUpAccount(ctx context.Context, admin client.Client) (ca string, err error) {
	of := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: controlplane.SystemNamespace, Name: account}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: account},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: account},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: of.Namespace, Name: of.Name}},
	}
	for _, o := range []client.Object{of, binding} {
		if err := admin.Create(ctx, o); client.IgnoreAlreadyExists(err) != nil {
			return "", err
		}
	}
	published := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: of.Namespace, Name: "bcsnet-controller-ca"}
	err = controlplane.WaitFor(ctx, time.Minute, func() error { return admin.Get(ctx, key, published) })
	return published.Data["ca.crt"], err
}

// identify makes the Node and the node side's pod, and returns the pod's token: it counts for the node's host alone.
func (n *node) identify() (token string) {
	n.Helper()
	name := fmt.Sprintf("cni-%d", n.ten)
	o := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: controlplane.SystemNamespace, Name: name},
		Spec: corev1.PodSpec{
			NodeName: name, ServiceAccountName: account, Containers: []corev1.Container{{Name: "c", Image: "c"}},
		},
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences:      []string{access.Audience},
		BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: name},
	}}
	if err := n.Admin.Create(n.Context(), o); err != nil {
		n.Fatal(err)
	}
	n.Cleanup(func() {
		_ = n.Admin.Delete(context.Background(), o)
		_ = n.Admin.Delete(context.Background(), pod, client.GracePeriodSeconds(0))
	})
	o.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: n.Host}}
	of := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: controlplane.SystemNamespace, Name: account}}
	for _, err := range []error{
		n.Admin.Status().Update(n.Context(), o), n.Admin.Create(n.Context(), pod),
		n.Admin.SubResource("token").Create(n.Context(), of, request),
	} {
		if err != nil {
			n.Fatal(err)
		}
	}
	token = request.Status.Token
	controlplane.Eventually(n.T, func() error { // the controller has seen the Node
		q, err := http.NewRequestWithContext(n.Context(), http.MethodGet, n.secureURL()+wire.Prefix+"/host/"+n.Host, nil)
		if err != nil {
			return err
		}
		q.Header.Set("Authorization", "Bearer "+token)
		resp, err := shared.caller.Do(q)
		if err != nil {
			return err
		}
		if err := resp.Body.Close(); resp.StatusCode != http.StatusOK || err != nil {
			return errors.Join(fmt.Errorf("HTTP %d", resp.StatusCode), err)
		}
		return nil
	})
	return token
}

// secureURL returns the controller's URL with https.
func (n *node) secureURL() string { return strings.Replace(n.URL, "http://", "https://", 1) }
