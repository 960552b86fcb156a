// Package controlplane runs a real Kubernetes control plane on this machine: etcd and kube-apiserver, and on demand
// kube-controller-manager, kube-scheduler, kwok and our controller. Tests, `make up`, the demo and the benchmarks share
// it.
//
// To clients it looks like any cluster: it has TLS, RBAC, one identity per component, and fsync is on. It listens on
// loopback only, unless WithAddress is given. Its processes die with the process that started them, however that
// process ends.
package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// ControlPlane is a running control plane. Its methods may be called from several goroutines.
type ControlPlane struct {
	// Config is the administrator's identity: system:masters, without a client-side rate limit. Authorization and API
	// fairness do not apply to it. Use ServiceAccountConfig for measurements.
	Config *rest.Config
	// Dir contains all files except logs: etcd's data, keys and kubeconfigs.
	Dir string
	// LogDir contains one file per component, <name>.log. A restart appends to it.
	LogDir string

	assets     string
	pki        *pki
	http       *http.Client // trusts the cluster's CA, as the administrator
	clients    kubernetes.Interface
	disposable bool // Dir is ours to remove

	etcd, apiserver, controllerManager, scheduler, kwok *process

	mu          sync.Mutex
	controllers []*Controller
	stopped     bool
}

// Start starts a control plane. It returns when the API server is ready, the default namespace exists, and every
// optional component is ready. ctx bounds only the start. The caller must call Stop.
func Start(ctx context.Context, opts ...Option) (*ControlPlane, error) {
	o := options{address: loopback, args: map[string][]string{}}
	for _, opt := range opts {
		opt(&o)
	}
	cp, err := prepare(o)
	if err == nil {
		err = cp.start(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("start the control plane: %w", errors.Join(err, cp.Stop()))
	}
	return cp, nil
}

// prepare prepares files and commands without running them. The returned control plane is never nil.
func prepare(o options) (_ *ControlPlane, err error) {
	cp := &ControlPlane{}
	if cp.assets, err = findAssets(o.binaries()...); err != nil {
		return cp, err
	}
	if cp.Dir = o.dataDir; cp.Dir == "" {
		cp.disposable = true
		if cp.Dir, err = os.MkdirTemp("", "controlplane-"); err != nil {
			return cp, err
		}
	}
	// Components run in directories of their own, so their paths must be absolute.
	if cp.Dir, err = filepath.Abs(cp.Dir); err != nil {
		return cp, err
	}
	if cp.LogDir = o.logDir; cp.LogDir == "" {
		cp.LogDir = filepath.Join(cp.Dir, "logs")
	}
	if cp.LogDir, err = filepath.Abs(cp.LogDir); err != nil {
		return cp, err
	}
	if err := os.MkdirAll(cp.LogDir, 0o755); err != nil {
		return cp, err
	}
	if cp.pki, err = newPKI(filepath.Join(cp.Dir, "pki"), o.address); err != nil {
		return cp, err
	}
	return cp, cp.layout(o)
}

func (cp *ControlPlane) start(ctx context.Context) error {
	if err := cp.etcd.start(ctx); err != nil {
		return err
	}
	if err := cp.apiserver.start(ctx); err != nil {
		return err
	}
	if err := cp.waitForNamespace(ctx, "default"); err != nil {
		return err
	}
	return inParallel(ctx, cp.controllerManager, cp.scheduler, cp.kwok)
}

// Stop stops every process, waits for their end, and removes what Start created in the temporary directory. It reports
// components that had already ended by themselves. Further calls do nothing.
func (cp *ControlPlane) Stop() error {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	if cp.stopped {
		return nil
	}
	cp.stopped = true

	var errs []error
	for _, c := range cp.controllers {
		errs = append(errs, c.Stop())
	}
	end := (*process).stop
	if cp.disposable {
		end = (*process).kill // nobody needs what an orderly end would write
	}
	// Clients stop before their servers, so that no component sees its server disappear.
	for _, tier := range [][]*process{{cp.kwok, cp.scheduler, cp.controllerManager}, {cp.apiserver}, {cp.etcd}} {
		var wg sync.WaitGroup
		results := make([]error, len(tier))
		for i, p := range tier {
			if p != nil {
				wg.Go(func() { results[i] = end(p) })
			}
		}
		wg.Wait()
		errs = append(errs, results...)
	}
	if cp.http != nil {
		cp.http.CloseIdleConnections()
	}
	if cp.disposable {
		errs = append(errs, os.RemoveAll(cp.Dir))
	}
	return errors.Join(errs...)
}

// inParallel starts processes concurrently. It skips nil ones.
func inParallel(ctx context.Context, processes ...*process) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, p := range processes {
		if p != nil {
			g.Go(func() error { return p.start(ctx) })
		}
	}
	return g.Wait()
}
