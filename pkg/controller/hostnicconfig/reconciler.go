package hostnicconfig

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/compat/hostnic"
	"github.com/bcsnet/bcsnet/pkg/controller/configmap"
	"github.com/bcsnet/bcsnet/pkg/controller/informers"
	"github.com/bcsnet/bcsnet/pkg/controller/leadership"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// reconciler gives namespaces the blocks in the ConfigMap of hostnic's users.
type reconciler struct {
	Config
	cache  client.Reader
	client client.Client
	wakeUp func()
	// named are the blocks of the document that was last applied.
	named atomic.Pointer[map[netip.Prefix]struct{}]
}

// BlockGiver makes blocks for namespaces; the Stocker of package allocator is one.
type BlockGiver interface {
	GiveBlock(
		ctx context.Context, pool, namespace string, which netip.Prefix, marks ...func(*v1.BCSNetPool),
	) (ipam.Pool, error)
}

// Config has the dependencies of the reconciler.
type Config struct {
	From    types.NamespacedName
	Index   *index.Index
	Stocker BlockGiver
	// TakeBack deletes an empty block after a check of the API server itself.
	TakeBack func(context.Context, ipam.IdleBlock) (bool, error)
	// Now returns the API server's time.
	Now      func() time.Time
	Terms    *leadership.Terms
	Ready    func() error
	Registry prometheus.Registerer
	Log      *slog.Logger
}

// Add makes the leader assign blocks to namespaces from a ConfigMap.
func Add(ctx context.Context, mgr ctrl.Manager, o Config) error {
	r := &reconciler{Config: o, cache: mgr.GetCache(), client: mgr.GetClient()}
	keeper, err := configmap.New(ctx, mgr, configmap.Config[hostnic.Mapping]{
		From: o.From, Manifests: "config/hostnic", What: "blocks",
		Reasons: configmap.Reasons{
			Applied: v1.ReasonHostnicConfigApplied, Refused: v1.ReasonHostnicConfigRefused,
			Failed: v1.ReasonHostnicConfigFailed, Differs: v1.ReasonHostnicConfigDiffers,
		},
		Metric: prometheus.GaugeOpts{
			Name: "bcsnet_hostnic_config_applied",
			Help: "1 while namespaces have the blocks that the ConfigMap of --hostnic-ipam-config says, 0 while that " +
				"is wrong or something is in the way; of the leader.",
		},
		Read:  func(found *corev1.ConfigMap) (hostnic.Mapping, error) { return hostnic.Read(found.Data) },
		Apply: r.apply,
		Terms: o.Terms, Ready: o.Ready, Registry: o.Registry, Log: o.Log,
	})
	if err != nil {
		return err
	}
	r.wakeUp = keeper.WakeUp
	_, err = informers.Watch(ctx, mgr.GetCache(), &v1.BCSNetPool{}, r.poolHandler())
	return err
}

// poolHandler triggers a comparison if a block that the ConfigMap names or named is created, changed or deleted, and if
// that happens to a split pool or to a default pool of the document. Changes of a status do not matter.
func (r *reconciler) poolHandler() toolscache.ResourceEventHandler {
	return informers.SpecHandler(func(o *v1.BCSNetPool) {
		if r.concerns(o) {
			r.wakeUp()
		}
	}, nil)
}

// concerns reports whether a pool may be relevant for the ConfigMap. The hundreds of blocks that namespaces get by
// themselves are not, unless it names them.
func (r *reconciler) concerns(o *v1.BCSNetPool) bool {
	if !store.IsBlock(o) || r.owns(o) {
		return true
	}
	addrs, ok := addrsOf(o)
	if named := r.named.Load(); ok && named != nil {
		_, ok = (*named)[addrs]
		return ok
	}
	return false
}

func addrsOf(o *v1.BCSNetPool) (netip.Prefix, bool) {
	if len(o.Spec.AvailableIPs) != 1 {
		return netip.Prefix{}, false
	}
	p, err := netip.ParsePrefix(o.Spec.AvailableIPs[0])
	return p, err == nil
}

// compare records statements of the document that do not match the pools. Pools belong to the operator and are not
// changed.
func (p *pass) compare(m hostnic.Mapping) {
	for _, name := range m.Defaults {
		if problem := p.defaultProblem(name); problem != "" {
			p.differs("%s names %s, %s", hostnic.Default, hostnic.Clip(name), problem)
		}
	}
	for _, parent := range slices.Sorted(maps.Keys(p.parents)) {
		if o, known := p.Index.Pools.Get(parent); known && o.AutoAssign != m.AutoAssign {
			p.differs("%s is %s, and pool %s has autoAssign: %t, which counts", hostnic.AutoAssignKey,
				onOff(m.AutoAssign), parent, o.AutoAssign)
		}
	}
}

// defaultProblem returns the reason why namespaces that the document does not name cannot draw from one of its default
// pools; empty if they can.
func (p *pass) defaultProblem(name string) string {
	o, ok := p.Index.Pools.Get(name)
	switch {
	case !ok:
		return "and there is no such pool"
	case !o.Valid():
		return "which cannot be used: " + o.Problem
	case o.Block:
		return "a block, from which only its namespace draws"
	case o.BlockSize > 0 && !o.AutoAssign:
		return "which is split into blocks and assigns none automatically"
	case !o.InDefaultChain():
		return "which is not in the default chain: " + outside(o)
	}
	return ""
}

// outside returns the reason why a pool is not in the default chain.
func outside(o ipam.Pool) string {
	if o.NotDefault {
		return "it says default: false"
	}
	return fmt.Sprintf("it is bound to namespaces (%d by name)", len(o.Namespaces))
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
