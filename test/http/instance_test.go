package http_test

import (
	"testing"

	"k8s.io/client-go/rest"

	"github.com/bcsnet/bcsnet/pkg/controller"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/inprocess"
)

// instance is a controller that runs in this process.
type instance struct{ *inprocess.Controller }

// startFor runs a controller for one test and returns when it is ready.
func startFor(t *testing.T, cfg *rest.Config, change func(*controller.Options)) *instance {
	t.Helper()
	return &instance{inprocess.ForTest(t, cfg, change)}
}

// account is the identity that the controller has in a cluster.
func account(t *testing.T, cp *controlplane.ControlPlane) *rest.Config {
	t.Helper()
	cfg, err := cp.ServiceAccountConfig(t.Context(), controlplane.SystemNamespace, controlplane.ControllerName)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}
