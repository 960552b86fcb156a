package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/controller/leadership"
	"github.com/bcsnet/bcsnet/pkg/controller/node"
	"github.com/bcsnet/bcsnet/pkg/scheduling"
	"github.com/bcsnet/bcsnet/pkg/store"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

func restConfig(kubeconfig string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	return cfg, nil
}

// wrapped returns a client configuration with the transports that all clients of the controller share.
func wrapped(cfg *rest.Config, restores *store.Restores, log *slog.Logger) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.UserAgent = "bcsnet-controller"
	cfg.QPS = -1 // the API server's own fairness limits us
	cfg.Wrap(restores.Wrap)
	cfg.Wrap(store.AwaitRoles(log))
	cfg.Wrap(store.JitterReads)
	return cfg
}

// newManager creates the manager without an API server: the kinds that it watches are built in, so a controller that
// starts first simply waits. All its components run on every replica; the election is separate.
func newManager(cfg *rest.Config, o Options, log *slog.Logger) (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	resources, err := scheduling.ParseResources(o.NodeResources)
	if err != nil {
		return nil, err
	}
	lists, err := store.NewPoolLists(cfg)
	if err != nil {
		return nil, err
	}
	noCopy := true
	return ctrl.NewManager(cfg, ctrl.Options{
		Scheme:                  scheme,
		Logger:                  logr.FromSlogHandler(log.Handler()),
		MapperProvider:          func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return mapper(), nil },
		Metrics:                 metricsserver.Options{BindAddress: "0"}, // ours shows more
		HealthProbeBindAddress:  "0",                                     // ours, too
		GracefulShutdownTimeout: new(5 * time.Second),
		Controller: ctrlconfig.Controller{CacheSyncTimeout: 365 * 24 * time.Hour,
			SkipNameValidation: new(true)},
		NewCache: func(cfg *rest.Config, o cache.Options) (cache.Cache, error) {
			c, err := cache.New(cfg, o)
			return eagerCache{c}, err
		},
		Cache: cache.Options{NewInformer: newInformer(lists), ByObject: map[client.Object]cache.ByObject{
			&v1.BCSNetPool{}: {Transform: cache.TransformStripManagedFields()},
			&corev1.Pod{}: {UnsafeDisableDeepCopy: &noCopy, Transform: func(o any) (any, error) {
				if p, ok := o.(*corev1.Pod); ok {
					t := workload.Trim(p)
					resources.Mark(t, p)
					return t, nil
				}
				return o, nil
			}},
			&corev1.Node{}: {UnsafeDisableDeepCopy: &noCopy, Transform: func(o any) (any, error) {
				if n, ok := o.(*corev1.Node); ok {
					return node.Trim(n, resources), nil
				}
				return o, nil
			}},
			&corev1.Service{}: {UnsafeDisableDeepCopy: &noCopy, Transform: cache.TransformStripManagedFields()},
			&corev1.Namespace{}: {UnsafeDisableDeepCopy: &noCopy, Transform: func(o any) (any, error) {
				if n, ok := o.(*corev1.Namespace); ok {
					return trimNamespace(n), nil
				}
				return o, nil
			}},
			&coordinationv1.Lease{}: {
				// The selector stands for Namespaces, whose informers leave goroutines behind if they end before they
				// are filled.
				Field: fields.OneTermEqualSelector("metadata.namespace", o.LeaderElectionNamespace),
				Label: labels.SelectorFromSet(leadership.LeaseLabels()),
			},
		}},
	})
}

// newInformer returns the constructor of informers. Informers of pools use their own list.
func newInformer(pools store.PoolLists) func(
	toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers,
) toolscache.SharedIndexInformer {
	return func(
		lw toolscache.ListerWatcher, of runtime.Object, resync time.Duration, indexers toolscache.Indexers,
	) toolscache.SharedIndexInformer {
		if _, ok := of.(*v1.BCSNetPool); ok {
			lw = pools.Over(lw)
		}
		return toolscache.NewSharedIndexInformer(lw, of, resync, indexers)
	}
}

// trimNamespace returns a namespace with only the fields that decide which pools are bound to it.
func trimNamespace(n *corev1.Namespace) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: n.Name, UID: n.UID, ResourceVersion: n.ResourceVersion, Labels: n.Labels,
	}}
}

// eagerCache lets the manager continue before the cache is filled. Otherwise the manager would start nothing else until
// then, and not end when asked to: a controller without an API server would log nothing and hang. Components that need
// a filled cache wait for ready.
type eagerCache struct{ cache.Cache }

// WaitForCacheSync does not wait.
func (eagerCache) WaitForCacheSync(context.Context) bool { return true }

// mapper returns a mapper with the kinds that the controller uses.
func mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	m.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	m.Add(corev1.SchemeGroupVersion.WithKind("Node"), meta.RESTScopeRoot)
	m.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	m.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	m.Add(corev1.SchemeGroupVersion.WithKind("Service"), meta.RESTScopeNamespace)
	m.Add(coordinationv1.SchemeGroupVersion.WithKind("Lease"), meta.RESTScopeNamespace)
	m.Add(v1.GroupVersion.WithKind("BCSNetPool"), meta.RESTScopeRoot)
	m.Add(v1.GroupVersion.WithKind("BCSNetIP"), meta.RESTScopeRoot)
	m.Add(v1.GroupVersion.WithKind("BCSNetIPClaim"), meta.RESTScopeNamespace)
	m.Add(v1.GroupVersion.WithKind("BCSNetHistory"), meta.RESTScopeRoot)
	m.Add(admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingAdmissionPolicy"), meta.RESTScopeRoot)
	m.Add(admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingAdmissionPolicyBinding"), meta.RESTScopeRoot)
	return m
}
