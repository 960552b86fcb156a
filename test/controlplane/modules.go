package controlplane

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// ClusterAPICRDs returns the CustomResourceDefinitions of Cluster API that an IPAM provider has to do with:
// IPAddressClaims, IPAddresses and Clusters.
func ClusterAPICRDs() (all []*unstructured.Unstructured, err error) {
	texts, err := moduleFiles("clusterapi", "sigs.k8s.io/cluster-api", "core/config/crd/bases/",
		"ipam.cluster.x-k8s.io_ipaddressclaims", "ipam.cluster.x-k8s.io_ipaddresses", "cluster.x-k8s.io_clusters")
	for _, text := range texts {
		crd := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &crd.Object); err != nil {
			return nil, err
		}
		all = append(all, crd)
	}
	return all, err
}

// WhereaboutsCRDs returns the CustomResourceDefinitions of Whereabouts as one manifest.
func WhereaboutsCRDs() (manifest string, err error) {
	texts, err := moduleFiles("whereabouts", "github.com/k8snetworkplumbingwg/whereabouts", "doc/crds/",
		"whereabouts.cni.cncf.io_ippools", "whereabouts.cni.cncf.io_overlappingrangeipreservations")
	return strings.Join(texts, "\n---\n"), err
}

// moduleFiles returns the texts of YAML files of a module, at the version that hack/NAME names.
func moduleFiles(name, path, dir string, files ...string) (texts []string, err error) {
	root, err := ModuleRoot()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("go", "mod", "download", "-json", path)
	cmd.Dir = filepath.Join(root, "hack", name)
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("finding the module %s: %w: %s", path, err, out)
	}
	var module struct {
		Dir string `json:"Dir"`
	}
	if err := json.Unmarshal(out, &module); err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(module.Dir, filepath.FromSlash(dir), file+".yaml"))
		if err != nil {
			return nil, err
		}
		texts = append(texts, string(text))
	}
	return texts, nil
}
