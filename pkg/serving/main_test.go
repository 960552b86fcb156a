package serving

import (
	"context"
	"os"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

// shared is a control plane with the manifests, and the controller's identity in it.
var shared struct {
	cluster *controlplane.ControlPlane
	config  *rest.Config
}

func TestMain(m *testing.M) {
	os.Exit(controlplane.MainWith(m, func(ctx context.Context, cp *controlplane.ControlPlane) (func() error, error) {
		var err error
		shared.cluster = cp
		if err = cp.InstallRights(ctx); err == nil {
			shared.config, err = cp.ServiceAccountConfig(ctx, controlplane.SystemNamespace, controlplane.ControllerName)
		}
		return func() error { return nil }, err
	}))
}
