package workload

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ErrGone means that a workload no longer exists, or that another one has its name.
var ErrGone = fmt.Errorf("the workload is gone: %w", errGone)

// ErrKindGone is an ErrGone for a workload whose kind is not served, perhaps temporarily: the object may reappear with
// it.
var ErrKindGone = fmt.Errorf("%w: its kind is not served", ErrGone)

// ErrNoReplicas means that a workload has no desired number of pods.
var ErrNoReplicas = errors.New("this kind of workload has no replicas")

// Replicas is the desired number of pods of a workload.
type Replicas struct {
	Count int
	// Start is the first ordinal of a StatefulSet.
	Start int
	// Sparse reports whether only the number of numbered pods is known, not their ordinals. Kinds outside Kubernetes
	// may start at any ordinal and skip some.
	Sparse bool
}

// desired has the relevant fields of a workload, or of its scale.
type desired struct {
	Metadata struct {
		UID string `json:"uid"`
	} `json:"metadata"`
	Spec struct {
		Replicas    *int `json:"replicas"`
		Parallelism *int `json:"parallelism"`
		Ordinals    struct {
			Start int `json:"start"`
		} `json:"ordinals"`
		JobTemplate struct {
			Spec struct {
				Parallelism *int `json:"parallelism"`
			} `json:"spec"`
		} `json:"jobTemplate"`
	} `json:"spec"`
	Status struct {
		DesiredNumberScheduled int `json:"desiredNumberScheduled"`
	} `json:"status"`
}

// Replicas asks the API server for the desired number of pods of a workload. The error is ErrGone if the workload no
// longer exists, and ErrNoReplicas for a kind without that number.
func (o *Owners) Replicas(ctx context.Context, w Workload) (Replicas, error) {
	k, err := o.kind(ctx, w.Group, w.Kind)
	switch {
	case err != nil:
		return Replicas{}, err
	case k.nature == foreign && k.resource.Empty(): // its kind is not known, or no longer
		if err := o.there(ctx, w); err != nil {
			return Replicas{}, err
		}
		fallthrough
	case k.nature == foreign:
		return Replicas{}, fmt.Errorf("%s: %w", w, ErrNoReplicas)
	case k.nature == bare, k.nature == machine, k.nature == attachment: // one, as long as it exists
		return Replicas{Count: 1}, o.there(ctx, w)
	case !nameable(w.Name):
		return Replicas{}, ErrGone
	}
	path := k.path(w)
	if k.version == "" { // not one of Kubernetes
		path += "/scale"
	}
	var d desired
	switch err := o.get(ctx, path, &d); {
	case apierrors.IsNotFound(err):
		// It is gone, unless its kind lost the scale.
		if err := o.there(ctx, w); err != nil {
			return Replicas{}, err
		}
		o.forget(k)
		return Replicas{}, fmt.Errorf("%s has no scale: %w", w, ErrNoReplicas)
	case err != nil:
		return Replicas{}, fmt.Errorf("reading %s: %w", w, err)
	case w.UID != "" && d.Metadata.UID != w.UID:
		return Replicas{}, ErrGone
	}
	if k.version == "" && d.Spec.Replicas == nil { // the API server omits 0 and unset
		return Replicas{Sparse: true}, nil
	}
	n := d.replicas(k.kind)
	n.Sparse = k.version == ""
	return n, nil
}

func (d *desired) replicas(kind string) Replicas {
	or := func(n *int, otherwise int) int {
		if n == nil {
			return otherwise
		}
		return max(0, *n)
	}
	switch kind {
	case "DaemonSet":
		return Replicas{Count: d.Status.DesiredNumberScheduled}
	case "Job":
		return Replicas{Count: or(d.Spec.Parallelism, 1)}
	case "CronJob":
		return Replicas{Count: or(d.Spec.JobTemplate.Spec.Parallelism, 1)}
	default:
		return Replicas{Count: or(d.Spec.Replicas, 1), Start: d.Spec.Ordinals.Start}
	}
}

// path returns the URL path of a workload at the API server.
func (k *kind) path(w Workload) string {
	path := groupPath(k.group) + "/" + k.resource.Version
	if k.namespaced {
		path += "/namespaces/" + w.Namespace
	}
	return path + "/" + k.resource.Resource + "/" + w.Name
}

// Gone asks the API server whether a workload no longer exists, or another one has its name. An error means that this
// is unknown: nothing may be freed because of it.
func (o *Owners) Gone(ctx context.Context, w Workload) (bool, error) {
	err := o.there(ctx, w)
	if errors.Is(err, ErrGone) {
		return true, nil
	}
	return false, err
}

// there returns nil if the API server says that a workload exists, ErrGone or ErrKindGone if it says that it does not.
func (o *Owners) there(ctx context.Context, w Workload) error {
	k, err := o.kind(ctx, w.Group, w.Kind)
	if err == nil && k.resource.Empty() { // a kind that was added meanwhile counts
		k, err = o.discovered(ctx, schema.GroupKind{Group: w.Group, Kind: w.Kind})
	}
	if err != nil {
		return err
	}
	if k.nature == attachment { // thousands of them belong to machines that are off; the watch reports their end
		if at := k.objects.get(w.Namespace, w.Name); at != nil && (w.UID == "" || w.UID == at.uid) {
			return nil
		}
	}
	at, err := o.read(ctx, k, w.Namespace, w.Name)
	switch {
	case errors.Is(err, errKindGone):
		return ErrKindGone
	case errors.Is(err, errGone), err == nil && w.UID != "" && at.uid != w.UID:
		return ErrGone
	case err != nil:
		return fmt.Errorf("%s: %w", w, err)
	}
	return nil
}

// Missing reports whether no workload has a name, from the watches if they have it. Use it only for display.
func (o *Owners) Missing(ctx context.Context, w Workload) (bool, error) {
	k, err := o.kind(ctx, w.Group, w.Kind)
	if err != nil {
		return false, err
	}
	_, err = o.object(ctx, k, w.Namespace, w.Name, "")
	if errors.Is(err, errGone) {
		return true, nil
	}
	return false, err
}
