package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	galaxyconfig "github.com/bcsnet/bcsnet/pkg/compat/galaxy/config"
	"github.com/bcsnet/bcsnet/pkg/controller/conditions"
	"github.com/bcsnet/bcsnet/pkg/controller/informers"
	"github.com/bcsnet/bcsnet/pkg/controller/leadership"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// floatingIPs keeps pools as a ConfigMap says, in terms of the leader: one that galaxy's users have. A document that
// is wrong changes nothing: the last good one counts, and after a change of the leader the pools as they are.
type floatingIPs struct {
	from   types.NamespacedName
	cache  client.Reader
	client client.Client
	index  *ipam.Index
	events events.EventRecorder
	// now is the API server's time.
	now func() time.Time
	// ready says whether this replica is; synced whether the ConfigMap has been looked for.
	ready  func() error
	synced func() bool
	log    *slog.Logger
	// applied has a series while this replica leads.
	applied *prometheus.GaugeVec
	wake    chan struct{}

	// good is the last good document of this term, nil before there was one.
	good []galaxyconfig.Entry
	// said is the last problem that was told of, empty when all is well.
	said string
}

// configRetry is how soon a document is looked at again that is missing, wrong, or could not be applied.
const configRetry = 5 * time.Second

// errNotCome is for a ConfigMap that the API server does not show.
var errNotCome = errors.New("the API server has not told of it: may the controller read it? See config/floatingip")

// namespacedName reads NAMESPACE/NAME.
func namespacedName(text string) (n types.NamespacedName, err error) {
	var ok bool
	if n.Namespace, n.Name, ok = strings.Cut(text, "/"); !ok || len(validation.ValidateNamespaceName(n.Namespace, false)) > 0 ||
		len(validation.NameIsDNSSubdomain(n.Name, false)) > 0 {
		return n, errors.New("not NAMESPACE/NAME")
	}
	return n, nil
}

// floatingIPCache has the cache hold that one ConfigMap alone, where it is wanted.
func (o Options) floatingIPCache(kinds map[client.Object]cache.ByObject) map[client.Object]cache.ByObject {
	if from, err := namespacedName(o.FloatingIPConfig); err == nil {
		kinds[&corev1.ConfigMap{}] = cache.ByObject{Field: fields.AndSelectors(
			fields.OneTermEqualSelector("metadata.namespace", from.Namespace), fields.OneTermEqualSelector("metadata.name", from.Name))}
	}
	return kinds
}

// keepFloatingIPs has the leader keep pools from the ConfigMap that the options name, if they name one.
func keepFloatingIPs(ctx context.Context, mgr ctrl.Manager, o Options, index *ipam.Index, now func() time.Time, leads *leadership.Terms, ready func() error, registry prometheus.Registerer, log *slog.Logger) error {
	from, err := namespacedName(o.FloatingIPConfig)
	if err != nil {
		return nil //nolint:nilerr // none is wanted: Validate has read the name
	}
	f := &floatingIPs{
		from: from, cache: mgr.GetCache(), client: mgr.GetClient(), index: index, events: mgr.GetEventRecorder("bcsnet-controller"),
		now: now, ready: ready, log: log.With("configmap", from.String()), wake: make(chan struct{}, 1),
		applied: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "bcsnet_floatingip_config_applied",
			Help: "1 while the pools are as the ConfigMap of --floatingip-config says, 0 while that is wrong or cannot be done; of the leader.",
		}, nil),
	}
	registry.MustRegister(f.applied)
	f.synced, err = informers.Watch(ctx, mgr.GetCache(), &corev1.ConfigMap{}, informers.Handler(func(*corev1.ConfigMap) { f.look() }, func(*corev1.ConfigMap) { f.look() }))
	if err != nil {
		return err
	}
	if _, err := informers.Watch(ctx, mgr.GetCache(), &v1.BCSNetPool{}, f.poolHandler()); err != nil {
		return err
	}
	leads.OnTerm(f.run)
	return nil
}

// look has the pools looked at soon.
func (f *floatingIPs) look() {
	select {
	case f.wake <- struct{}{}:
	default: // it is due already
	}
}

// run keeps the pools until the context ends, a term of the leader.
func (f *floatingIPs) run(ctx context.Context) error {
	if !leadership.AwaitReady(ctx, f.ready) {
		return nil
	}
	defer f.applied.Reset()
	f.applied.WithLabelValues().Set(0)
	f.awaitConfig(ctx)
	f.good, f.said = nil, ""
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-f.wake:
		case <-next.C:
		}
		next.Reset(f.pass(ctx))
	}
}

// awaitConfig gives the ConfigMap a moment to come, before it is said that it has not.
func (f *floatingIPs) awaitConfig(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, configRetry)
	defer cancel()
	leadership.AwaitReady(ctx, func() error {
		if f.synced() {
			return nil
		}
		return errNotCome
	})
}

// pass makes the pools what the document says, and returns when to look again.
func (f *floatingIPs) pass(ctx context.Context) time.Duration {
	config, entries, problem := f.read(ctx)
	reason := v1.ReasonFloatingIPConfigRefused
	again := fullPass
	if problem != nil {
		problem = fmt.Errorf("%w; the pools stay as they are", problem)
		again = configRetry
	} else {
		f.good = entries
	}
	if f.good != nil {
		done, err := f.apply(ctx, f.good)
		if done.any() {
			f.log.Info("applied", "changes", done.String())
			f.events.Eventf(config, nil, corev1.EventTypeNormal, v1.ReasonFloatingIPConfigApplied, "Apply", "%s", conditions.Clip(done.String(), conditions.MaxNote))
		}
		switch {
		case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err):
			return conditions.WriteDelay // the cache is behind
		case ctx.Err() != nil:
			return again
		case err != nil && problem == nil:
			problem, reason, again = err, v1.ReasonFloatingIPConfigFailed, configRetry
		}
	}
	f.tell(config, reason, problem)
	return again
}

// tell says what is wrong, once.
func (f *floatingIPs) tell(config *corev1.ConfigMap, reason string, problem error) {
	applied := f.applied.WithLabelValues()
	if problem == nil {
		applied.Set(1)
		if f.said != "" {
			f.log.Info("the pools are as the ConfigMap says again")
		}
		f.said = ""
		return
	}
	applied.Set(0)
	if text := problem.Error(); text != f.said {
		f.said = text
		f.log.Error("the pools are not as the ConfigMap says", "error", text)
		f.events.Eventf(config, nil, corev1.EventTypeWarning, reason, "Apply", "%s", conditions.Clip(text, conditions.MaxNote))
	}
}

// read reads the document. The ConfigMap is there to hang events on also when it does not exist.
func (f *floatingIPs) read(ctx context.Context) (*corev1.ConfigMap, []galaxyconfig.Entry, error) {
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.from.Namespace, Name: f.from.Name}}
	if !f.synced() {
		return config, nil, fmt.Errorf("ConfigMap %s: %w", f.from, errNotCome)
	}
	var found corev1.ConfigMap
	switch err := f.cache.Get(ctx, f.from, &found); {
	case apierrors.IsNotFound(err):
		return config, nil, fmt.Errorf("there is no ConfigMap %s", f.from)
	case err != nil:
		return config, nil, err
	}
	document, ok := found.Data[galaxyconfig.Key]
	if !ok {
		return &found, nil, fmt.Errorf("ConfigMap %s has no key %s", f.from, galaxyconfig.Key)
	}
	entries, err := galaxyconfig.Parse([]byte(document))
	return &found, entries, err
}
