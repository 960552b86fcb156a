// Package kind tests the files of make kind-up as far as that is possible without Docker.
package kind

import (
	"os"
	"os/exec"
	"testing"

	"github.com/containernetworking/cni/libcni"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	"sigs.k8s.io/yaml"
)

// TestClusterConfig reads the cluster's configuration with kind's own types, which refuse unknown fields.
func TestClusterConfig(t *testing.T) {
	text, err := os.ReadFile("kind.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var cluster v1alpha4.Cluster
	if err := yaml.UnmarshalStrict(text, &cluster); err != nil {
		t.Fatal(err)
	}
	if len(cluster.Nodes) < 2 || !cluster.Networking.DisableDefaultCNI {
		t.Errorf("want two nodes or more without kind's own network, got %+v", cluster)
	}
}

// TestConflist reads the nodes' network as a runtime does.
func TestConflist(t *testing.T) {
	if _, err := libcni.NetworkConfFromFile("conflist.json"); err != nil {
		t.Fatal(err)
	}
}

// TestScript has bash parse the script.
func TestScript(t *testing.T) {
	if out, err := exec.Command("bash", "-n", "up.sh").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}
