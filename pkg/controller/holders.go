package controller

import (
	"context"
	"log/slog"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/bcsnet/bcsnet/pkg/controller/clusterapi"
	"github.com/bcsnet/bcsnet/pkg/controller/holding"
)

// addHolders adds the leader's reconcilers of objects that hold addresses themselves, as far as the options say.
func addHolders(ctx context.Context, mgr ctrl.Manager, cfg *rest.Config, c *core, o Options, log *slog.Logger) error {
	if !o.ClusterAPI {
		return nil
	}
	client, err := dynamic.NewForConfigAndClient(cfg, mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	c.claimants, err = clusterapi.Add(ctx, mgr, client, holding.Config{
		Index: c.index, Leases: c.leases, Adder: c.alloc.Adder, Releaser: c.alloc.Releaser, Terms: c.leads,
		Ready: c.ready, Log: log,
	})
	return err
}
