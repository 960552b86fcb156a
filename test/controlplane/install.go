package controlplane

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	yamlutil "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"
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

// InstallManifests installs what users install, config/crd and config/default of this module,
// except for the controller's own Deployment: StartController runs it as a process.
func (cp *ControlPlane) InstallManifests(ctx context.Context) error {
	root, err := ModuleRoot()
	if err != nil {
		return err
	}
	if err := cp.InstallCRDs(ctx, filepath.Join(root, "config", "crd")); err != nil {
		return err
	}
	return cp.InstallRights(ctx)
}

// InstallRights installs what config/default has beside the CRDs and the controller's Deployment: its namespace, roles
// and ServiceAccount.
func (cp *ControlPlane) InstallRights(ctx context.Context) error {
	root, err := ModuleRoot()
	if err != nil {
		return err
	}
	if err := cp.ensureNamespace(ctx, SystemNamespace); err != nil {
		return err
	}
	render := cp.Kubectl(ctx, "kustomize", filepath.Join(root, "config", "default"))
	var stderr bytes.Buffer
	render.Stderr = &stderr
	manifests, err := render.Output()
	if err != nil {
		return fmt.Errorf("render config/default: %w: %s", err, stderr.Bytes())
	}
	if manifests, err = without(manifests, "CustomResourceDefinition", "Deployment"); err != nil {
		return fmt.Errorf("read config/default: %w", err)
	}
	apply := cp.Kubectl(ctx, "apply", "--server-side", "--filename", "-")
	apply.Stdin = bytes.NewReader(manifests)
	if out, err := apply.CombinedOutput(); err != nil {
		return fmt.Errorf("apply config/default: %w: %s", err, out)
	}
	return nil
}

// without drops the YAML documents of some kinds.
func without(documents []byte, kinds ...string) ([]byte, error) {
	var kept bytes.Buffer
	for reader := yamlutil.NewYAMLReader(bufio.NewReader(bytes.NewReader(documents))); ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return kept.Bytes(), nil
		}
		if err != nil {
			return nil, err
		}
		var object metav1.TypeMeta
		if err := yaml.Unmarshal(document, &object); err != nil {
			return nil, err
		}
		if !slices.Contains(kinds, object.Kind) {
			kept.WriteString("---\n")
			kept.Write(document)
		}
	}
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
