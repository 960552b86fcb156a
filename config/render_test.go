package config_test

import (
	"flag"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bcsnet/bcsnet/test/generated"
)

//go:generate go test . -args -update

var update = flag.Bool("update", false, "write what is generated")

const header = "# Made from charts/bcsnet by make generate.\n"

// TestRendered holds the manifests against the chart, which is their source: each file here has what the chart's
// template of the same name comes to, with the values that it is for.
func TestRendered(t *testing.T) {
	values := map[string][]string{
		"crds":       nil,
		"rbac":       nil,
		"manager":    nil,
		"policies":   nil,
		"authors":    {"--api-versions", "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"},
		"floatingip": {"--set", "floatingipConfig=kube-system/floatingip-config"},
		"hostnic":    {"--set", "hostnicIPAMConfig=kube-system/hostnic-ipam-config"},
		"ipamclaims": {"--set", "ipamClaims=true"},
		"clusterapi": {"--set", "clusterAPI=true"},
		"services":   {"--set", "services.enabled=true"},
		"node":       {"--set", "node.enabled=true", "--set", "node.image.repository=bcsnet-node", "--set", "node.image.tag=latest"},
		"ui":         {"--set", "ui.enabled=true,ui.tlsSecretName=bcsnet-ui,ui.image.repository=bcsnetctl,ui.image.tag=latest"},
		"prometheus": {"--set", "prometheusRule.enabled=true"},
	}
	for folder, args := range values {
		t.Run(folder, func(t *testing.T) {
			files := rendered(t, folder, args)
			if len(files) == 0 {
				t.Fatal("the chart has no template for it")
			}
			for path, want := range files {
				generated.UpToDate(t, *update, path, "make generate", func(string) (string, error) { return want, nil })
			}
		})
	}
}

// rendered returns the files of one folder of templates, by their paths here. Definitions get a file each.
func rendered(t *testing.T, folder string, args []string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for document := range strings.SplitSeq(template(t, args...), "\n---\n") {
		document = strings.TrimPrefix(document, "---\n")
		source, text, ok := strings.Cut(strings.TrimPrefix(document, "# Source: bcsnet/templates/"), "\n")
		name := strings.TrimSuffix(source, ".yaml")
		if !ok || name != folder && filepath.Dir(name) != folder {
			continue
		}
		path := source
		if folder == "crds" {
			path = filepath.Join("crd", definition(t, text)+".yaml")
			text = strings.TrimPrefix(text, "---\n")
		}
		if have, again := files[path]; again {
			text = have + "---\n" + text
		} else {
			text = header + text
		}
		files[path] = strings.TrimRight(text, "\n") + "\n"
	}
	return files
}

// definition returns the name of the file of a definition, as controller-gen names it.
func definition(t *testing.T, text string) string {
	t.Helper()
	for line := range strings.Lines(text) {
		if name, ok := strings.CutPrefix(line, "  name: "); ok {
			plural, group, _ := strings.Cut(strings.TrimSpace(name), ".")
			return group + "_" + plural
		}
	}
	t.Fatal("a definition has no name")
	return ""
}

// template renders the chart, with an image that kustomize can put another one in place of.
func template(t *testing.T, args ...string) string {
	t.Helper()
	root := ".."
	helm := filepath.Join(root, "bin", "tools", "helm")
	all := append([]string{"template", "bcsnet", filepath.Join(root, "charts", "bcsnet"), "--namespace", "bcsnet-system",
		"--set", "image.repository=bcsnet-controller", "--set", "image.tag=latest"}, args...)
	out, err := exec.Command(helm, all...).Output()
	if err != nil {
		if exit, ok := err.(*exec.ExitError); ok { //nolint:errorlint // exec returns it as it is
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		t.Fatalf("%v; hint: make bin/tools/helm", err)
	}
	return string(out)
}
