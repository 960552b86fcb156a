package workload

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// Owners finds the objects that own pods, by watches of their metadata: Kubernetes' own kinds from the start, any other
// kind after it is seen as an owner of a pod. IPAMClaims are watched as whole objects after a pod names one. Without
// Run nothing is watched, and each answer is a read from the API server, which is sufficient for a command.
type Owners struct {
	// Changed is called for watched workloads whose number of pods or addresses may have changed, and for those that
	// are gone. Set it before Run.
	Changed func(Workload)

	metadata metadata.Interface
	dynamic  dynamic.Interface
	rest     rest.Interface
	log      *slog.Logger
	now      func() time.Time

	fields      atomic.Pointer[seenFields] // of the status of IPAMClaims; nil before they were read
	discoveries singleflight.Group
	mu          sync.RWMutex
	kinds       map[schema.GroupKind]*kind
	watches     context.Context // ends the watches; nil while nothing is watched
	parts       sync.WaitGroup
}

// kind is one of the kinds of objects that own pods.
type kind struct {
	kindInfo
	// resource is empty if the API server has no such kind.
	resource   schema.GroupVersionResource
	namespaced bool
	// discovered is the time at which the API server was asked for the kind; zero for kinds of Kubernetes.
	discovered time.Time
	objects    objects
	// stop ends the watch.
	stop      context.CancelFunc
	forbidden forbiddenSince
}

// NewOwners returns an Owners that watches nothing yet. now is the clock for the validity of answers.
func NewOwners(cfg *rest.Config, h *http.Client, now func() time.Time, log *slog.Logger) (*Owners, error) {
	m, err := metadata.NewForConfigAndClient(cfg, h)
	if err != nil {
		return nil, err
	}
	whole, err := dynamic.NewForConfigAndClient(cfg, h)
	if err != nil {
		return nil, err
	}
	d, err := discovery.NewDiscoveryClientForConfigAndClient(cfg, h)
	if err != nil {
		return nil, err
	}
	o := &Owners{
		metadata: m, dynamic: whole, rest: d.RESTClient(), log: log, now: now, kinds: map[schema.GroupKind]*kind{},
	}
	for _, i := range known() {
		if i.resource != "" {
			o.kinds[schema.GroupKind{Group: i.group, Kind: i.kind}] = &kind{
				kindInfo: i, namespaced: i.kind != namespaceKind,
				resource: schema.GroupVersionResource{Group: i.group, Version: i.version, Resource: i.resource},
			}
		}
	}
	return o, nil
}

// Reasons why an object is not available. Retrying does not help with either.
var (
	errGone = errors.New("it no longer exists")
	// errKindGone is also an errGone.
	errKindGone = fmt.Errorf("the API server does not serve its kind: %w", errGone)
	errDenied   = errors.New("the controller may not read it")
)

// object returns an object from the watch, else by one read. With a UID it returns that object or errGone, not another
// one of the same name.
func (o *Owners) object(ctx context.Context, k *kind, namespace, name, uid string) (*object, error) {
	if !k.namespaced {
		namespace = ""
	}
	if at := k.objects.get(namespace, name); at != nil && (uid == "" || at.uid == uid) {
		return at, nil
	}
	if k.forbidden.since.Load() != 0 && k.forbidden.lasts(o.now()) {
		return nil, errDenied
	}
	at, err := o.read(ctx, k, namespace, name)
	switch {
	case err != nil:
		return nil, err
	case uid != "" && at.uid != uid:
		return nil, errGone
	}
	return at, nil
}

// read reads an object from the API server.
func (o *Owners) read(ctx context.Context, k *kind, namespace, name string) (*object, error) {
	m, err := o.metadataOf(ctx, k, namespace, name)
	if err != nil {
		return nil, err
	}
	return objectOf(m), nil
}

func (o *Owners) metadataOf(
	ctx context.Context, k *kind, namespace, name string,
) (*metav1.PartialObjectMetadata, error) {
	switch {
	case k.resource.Empty():
		return nil, errKindGone
	case !nameable(name):
		return nil, errGone
	}
	m, err := o.metadata.Resource(k.resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		return nil, errKindGone
	case apierrors.IsNotFound(err):
		return nil, errGone
	case apierrors.IsForbidden(err):
		if o.deny(k, err); k.forbidden.lasts(o.now()) {
			return nil, errDenied
		}
		fallthrough
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", Workload{Kind: k.kind, Namespace: namespace, Name: name}, err)
	}
	k.forbidden.lift()
	return m, nil
}

// owned is the result of following the owners of a pod.
type owned struct {
	Workload
	nature      nature
	prefix      string
	annotations map[string]string
	// unsure is set if the result is not known to be the workload, only an owner whose name may change. Policies that
	// depend on the workload are refused with it.
	unsure *ipam.Refusal
}

// maxOwners limits a chain of owners.
const maxOwners = 5

// of finds the workload of a pod. It follows the controlling owners while their names are generated by the next one. A
// Deployment that an operator's resource owns stays the workload.
func (o *Owners) of(ctx context.Context, pod Pod) (own owned, err error) {
	at := pod.Controller
	if at.Kind == "" || at.Group == "" && at.Kind == nodeKind { // a static pod belongs to its node
		return owned{
			Workload: Workload{Kind: podKind, Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}, nature: bare,
			prefix: "pod",
		}, nil
	}
	for range maxOwners {
		k, err := o.kind(ctx, at.Group, at.Kind)
		if err != nil {
			return owned{}, err
		}
		if k.nature == foreign && own.Kind != "" {
			return own, nil
		}
		own = owned{Workload: k.workload(pod.Namespace, at), nature: k.nature, prefix: k.prefix}
		if k.nature == foreign {
			return own, nil
		}
		object, err := o.object(ctx, k, pod.Namespace, at.Name, at.UID)
		switch {
		case errors.Is(err, errGone), errors.Is(err, errDenied):
			return o.unreadable(own, k, pod, err), nil
		case err != nil:
			return owned{}, err
		}
		own.annotations = object.annotations
		if !k.passing || object.controller.Kind == "" {
			return own, nil
		}
		at = object.controller
	}
	return own, nil
}

// Known returns the workload of a pod from the watches, or else the last known owner. It sends no request to the API
// server.
func (o *Owners) Known(pod Pod) (w Workload) {
	at := pod.Controller
	if at.Kind == "" || at.Group == "" && at.Kind == nodeKind {
		return Workload{Kind: podKind, Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}
	}
	for range maxOwners {
		o.mu.RLock()
		k := o.kinds[schema.GroupKind{Group: at.Group, Kind: at.Kind}]
		o.mu.RUnlock()
		switch {
		case (k == nil || k.nature == foreign) && w.Kind != "":
			return w
		case k == nil:
			return Workload{Group: at.Group, Kind: at.Kind, Namespace: pod.Namespace, Name: at.Name, UID: at.UID}
		}
		w = k.workload(pod.Namespace, at)
		object := k.objects.get(w.Namespace, at.Name)
		if object == nil || object.uid != at.UID || !k.passing || object.controller.Kind == "" {
			return w
		}
		at = object.controller
	}
	return w
}

// Above returns the workload by which the claims of an object's pods are found, if that is not the object itself: the
// Deployment of a ReplicaSet, or the workload of a pod. ok is false if it is the object, or if the object cannot be
// read.
func (o *Owners) Above(ctx context.Context, w Workload) (above Workload, ok bool, err error) {
	pod := Pod{
		Namespace: w.Namespace, Name: w.Name, UID: w.UID,
		Controller: Owner{Group: w.Group, Kind: w.Kind, Name: w.Name, UID: w.UID},
	}
	if w.Group == "" && w.Kind == podKind {
		k, err := o.kind(ctx, "", podKind)
		if err != nil {
			return above, false, err
		}
		switch object, err := o.object(ctx, k, w.Namespace, w.Name, w.UID); {
		case errors.Is(err, errGone), errors.Is(err, errDenied):
			return above, false, nil
		case err != nil:
			return above, false, err
		default:
			pod.Controller = object.controller
		}
	}
	own, err := o.of(ctx, pod)
	other := own.Group != w.Group || own.Kind != w.Kind || own.Name != w.Name
	return own.Workload, err == nil && own.unsure == nil && other, err
}

// workload returns an object of this kind.
func (k *kind) workload(namespace string, at Owner) Workload {
	if !k.namespaced {
		namespace = ""
	}
	return Workload{Group: k.group, Kind: k.kind, Namespace: namespace, Name: at.Name, UID: at.UID}
}

// unreadable returns the result for an owner that cannot be read.
func (o *Owners) unreadable(own owned, k *kind, pod Pod, why error) owned {
	if k.group == kubevirtGroup && k.kind == vmiKind && pod.VM != "" {
		own.Workload, own.nature, own.prefix = Workload{Group: k.group, Kind: vmKind, Namespace: pod.Namespace,
			Name: pod.VM},
			machine, "vm"
		return own
	}
	if k.passing {
		own.unsure = ipam.Refuse(ipam.ReasonWorkloadUnknown,
			"%s owns pod %s/%s, and what workload that belongs to is not known: %v", own, pod.Namespace, pod.Name, why)
		if errors.Is(why, errDenied) {
			own.unsure = own.unsure.WithHint("give the controller's ServiceAccount get, list and watch on %s",
				k.resource.GroupResource())
		}
	}
	return own
}

// defaults returns the annotations of a namespace.
func (o *Owners) defaults(ctx context.Context, namespace string) (map[string]string, error) {
	k, err := o.kind(ctx, "", namespaceKind)
	if err != nil {
		return nil, err
	}
	at, err := o.object(ctx, k, "", namespace, "")
	switch {
	case errors.Is(err, errGone), errors.Is(err, errDenied):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return at.annotations, nil
}

// APIVersion returns group and version of a workload's kind, as in owner references; an unknown version is "unknown".
func (o *Owners) APIVersion(w Workload) string {
	o.mu.RLock()
	k := o.kinds[schema.GroupKind{Group: w.Group, Kind: w.Kind}]
	o.mu.RUnlock()
	switch {
	case w.Group == "" && w.Kind == podKind:
		return "v1"
	case k == nil || k.resource.Empty():
		return w.Group + "/unknown"
	}
	return k.resource.GroupVersion().String()
}

// Served reports whether the API server serves the kind of a workload, as far as it was asked.
func (o *Owners) Served(w Workload) bool {
	o.mu.RLock()
	defer o.mu.RUnlock()
	k := o.kinds[schema.GroupKind{Group: w.Group, Kind: w.Kind}]
	return k == nil || !k.resource.Empty()
}

// The creator of a pod writes its owner references, and the API server only checks that their fields are not empty. A
// name such as ../../pods would lead to another path, and an invented kind would be remembered.

// nameable reports whether an object of the API server can have a name.
func nameable(name string) bool {
	return len(name) <= validation.DNS1123SubdomainMaxLength && len(content.IsPathSegmentName(name)) == 0
}

// servable reports whether the API server can have a kind.
func servable(gk schema.GroupKind) bool {
	return len(validation.IsDNS1035Label(strings.ToLower(gk.Kind))) == 0 &&
		(gk.Group == "" || len(validation.IsDNS1123Subdomain(gk.Group)) == 0)
}

// maxUnserved bounds the number of remembered kinds that the API server does not serve.
const maxUnserved = 1024

// forgetUnserved makes room for another kind that the API server does not serve. It removes the kind that was
// discovered least recently. The caller must hold the lock.
func (o *Owners) forgetUnserved() {
	n, oldest := 0, (*kind)(nil)
	for _, k := range o.kinds {
		if !k.resource.Empty() {
			continue
		}
		if n++; oldest == nil || k.discovered.Before(oldest.discovered) {
			oldest = k
		}
	}
	if n >= maxUnserved {
		delete(o.kinds, schema.GroupKind{Group: oldest.group, Kind: oldest.kind})
	}
}
