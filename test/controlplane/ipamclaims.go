package controlplane

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// IPAMClaimCRD returns the file with the CRD of IPAMClaims, from the module that defines them.
func IPAMClaimCRD() (string, error) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}",
		"github.com/k8snetworkplumbingwg/ipamclaims").Output()
	if err != nil {
		return "", fmt.Errorf("finding the module of IPAMClaims: %w", err)
	}
	return filepath.Join(strings.TrimSpace(string(dir)), "artifacts", "k8s.cni.cncf.io_ipamclaims.yaml"), nil
}
