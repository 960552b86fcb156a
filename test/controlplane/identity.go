package controlplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// tokenSeconds is the lifetime of a ServiceAccount's token: longer than that of any control plane here.
const tokenSeconds = 365 * 24 * 3600

// WriteKubeconfig writes the administrator's kubeconfig. It contains all keys.
func (cp *ControlPlane) WriteKubeconfig(path string) error {
	return WriteKubeconfigFor(cp.Config, path)
}

// WriteKubeconfigFor writes a kubeconfig for cfg. It contains all keys; cfg must not name certificates, keys or tokens
// as files.
func WriteKubeconfigFor(cfg *rest.Config, path string) error {
	const name = "bcsnet-local"
	c := clientcmdapi.NewConfig()
	c.Clusters[name] = &clientcmdapi.Cluster{Server: cfg.Host, CertificateAuthorityData: cfg.CAData}
	c.AuthInfos[name] = &clientcmdapi.AuthInfo{
		ClientCertificateData: cfg.CertData,
		ClientKeyData:         cfg.KeyData,
		Token:                 cfg.BearerToken,
	}
	c.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	c.CurrentContext = name
	return clientcmd.WriteToFile(*c, path)
}

// ServiceAccountConfig returns the identity of a ServiceAccount. It creates the ServiceAccount and its namespace if
// they are missing, but grants no rights.
func (cp *ControlPlane) ServiceAccountConfig(ctx context.Context, namespace, name string) (*rest.Config, error) {
	if err := cp.ensureNamespace(ctx, namespace); err != nil {
		return nil, err
	}
	accounts := cp.clients.CoreV1().ServiceAccounts(namespace)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := accounts.Create(ctx, account, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("create the ServiceAccount %s/%s: %w", namespace, name, err)
	}
	seconds := int64(tokenSeconds)
	token, err := accounts.CreateToken(ctx, name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("get a token for the ServiceAccount %s/%s: %w", namespace, name, err)
	}
	cfg := rest.AnonymousClientConfig(cp.Config)
	cfg.BearerToken = token.Status.Token
	return cfg, nil
}

// NodeConfig returns the identity of a node's kubelet. The Node authorizer applies to it, and so does NodeRestriction
// if the API server was started with it.
func (cp *ControlPlane) NodeConfig(name string) (*rest.Config, error) {
	return cp.identity(cp.Config.Host, "system:node:"+name, "system:nodes")
}

// ClientCertificate returns a client certificate of the cluster's client CA that expires at end, which may be at most
// an hour ago.
func (cp *ControlPlane) ClientCertificate(end time.Time, user string, groups ...string) (tls.Certificate, error) {
	pair, err := cp.pki.clientUntil(end, user, groups...)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(pair.cert, pair.key)
}

const (
	// SchedulerUser is the user name of kube-scheduler.
	SchedulerUser = "system:kube-scheduler"
	// allocatorName is the allocator's name in its certificate.
	allocatorName = "bcsnet-controller." + SystemNamespace + ".svc"
)

// AllocatorCertificate writes a certificate of the cluster's CA for the allocator's port, and returns the files of the
// certificate and its key.
func (cp *ControlPlane) AllocatorCertificate() (certFile, keyFile string, err error) {
	template := certificate(pkix.Name{CommonName: "allocator"})
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	template.DNSNames = []string{allocatorName}
	pair, err := cp.pki.issue(template)
	const certName, keyName = "allocator.crt", "allocator.key"
	err = errors.Join(err, cp.pki.write(certName, pair.cert), cp.pki.write(keyName, pair.key))
	return cp.pki.path(certName), cp.pki.path(keyName), err
}

// ServingCertificate writes a certificate of the cluster's CA for a server on this machine into a directory, with a new
// key each time, and returns its files.
func (cp *ControlPlane) ServingCertificate(dir string) (certFile, keyFile string, err error) {
	pair, err := cp.pki.serving(loopback)
	certFile, keyFile = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	return certFile, keyFile, errors.Join(err, os.WriteFile(certFile, pair.cert, 0o600),
		os.WriteFile(keyFile, pair.key, 0o600))
}

func (cp *ControlPlane) ensureNamespace(ctx context.Context, name string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := cp.clients.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create the namespace %s: %w", name, err)
	}
	return nil
}

// identity returns a configuration with a client certificate and without a client-side rate limit.
func (cp *ControlPlane) identity(host, user string, groups ...string) (*rest.Config, error) {
	pair, err := cp.pki.client(user, groups...)
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host:  host,
		QPS:   -1,
		Burst: -1,
		TLSClientConfig: rest.TLSClientConfig{
			CAData:   cp.pki.caPEM,
			CertData: pair.cert,
			KeyData:  pair.key,
		},
	}, nil
}

// componentKubeconfig creates an identity for a component, and returns the path of its kubeconfig.
func (cp *ControlPlane) componentKubeconfig(component, user string) (string, error) {
	cfg, err := cp.identity(cp.Config.Host, user)
	if err != nil {
		return "", err
	}
	path := filepath.Join(cp.Dir, component+".kubeconfig")
	return path, WriteKubeconfigFor(cfg, path)
}

func (cp *ControlPlane) adminKubeconfig() string { return filepath.Join(cp.Dir, "admin.kubeconfig") }
