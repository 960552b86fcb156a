package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

// account is the ServiceAccount of the plugins, as config/node has it.
const account = "bcsnet-node"

// credentials writes what the plugin reaches the controller by over TLS: the CA that the controller publishes, and a
// token with the rights of plugins that is bound to the first node.
func (b *bench) credentials(ctx context.Context, dir string) error {
	of := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: controlplane.SystemNamespace, Name: account}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: account},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: account},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: of.Namespace, Name: of.Name}},
	}
	for _, o := range []client.Object{of, binding} {
		if err := b.admin.Create(ctx, o); client.IgnoreAlreadyExists(err) != nil {
			return err
		}
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences:      []string{"bcsnet"},
		BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Node", APIVersion: "v1", Name: nodeName(0)},
	}}
	if err := b.admin.SubResource("token").Create(ctx, of, request); err != nil {
		return fmt.Errorf("make a token: %w", err)
	}
	published := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: of.Namespace, Name: "bcsnet-controller-ca"}
	err := controlplane.WaitFor(ctx, time.Minute, func() error { return b.admin.Get(ctx, key, published) })
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "ca.crt"), []byte(published.Data["ca.crt"]), 0o600),
		os.WriteFile(filepath.Join(dir, "token"), []byte(request.Status.Token), 0o600))
}

// overTLS returns the controller's URL with https.
func (b *bench) overTLS() string { return strings.Replace(b.controller.URL, "http://", "https://", 1) }
