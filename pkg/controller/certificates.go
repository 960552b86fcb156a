package controller

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"log/slog"

	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/bcsnet/bcsnet/pkg/access"
	"github.com/bcsnet/bcsnet/pkg/doctor"
	"github.com/bcsnet/bcsnet/pkg/serving"
)

// addCertificates adds the component that maintains the CA of the allocator's port and this replica's certificate, and
// the component that reads a mounted certificate again when it changes.
func addCertificates(
	mgr ctrl.Manager, cfg *rest.Config, c *core, replica string, o Options, log *slog.Logger,
) (*serving.Certificates, error) {
	client, err := corev1client.NewForConfigAndClient(cfg, mgr.GetHTTPClient())
	if err != nil {
		return nil, err
	}
	config := serving.Config{
		Core: client, Namespace: cmp.Or(o.LeaderElectionNamespace, doctor.ControllerNamespace), Replica: replica,
		Now:   c.leases.Now,
		Every: o.CertificatesEvery, Log: log,
	}
	if o.TLSCertFile != "" {
		mounted, err := certwatcher.New(o.TLSCertFile, o.TLSPrivateKeyFile)
		if err != nil {
			return nil, fmt.Errorf("--tls-cert-file: %w", err)
		}
		config.Mounted = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			return mounted.GetCertificate(hello)
		}
		if err := mgr.Add(mounted); err != nil {
			return nil, err
		}
	}
	certificates := serving.New(config)
	return certificates, mgr.Add(manager.RunnableFunc(certificates.Run))
}

// addGate adds the component that identifies callers and checks their permissions.
func addGate(mgr ctrl.Manager, cfg *rest.Config, c *core, log *slog.Logger) (*access.Gate, error) {
	client, err := kubernetes.NewForConfigAndClient(cfg, mgr.GetHTTPClient())
	if err != nil {
		return nil, err
	}
	gate := access.New(client, c.leases.Now, log)
	return gate, mgr.Add(manager.RunnableFunc(gate.Run))
}
