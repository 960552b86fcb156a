package cli

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

// followed is a set of objects that is kept as the API server has it.
type followed[T any] struct {
	session *session
	api     dynamic.ResourceInterface
	// fields selects the objects: one that no longer matches leaves the set.
	fields string
	// read keeps what is needed of an object.
	read func(*unstructured.Unstructured) (T, error)
	// see is told of the set when it was read and after every change; the end is true or an error.
	see func(map[string]T) (bool, error)
}

// followRest is how long a set rests that the API server stopped telling of, before it is read again.
const followRest = time.Second

// named selects the one object of a name.
func named(name string) string { return fields.OneTermEqualSelector("metadata.name", name).String() }

// until watches the set until see has seen enough.
func (f followed[T]) until(ctx context.Context) error {
	for {
		set, version, err := f.list(ctx)
		if err != nil {
			return err
		}
		done, err := f.see(set)
		if err == nil && !done {
			done, err = f.watch(ctx, set, version)
		}
		if err != nil || done {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(followRest):
		}
	}
}

func (f followed[T]) list(ctx context.Context) (map[string]T, string, error) {
	set := map[string]T{}
	for options := (metav1.ListOptions{FieldSelector: f.fields, Limit: pageSize}); ; {
		page, err := f.api.List(ctx, options)
		if err != nil {
			return nil, "", f.problem(ctx, err)
		}
		for i := range page.Items {
			if set[page.Items[i].GetName()], err = f.read(&page.Items[i]); err != nil {
				return nil, "", err
			}
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return set, page.GetResourceVersion(), nil
		}
	}
}

// watch follows the changes for as long as the API server tells of them. It ends a watch after some
// minutes, and when it has forgotten the version; the set is read again then.
func (f followed[T]) watch(ctx context.Context, set map[string]T, version string) (bool, error) {
	changes, err := f.api.Watch(ctx, metav1.ListOptions{FieldSelector: f.fields, ResourceVersion: version})
	if err != nil {
		return false, f.problem(ctx, err)
	}
	defer changes.Stop()
	for change := range changes.ResultChan() {
		o, ok := change.Object.(*unstructured.Unstructured)
		if !ok || change.Type == watch.Error {
			break
		}
		if change.Type == watch.Deleted {
			delete(set, o.GetName())
		} else if set[o.GetName()], err = f.read(o); err != nil {
			return false, err
		}
		if done, err := f.see(set); err != nil || done {
			return done, err
		}
	}
	return false, ctx.Err()
}

// problem is the end of the time where that is why a request failed.
func (f followed[T]) problem(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return f.session.explain(err)
}
