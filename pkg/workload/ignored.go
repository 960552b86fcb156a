package workload

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/bcsnet/bcsnet/pkg/internal/suggest"
)

// Ignored is an annotation that looks as if it were meant for bcsnet, but has no effect on its object.
type Ignored struct {
	// Object has the annotation Key.
	Object, Key string
	// Known reports whether bcsnet understands the annotation, but not on such an object.
	Known bool
	// Target is the unknown interface or network that the annotation is for; empty if it is ignored for another reason.
	Target string
}

// Ignored returns the ignored annotations of a pod, of its workload and of its namespace, in this order: unknown ones
// with bcsnet's prefix, and known ones of all dialects that have no effect there. annotations are the pod's. Objects
// that are gone, or may not be read, have none.
func (o *Owners) Ignored(ctx context.Context, pod Pod, annotations map[string]string, w Workload) ([]Ignored, error) {
	self := Workload{Kind: podKind, Namespace: pod.Namespace, Name: pod.Name}
	found := ignored(OnPod, self.String(), annotations)
	for _, at := range []struct {
		level Level
		of    Workload
	}{{OnWorkload, w}, {OnNamespace, Workload{Kind: namespaceKind, Name: pod.Namespace}}} {
		if at.of.Kind == "" || at.of.Kind == podKind {
			continue
		}
		k, err := o.kind(ctx, at.of.Group, at.of.Kind)
		if err != nil {
			return nil, err
		}
		if k.nature == foreign && at.level == OnWorkload { // annotations there have no effect
			at.level = 0
		}
		switch m, err := o.metadataOf(ctx, k, at.of.Namespace, at.of.Name); {
		case errors.Is(err, errGone), errors.Is(err, errDenied), apierrors.IsForbidden(err):
		case err != nil:
			return nil, err
		default:
			found = append(found, ignored(at.level, at.of.String(), m.Annotations)...)
		}
	}
	return found, nil
}

// ignored returns the ignored annotations of one object.
func ignored(level Level, object string, annotations map[string]string) (out []Ignored) {
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if a, _, known := annotationOf(key); known && a.On&level == 0 || !known && IsOwn(key) {
			out = append(out, Ignored{Object: object, Key: key, Known: known})
		}
	}
	return out
}

// String says which annotation is ignored, and why.
func (i Ignored) String() string {
	text := i.Key + " of " + i.Object + ": "
	switch {
	case i.Target != "":
		return text + noTarget(i.Target)
	case i.Known:
		return text + "it does not count there"
	}
	text += "there is no such annotation"
	name, target, _ := strings.Cut(strings.TrimPrefix(i.Key, ownPrefix), ".")
	var names []string
	for _, a := range Annotations() {
		if name, own := strings.CutPrefix(a.Key, ownPrefix); own {
			names = append(names, name)
		}
	}
	near := suggest.Nearest(name, names)
	if near == "" {
		return text
	}
	if target != "" {
		near += "." + target
	}
	return text + ", did you mean " + ownPrefix + near + "?"
}
