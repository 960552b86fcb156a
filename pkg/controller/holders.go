package controller

import (
	"context"
	"log/slog"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/bcsnet/bcsnet/pkg/controller/clusterapi"
	"github.com/bcsnet/bcsnet/pkg/controller/holding"
	"github.com/bcsnet/bcsnet/pkg/controller/leadership"
	"github.com/bcsnet/bcsnet/pkg/controller/services"
)

// addHolders adds the leader's reconcilers of objects that hold addresses themselves, as far as the options say.
func addHolders(ctx context.Context, mgr ctrl.Manager, cfg *rest.Config, c *core, o Options, log *slog.Logger) error {
	shared := holding.Config{
		Index: c.index, Leases: c.leases, Adder: c.alloc.Adder, Releaser: c.alloc.Releaser, Terms: c.leads,
		Ready: c.ready, Log: log,
	}
	if o.ClusterAPI {
		client, err := dynamic.NewForConfigAndClient(cfg, mgr.GetHTTPClient())
		if err != nil {
			return err
		}
		if c.claimants, err = clusterapi.Add(ctx, mgr, client, shared); err != nil {
			return err
		}
	}
	if !o.Services {
		return nil
	}
	var err error
	c.services, err = services.Add(ctx, mgr, services.Config{
		Config: shared, Cache: mgr.GetCache(), Live: mgr.GetAPIReader(), Client: mgr.GetClient(), Owners: c.owners,
		Events:       mgr.GetEventRecorder(leadership.LeaseName),
		DefaultClass: o.ServicesDefaultClass, KubeVIP: o.ServicesKubeVIP,
	})
	return err
}
