package controller

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/bcsnet/bcsnet/pkg/access"
	"github.com/bcsnet/bcsnet/pkg/doctor"
	"github.com/bcsnet/bcsnet/pkg/httpapi"
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

// versionFresh is the time for which an answer of the API server is cached; versionTime bounds the wait for an answer.
const (
	versionFresh = time.Minute
	versionTime  = 2 * time.Second
)

// versions returns a function that returns the versions of the program and the API server. It reads the API server's
// version at most once a minute, however often it is called.
func versions(program string, cfg *rest.Config) func(context.Context) httpapi.Versions {
	var mu sync.Mutex
	var at time.Time
	v := httpapi.Versions{Version: program, Go: runtime.Version()}
	return func(ctx context.Context) httpapi.Versions {
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); at.IsZero() || now.Sub(at) >= versionFresh {
			v.Kubernetes, at = apiServerVersion(ctx, cfg), now
		}
		return v
	}
}

// apiServerVersion returns the version of the API server; empty if it does not answer.
func apiServerVersion(ctx context.Context, cfg *rest.Config) string {
	c, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, versionTime)
	defer cancel()
	body, err := c.RESTClient().Get().AbsPath("/version").Do(ctx).Raw()
	var info apiversion.Info
	if err != nil || json.Unmarshal(body, &info) != nil {
		return ""
	}
	return info.GitVersion
}
