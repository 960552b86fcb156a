package app

import (
	"testing"
)

func TestCalledName(t *testing.T) {
	for arg0, want := range map[string]string{
		"bcsnetctl": "bcsnetctl", "bin/bcsnetctl.exe": "bcsnetctl", "bn": "bn",
		"kubectl-bcsnet": "kubectl bcsnet", "bin/kubectl-bcs_net-x": "kubectl bcs-net x",
	} {
		if got := CalledName(arg0); got != want {
			t.Errorf("%s: got %q, want %q", arg0, got, want)
		}
	}
}
