package configmap

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/controller/conditions"
	"github.com/bcsnet/bcsnet/pkg/controller/informers"
	"github.com/bcsnet/bcsnet/pkg/controller/leadership"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
)

// every is the interval in which the objects are compared with the document even without a hint of a difference. retry
// is the interval of reading a document that is missing, invalid, or could not be applied.
const every, retry = 10 * time.Minute, 5 * time.Second

// Reasons are the reasons of the events about a ConfigMap.
type Reasons struct {
	// Applied: objects were changed to match the document. Refused: the document cannot be read or is invalid, and the
	// last valid one is used. Failed: the document is valid, but an object could not be written. Differs: the document
	// is valid, but cannot be followed completely.
	Applied, Refused, Failed, Differs string
}

// Config says which ConfigMap to follow, and how.
type Config[D any] struct {
	From types.NamespacedName
	// Manifests is the directory with the role for reading it, such as config/floatingip.
	Manifests string
	// What is the name of the objects in messages, such as "pools".
	What    string
	Reasons Reasons
	// Metric is a gauge of the leader, without labels: 1 while the objects match the ConfigMap.
	Metric prometheus.GaugeOpts
	// Read parses and validates the document.
	Read func(*corev1.ConfigMap) (D, error)
	// Apply changes the objects to match a document. It continues after an error; a Difference is an error that lasts
	// until somebody changes something. It may return early if edited reports a later document.
	Apply func(ctx context.Context, document D, edited func() bool) (Outcome, error)

	Terms    *leadership.Terms
	Ready    func() error
	Registry prometheus.Registerer
	Log      *slog.Logger
}

// Outcome is the result of an attempt to make the objects match a document.
type Outcome struct {
	// Done describes the changes; empty for none.
	Done string
	// Waits reports whether a part waits for something that causes no event, such as the end of a lease.
	Waits bool
}

// Difference describes a part of a valid document that is not followed, and the reason.
type Difference struct{ Text string }

func (d *Difference) Error() string { return d.Text }

// Keeper makes objects match a ConfigMap, in terms of the leader. An invalid or missing document changes nothing: the
// last valid one counts, and after a change of the leader, the objects stay as they are.
type Keeper[D any] struct {
	Config[D]
	cache  client.Reader
	events events.EventRecorder
	// synced reports whether the list of ConfigMaps was received.
	synced func() bool
	// applied has a series while this replica leads.
	applied *prometheus.GaugeVec
	wake    chan struct{}
	// edited has a token if the ConfigMap has changed since it was read.
	edited chan struct{}

	// good is the last valid document of this term; nil if there was none.
	good *D
	// said is the last problem that was logged, empty if all is well; told is the number of events in this term.
	said string
	told int
}

// errNotCome is the error for a ConfigMap whose list was not received.
type errNotCome struct{ manifests string }

func (e errNotCome) Error() string {
	return "the API server has not told of it: may the controller read it? See " + e.manifests
}

// New makes the leader follow a ConfigMap. The manager's cache does not hold ConfigMaps: each keeper has a cache with
// only its own.
func New[D any](ctx context.Context, mgr ctrl.Manager, o Config[D]) (*Keeper[D], error) {
	own, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		ByObject: map[client.Object]cache.ByObject{&corev1.ConfigMap{}: {Field: fields.AndSelectors(
			fields.OneTermEqualSelector("metadata.namespace", o.From.Namespace),
			fields.OneTermEqualSelector("metadata.name", o.From.Name))}},
	})
	if err != nil {
		return nil, err
	}
	k := &Keeper[D]{
		Config: o, cache: own, events: mgr.GetEventRecorder(leadership.LeaseName),
		applied: prometheus.NewGaugeVec(o.Metric, nil),
		wake:    make(chan struct{}, 1), edited: make(chan struct{}, 1),
	}
	k.Log = o.Log.With("configmap", o.From.String())
	o.Registry.MustRegister(k.applied)
	look := func(*corev1.ConfigMap) {
		hint(k.edited)
		k.WakeUp()
	}
	if k.synced, err = informers.Watch(ctx, own, &corev1.ConfigMap{}, informers.Handler(look, look)); err != nil {
		return nil, err
	}
	o.Terms.OnTerm(k.run)
	return k, mgr.Add(own)
}

// WakeUp triggers a comparison of the objects soon.
func (k *Keeper[D]) WakeUp() { hint(k.wake) }

func hint(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it is already due
	}
}

// run maintains the objects until the context ends, that is for a term of the leader.
func (k *Keeper[D]) run(ctx context.Context) error {
	if !leadership.AwaitReady(ctx, k.Ready) {
		return nil
	}
	defer k.applied.Reset()
	k.applied.WithLabelValues().Set(0)
	k.awaitConfig(ctx)
	k.good, k.said, k.told = nil, "", 0
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-k.wake:
		case <-next.C:
		}
		next.Reset(k.pass(ctx))
	}
}

// awaitConfig waits a moment for the list of ConfigMaps before a missing one counts as a problem.
func (k *Keeper[D]) awaitConfig(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, retry)
	defer cancel()
	leadership.AwaitReady(ctx, func() error {
		if k.synced() {
			return nil
		}
		return errNotCome{k.Manifests}
	})
}

// pass makes the objects match the document, and returns the time after which to compare them again.
func (k *Keeper[D]) pass(ctx context.Context) time.Duration {
	select {
	case <-k.edited:
	default:
	}
	from, document, problem := k.read(ctx)
	reason := k.Reasons.Refused
	again := every
	if problem != nil {
		problem = fmt.Errorf("%w; the %s stay as they are", problem, k.What)
		again = retry
	} else {
		k.good = &document
	}
	if k.good != nil {
		out, err := k.Apply(ctx, *k.good, func() bool { return len(k.edited) > 0 })
		if out.Done != "" {
			k.Log.Info("applied", "changes", out.Done)
			k.makeEvent(from, corev1.EventTypeNormal, k.Reasons.Applied, out.Done)
		}
		if out.Waits {
			again = retry
		}
		switch {
		case len(k.edited) > 0:
			return 0 // there is a later document
		case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err):
			return conditions.WriteDelay // the cache lags
		case ctx.Err() != nil:
			return again
		case err != nil && problem == nil:
			problem, reason, again = err, k.Reasons.Failed, retry
			if _, ok := errors.AsType[*Difference](err); ok {
				reason = k.Reasons.Differs
			}
		}
	}
	k.report(from, reason, problem)
	return again
}

// report reports a problem, or that there is none: in the metric and, if it is new, in the log and as an event.
func (k *Keeper[D]) report(from *corev1.ConfigMap, reason string, problem error) {
	applied := k.applied.WithLabelValues()
	if problem == nil {
		applied.Set(1)
		if k.said != "" {
			k.Log.Info("the " + k.What + " are as the ConfigMap says again")
		}
		k.said = ""
		return
	}
	applied.Set(0)
	if text := problem.Error(); text != k.said {
		k.said = text
		k.Log.Error("the "+k.What+" are not as the ConfigMap says", "error", text)
		k.makeEvent(from, corev1.EventTypeWarning, reason, text)
	}
}

// makeEvent creates an event about the ConfigMap. Events about the same version of it would be counted as one, with the
// first message: the number of the action distinguishes them.
func (k *Keeper[D]) makeEvent(from *corev1.ConfigMap, kind, reason, note string) {
	k.told++
	k.events.Eventf(from, nil, kind, reason, "Apply"+strconv.Itoa(k.told), "%s", conditions.Clip(note,
		conditions.MaxNote))
}

// read reads the document. It returns a ConfigMap for events even if none exists.
func (k *Keeper[D]) read(ctx context.Context) (from *corev1.ConfigMap, document D, err error) {
	absent := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: k.From.Namespace, Name: k.From.Name}}
	if !k.synced() {
		return absent, document, fmt.Errorf("ConfigMap %s: %w", k.From, errNotCome{k.Manifests})
	}
	var found corev1.ConfigMap
	switch err := k.cache.Get(ctx, k.From, &found); {
	case apierrors.IsNotFound(err):
		return absent, document, fmt.Errorf("there is no ConfigMap %s", k.From)
	case err != nil:
		return absent, document, err
	}
	document, err = k.Read(&found)
	return &found, document, err
}

// Patch writes the differences of a pool, unless somebody else has changed it meanwhile.
func Patch(ctx context.Context, c client.Client, old, next *v1.BCSNetPool) (changed bool, err error) {
	if equality.Semantic.DeepEqual(old, next) {
		return false, nil
	}
	if err := c.Patch(ctx, next, client.MergeFromWithOptions(old, client.MergeFromWithOptimisticLock{})); err != nil {
		return false, fmt.Errorf("changing pool %s: %w", old.Name, err)
	}
	return true, nil
}

// Mark records on a pool the ConfigMap from which it comes: its kind in a label, its name in an annotation.
func Mark(o *v1.BCSNetPool, kind, annotation string, from types.NamespacedName) {
	metav1.SetMetaDataLabel(&o.ObjectMeta, v1.SourceLabel, kind)
	metav1.SetMetaDataAnnotation(&o.ObjectMeta, annotation, from.String())
}

// Change has the names of the objects that were changed in one way.
type Change struct {
	How   string
	Names []string
}

// Describe formats changes, as in "created floatingip-10.0.70.0-24; deleted floatingip-10.0.71.0-24".
func Describe(all ...Change) string {
	var parts []string
	for _, c := range all {
		if len(c.Names) > 0 {
			parts = append(parts, c.How+" "+humanize.List(c.Names))
		}
	}
	return strings.Join(parts, "; ")
}
