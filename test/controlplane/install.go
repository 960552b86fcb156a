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
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	yamlutil "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"
)

// SystemNamespace is the controller's namespace in a cluster.
const SystemNamespace = "bcsnet-system"

// InstallCRDs creates or updates the CRDs in a directory or file. It returns when the API server serves their objects
// and watches.
func (cp *ControlPlane) InstallCRDs(ctx context.Context, path string) error {
	crds, err := envtest.InstallCRDs(cp.Config, envtest.CRDInstallOptions{
		Paths:              []string{path},
		ErrorIfPathMissing: true,
		MaxTime:            startTimeout,
		PollInterval:       pollInterval,
		Scheme:             runtime.NewScheme(), // none of our types has a conversion webhook
	})
	if err != nil {
		return fmt.Errorf("install the CRDs of %s: %w", path, err)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for _, crd := range crds {
		for _, v := range crd.Spec.Versions {
			if !v.Served {
				continue
			}
			kind := schema.GroupVersionResource{Group: crd.Spec.Group, Version: v.Name, Resource: crd.Spec.Names.Plural}
			if err := cp.awaitWatch(ctx, kind); err != nil {
				return fmt.Errorf("install the CRDs of %s: %w", path, err)
			}
		}
	}
	return context.Cause(ctx)
}

// awaitWatch returns when the API server serves watches of a kind. For about a second after the creation of a CRD it
// rejects them with 429, because the cache for watches is not filled yet.
func (cp *ControlPlane) awaitWatch(ctx context.Context, kind schema.GroupVersionResource) error {
	c, err := dynamic.NewForConfig(cp.Config)
	if err != nil {
		return err
	}
	initial, one := true, int64(1)
	for {
		w, err := c.Resource(kind).Watch(ctx, metav1.ListOptions{
			SendInitialEvents: &initial, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
			AllowWatchBookmarks: true, TimeoutSeconds: &one,
		})
		if err == nil {
			w.Stop()
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("watch %s: %w", kind.GroupResource(), err)
		case <-time.After(pollInterval):
		}
	}
}

// InstallManifests installs config/crd and config/default of this module, as users do, except the controller's
// Deployment: StartController runs the controller as a process.
func (cp *ControlPlane) InstallManifests(ctx context.Context) error {
	root, err := ModuleRoot()
	if err != nil {
		return err
	}
	if err := cp.InstallCRDs(ctx, filepath.Join(root, "config", "crd")); err != nil {
		return err
	}
	return cp.InstallRightsOf(ctx, root)
}

// Prepare installs the manifests and the roles in further folders of config, and returns a client with all rights.
func (cp *ControlPlane) Prepare(ctx context.Context, roles ...string) (client.Client, error) {
	root, err := ModuleRoot()
	if err != nil {
		return nil, err
	}
	if err := cp.InstallManifests(ctx); err != nil {
		return nil, err
	}
	for _, folder := range roles {
		file := filepath.Join(root, "config", folder, "role.yaml")
		if out, err := cp.Kubectl(ctx, "apply", "-f", file).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%w: %s", err, out)
		}
	}
	return cp.Admin()
}

// InstallRights installs config/default without the CRDs and the controller's Deployment: namespace, roles and
// ServiceAccount.
func (cp *ControlPlane) InstallRights(ctx context.Context) error {
	root, err := ModuleRoot()
	if err != nil {
		return err
	}
	return cp.InstallRightsOf(ctx, root)
}

// InstallRightsOf does the same with the config/default of another release, whose sources are in root.
func (cp *ControlPlane) InstallRightsOf(ctx context.Context, root string) error {
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
	apply := cp.Kubectl(ctx, "apply", "--server-side", "--force-conflicts", "--filename", "-")
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

// Kubectl prepares a kubectl command as the administrator.
func (cp *ControlPlane) Kubectl(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(cp.assets, kubectlBinary), args...)
	cmd.Env = append(os.Environ(),
		"KUBECONFIG="+cp.adminKubeconfig(),
		"KUBECACHEDIR="+filepath.Join(cp.Dir, "kubectl-cache"),
	)
	return cmd
}
