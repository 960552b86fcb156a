//go:build linux

package bed

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

const (
	// authorityName is that of the Secret and of the ConfigMap with the CA of the allocator.
	authorityName = "bcsnet-controller-ca"
	// ServerName is the name in the certificates of replicas.
	ServerName = "bcsnet-controller.bcsnet-system.svc"
	// account is the ServiceAccount of config/node.
	account = "bcsnet-node"
	// audience is that of the tokens which the allocator takes.
	audience = "bcsnet"
	// tokenLife is longer than any test.
	tokenLife = 4 * time.Hour
)

// Access is how the plugins of a node reach the allocator.
type Access struct {
	// Replicas are the URLs of the replicas.
	Replicas []string
	// CA has the certificates that sign those of replicas, in PEM, and Token is what the plugins show.
	CA, Token string
}

// ApplyRights gives the ServiceAccount of config/node its rights, without the DaemonSet.
func (b *Bed) ApplyRights(ctx context.Context) error {
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return err
	}
	dir := filepath.Join(root, "config", "node")
	_, err = b.Kubectl(ctx, nil, "apply", "--server-side", "--filename", filepath.Join(dir, "service_account.yaml"),
		"--filename", filepath.Join(dir, "role_binding.yaml"))
	return err
}

// CA returns the certificates that the controller publishes.
func (b *Bed) CA(ctx context.Context) (text string, err error) {
	err = controlplane.WaitFor(ctx, time.Minute, func() error {
		published := &corev1.ConfigMap{}
		if err := b.authority(ctx, published); err != nil {
			return err
		}
		if text = published.Data["ca.crt"]; text == "" {
			return errors.New("no CA is published")
		}
		return nil
	})
	return text, err
}

// authority reads the Secret or the ConfigMap of the CA.
func (b *Bed) authority(ctx context.Context, o client.Object) error {
	admin, err := b.Cluster.Admin()
	if err != nil {
		return err
	}
	return admin.Get(ctx, types.NamespacedName{Namespace: controlplane.SystemNamespace, Name: authorityName}, o)
}

// Authority returns the CA with its key, for a test that stands between plugins and controller.
func (b *Bed) Authority(ctx context.Context) (ca tls.Certificate, err error) {
	secret := &corev1.Secret{}
	if err := b.authority(ctx, secret); err != nil {
		return ca, err
	}
	if ca, err = tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey]); err != nil {
		return ca, err
	}
	ca.Leaf, err = x509.ParseCertificate(ca.Certificate[0])
	return ca, err
}

// Token returns a token of the ServiceAccount of config/node. It is bound to the Node, as one of the DaemonSet is bound
// to a pod there: the allocator knows by both which node it is. An empty name is a token of no node.
func (b *Bed) Token(ctx context.Context, node string) (string, error) {
	admin, err := b.Cluster.Admin()
	if err != nil {
		return "", err
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences: []string{audience}, ExpirationSeconds: new(int64(tokenLife.Seconds())),
	}}
	if node != "" {
		// The kubelet takes the object over when it begins.
		object := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
		if err := admin.Create(ctx, object); client.IgnoreAlreadyExists(err) != nil {
			return "", err
		}
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{Kind: "Node", APIVersion: "v1", Name: node}
	}
	of := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: controlplane.SystemNamespace, Name: account}}
	if err := admin.SubResource("token").Create(ctx, of, request); err != nil {
		return "", fmt.Errorf("make a token for the node %q: %w", node, err)
	}
	return request.Status.Token, nil
}

// Access returns how a node reaches replicas over https.
func (n *Node) Access(ctx context.Context, replicas ...string) (Access, error) {
	ca, err := n.bed.CA(ctx)
	if err != nil {
		return Access{}, err
	}
	token, err := n.bed.Token(ctx, n.Name)
	return Access{Replicas: replicas, CA: ca, Token: token}, err
}
