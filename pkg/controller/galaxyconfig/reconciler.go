package galaxyconfig

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/compat/galaxy/config"
	"github.com/bcsnet/bcsnet/pkg/controller/configmap"
	"github.com/bcsnet/bcsnet/pkg/controller/informers"
	"github.com/bcsnet/bcsnet/pkg/controller/leadership"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
)

// reconciler makes pools match the ConfigMap of galaxy's users.
type reconciler struct {
	from   types.NamespacedName
	cache  client.Reader
	client client.Client
	index  *index.Index
	// now returns the API server's time.
	now    func() time.Time
	wakeUp func()
}

// Config has the dependencies of the reconciler.
type Config struct {
	From     types.NamespacedName
	Index    *index.Index
	Now      func() time.Time
	Terms    *leadership.Terms
	Ready    func() error
	Registry prometheus.Registerer
	Log      *slog.Logger
}

// Add makes the leader maintain pools from a ConfigMap.
func Add(ctx context.Context, mgr ctrl.Manager, o Config) error {
	r := &reconciler{from: o.From, cache: mgr.GetCache(), client: mgr.GetClient(), index: o.Index, now: o.Now}
	keeper, err := configmap.New(ctx, mgr, configmap.Config[[]config.Entry]{
		From: o.From, Manifests: "config/floatingip", What: "pools",
		Reasons: configmap.Reasons{
			Applied: v1.ReasonFloatingIPConfigApplied, Refused: v1.ReasonFloatingIPConfigRefused,
			Failed: v1.ReasonFloatingIPConfigFailed,
		},
		Metric: prometheus.GaugeOpts{
			Name: "bcsnet_floatingip_config_applied",
			Help: "1 while the pools are as the ConfigMap of --floatingip-config says, 0 while that is wrong or " +
				"cannot be done; of the leader.",
		},
		Read: r.read,
		Apply: func(ctx context.Context, entries []config.Entry, _ func() bool) (configmap.Outcome, error) {
			done, err := r.apply(ctx, entries)
			return configmap.Outcome{Done: done.String()}, err
		},
		Terms: o.Terms, Ready: o.Ready, Registry: o.Registry, Log: o.Log,
	})
	if err != nil {
		return err
	}
	r.wakeUp = keeper.WakeUp
	_, err = informers.Watch(ctx, mgr.GetCache(), &v1.BCSNetPool{}, r.poolHandler())
	return err
}

func (r *reconciler) read(found *corev1.ConfigMap) ([]config.Entry, error) {
	document, ok := found.Data[config.Key]
	if !ok {
		return nil, fmt.Errorf("ConfigMap %s has no key %s", r.from, config.Key)
	}
	return config.Parse([]byte(document))
}
