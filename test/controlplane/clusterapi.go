package controlplane

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// ClusterAPICRDs returns the CustomResourceDefinitions of Cluster API that an IPAM provider has to do with, from the
// module that hack/clusterapi names: IPAddressClaims, IPAddresses and Clusters.
func ClusterAPICRDs() (all []*unstructured.Unstructured, err error) {
	root, err := ModuleRoot()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("go", "mod", "download", "-json", "sigs.k8s.io/cluster-api")
	cmd.Dir = filepath.Join(root, "hack", "clusterapi")
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("finding the module of Cluster API: %w: %s", err, out)
	}
	var module struct {
		Dir string `json:"Dir"`
	}
	if err := json.Unmarshal(out, &module); err != nil {
		return nil, err
	}
	for _, name := range []string{
		"ipam.cluster.x-k8s.io_ipaddressclaims", "ipam.cluster.x-k8s.io_ipaddresses", "cluster.x-k8s.io_clusters",
	} {
		text, err := os.ReadFile(filepath.Join(module.Dir, "core", "config", "crd", "bases", name+".yaml"))
		if err != nil {
			return nil, err
		}
		crd := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(text, &crd.Object); err != nil {
			return nil, err
		}
		all = append(all, crd)
	}
	return all, nil
}
