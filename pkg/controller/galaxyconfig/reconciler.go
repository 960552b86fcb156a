package galaxyconfig

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/compat/galaxy/config"
	"github.com/bcsnet/bcsnet/pkg/controller/conditions"
	"github.com/bcsnet/bcsnet/pkg/controller/informers"
	"github.com/bcsnet/bcsnet/pkg/controller/leadership"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// reconciler keeps pools as the ConfigMap of galaxy's users asks for, in terms of the leader. A document that is wrong
// changes nothing: the last good one counts, and after a change of the leader the pools as they are.
type reconciler struct {
	from   types.NamespacedName
	cache  client.Reader
	client client.Client
	index  *ipam.Index
	events events.EventRecorder
	// now is the API server's time.
	now func() time.Time
	// ready returns why this replica is not ready. synced reports whether the list of ConfigMaps has come.
	ready  func() error
	synced func() bool
	log    *slog.Logger
	// applied has a series while this replica leads.
	applied *prometheus.GaugeVec
	wake    chan struct{}

	// good is the last good document of this term, nil before there was one.
	good []config.Entry
	// said is the last problem that was logged, empty when all is well.
	said string
}

// configEvery is how often the pools are compared with the document although nothing hinted at a difference.
// configRetry is how soon a document is read again that is missing, wrong, or could not be applied.
const configEvery, configRetry = 10 * time.Minute, 5 * time.Second

// errNotCome is for a ConfigMap of which no list has come.
var errNotCome = errors.New("the API server has not told of it: may the controller read it? See config/floatingip")

// Cached returns which ConfigMaps the cache is to hold: that one alone.
func Cached(from types.NamespacedName) cache.ByObject {
	return cache.ByObject{Field: fields.AndSelectors(
		fields.OneTermEqualSelector("metadata.namespace", from.Namespace),
		fields.OneTermEqualSelector("metadata.name", from.Name))}
}

// Config has the dependencies of the reconciler.
type Config struct {
	From     types.NamespacedName
	Index    *ipam.Index
	Now      func() time.Time
	Terms    *leadership.Terms
	Ready    func() error
	Registry prometheus.Registerer
	Log      *slog.Logger
}

// Add makes the leader keep pools as a ConfigMap asks for.
func Add(ctx context.Context, mgr ctrl.Manager, o Config) (err error) {
	r := &reconciler{
		from: o.From, cache: mgr.GetCache(), client: mgr.GetClient(), index: o.Index,
		events: mgr.GetEventRecorder(leadership.LeaseName),
		now:    o.Now, ready: o.Ready, log: o.Log.With("configmap", o.From.String()), wake: make(chan struct{}, 1),
		applied: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "bcsnet_floatingip_config_applied",
			Help: "1 while the pools are as the ConfigMap of --floatingip-config says, 0 while that is wrong or cannot be " +
				"done; of the leader.",
		}, nil),
	}
	o.Registry.MustRegister(r.applied)
	look := func(*corev1.ConfigMap) { r.wakeUp() }
	if r.synced, err = informers.Watch(ctx, mgr.GetCache(), &corev1.ConfigMap{},
		informers.Handler(look, look)); err != nil {
		return err
	}
	if _, err := informers.Watch(ctx, mgr.GetCache(), &v1.BCSNetPool{}, r.poolHandler()); err != nil {
		return err
	}
	o.Terms.OnTerm(r.run)
	return nil
}

// wakeUp triggers a comparison of the pools soon.
func (r *reconciler) wakeUp() {
	select {
	case r.wake <- struct{}{}:
	default: // it is due already
	}
}

// run keeps the pools until the context ends, a term of the leader.
func (r *reconciler) run(ctx context.Context) error {
	if !leadership.AwaitReady(ctx, r.ready) {
		return nil
	}
	defer r.applied.Reset()
	r.applied.WithLabelValues().Set(0)
	r.awaitConfig(ctx)
	r.good, r.said = nil, ""
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-r.wake:
		case <-next.C:
		}
		next.Reset(r.pass(ctx))
	}
}

// awaitConfig waits a moment for the list of ConfigMaps, before a missing one counts as a problem.
func (r *reconciler) awaitConfig(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, configRetry)
	defer cancel()
	leadership.AwaitReady(ctx, func() error {
		if r.synced() {
			return nil
		}
		return errNotCome
	})
}

// pass makes the pools what the document asks for, and returns when to compare them again.
func (r *reconciler) pass(ctx context.Context) time.Duration {
	from, entries, problem := r.read(ctx)
	reason := v1.ReasonFloatingIPConfigRefused
	again := configEvery
	if problem != nil {
		problem = fmt.Errorf("%w; the pools stay as they are", problem)
		again = configRetry
	} else {
		r.good = entries
	}
	if r.good != nil {
		done, err := r.apply(ctx, r.good)
		if done.any() {
			r.log.Info("applied", "changes", done.String())
			r.events.Eventf(from, nil, corev1.EventTypeNormal, v1.ReasonFloatingIPConfigApplied, "Apply", "%s",
				conditions.Clip(done.String(), conditions.MaxNote))
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
	r.report(from, reason, problem)
	return again
}

// report shows a problem, or that there is none: in the metric, and when it is new in the log and as an event.
func (r *reconciler) report(from *corev1.ConfigMap, reason string, problem error) {
	applied := r.applied.WithLabelValues()
	if problem == nil {
		applied.Set(1)
		if r.said != "" {
			r.log.Info("the pools are as the ConfigMap says again")
		}
		r.said = ""
		return
	}
	applied.Set(0)
	if text := problem.Error(); text != r.said {
		r.said = text
		r.log.Error("the pools are not as the ConfigMap says", "error", text)
		r.events.Eventf(from, nil, corev1.EventTypeWarning, reason, "Apply", "%s", conditions.Clip(text, conditions.MaxNote))
	}
}

// read reads the document. It returns a ConfigMap for events also where none exists.
func (r *reconciler) read(ctx context.Context) (*corev1.ConfigMap, []config.Entry, error) {
	absent := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.from.Namespace, Name: r.from.Name}}
	if !r.synced() {
		return absent, nil, fmt.Errorf("ConfigMap %s: %w", r.from, errNotCome)
	}
	var found corev1.ConfigMap
	switch err := r.cache.Get(ctx, r.from, &found); {
	case apierrors.IsNotFound(err):
		return absent, nil, fmt.Errorf("there is no ConfigMap %s", r.from)
	case err != nil:
		return absent, nil, err
	}
	document, ok := found.Data[config.Key]
	if !ok {
		return &found, nil, fmt.Errorf("ConfigMap %s has no key %s", r.from, config.Key)
	}
	entries, err := config.Parse([]byte(document))
	return &found, entries, err
}
