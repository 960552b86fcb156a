package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// SystemNamespace is where the controller lives in a cluster.
const SystemNamespace = "bcsnet-system"

// InstallCRDs creates or updates the CRDs in a directory or file and returns when the API server
// serves them.
func (cp *ControlPlane) InstallCRDs(ctx context.Context, path string) error {
	_, err := envtest.InstallCRDs(cp.Config, envtest.CRDInstallOptions{
		Paths:              []string{path},
		ErrorIfPathMissing: true,
		MaxTime:            startTimeout,
		PollInterval:       pollInterval,
		Scheme:             runtime.NewScheme(), // none of our types has a conversion webhook
	})
	if err != nil {
		return fmt.Errorf("install the CRDs of %s: %w", path, err)
	}
	return context.Cause(ctx)
}

// InstallManifests installs what the module's config directory has for the controller, but
// not the controller's own Deployment: CRDs, its namespace, RBAC and policies.
func (cp *ControlPlane) InstallManifests(ctx context.Context) error {
	root, err := ModuleRoot()
	if err != nil {
		return err
	}
	if err := cp.InstallCRDs(ctx, filepath.Join(root, "config", "crd")); err != nil {
		return err
	}
	if err := cp.ensureNamespace(ctx, SystemNamespace); err != nil {
		return err
	}
	rbac := filepath.Join(root, "config", "rbac")
	if _, err := os.Stat(rbac); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	out, err := cp.Kubectl(ctx, "apply", "--server-side", "--kustomize", rbac).CombinedOutput()
	if err != nil {
		return fmt.Errorf("apply %s: %w: %s", rbac, err, out)
	}
	return nil
}

// Kubectl prepares a call of kubectl as the administrator.
func (cp *ControlPlane) Kubectl(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(cp.assets, kubectlBinary), args...)
	cmd.Env = append(os.Environ(),
		"KUBECONFIG="+cp.adminKubeconfig(),
		"KUBECACHEDIR="+filepath.Join(cp.Dir, "kubectl-cache"),
	)
	return cmd
}
