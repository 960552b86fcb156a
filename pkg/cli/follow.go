package cli

import (
	"context"
	"errors"
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

// deadline shares a time limit among several things that are waited for one after the other: it says how
// much is left; 0 is for ever.
func (s *session) deadline(limit time.Duration) func() time.Duration {
	began := s.now()
	return func() time.Duration {
		if limit == 0 {
			return 0
		}
		return max(limit-s.now().Sub(began), 1) // what is left of a limit is never for ever
	}
}

// lookTime is how much longer than the waiting a look at the set may take.
const lookTime = 10 * time.Second

// until watches the set until see has seen enough, for at most some time; 0 is for ever. The set is seen
// once at least. That the time is over is the error errTooLong.
func (f followed[T]) until(ctx context.Context, limit time.Duration) error {
	waiting := ctx
	if limit > 0 {
		var stopLooking, stopWaiting context.CancelFunc
		ctx, stopLooking = context.WithTimeout(ctx, limit+lookTime)
		defer stopLooking()
		waiting, stopWaiting = context.WithTimeout(ctx, limit)
		defer stopWaiting()
	}
	for {
		set, version, err := f.list(ctx)
		if err != nil {
			return err
		}
		done, err := f.see(set)
		if err == nil && !done {
			done, err = f.watch(waiting, set, version)
		}
		if err != nil || done {
			return err
		}
		select {
		case <-waiting.Done():
		case <-time.After(followRest):
		}
		switch {
		case ctx.Err() != nil: // interrupted
			return ctx.Err()
		case waiting.Err() != nil:
			return errTooLong
		}
	}
}

// errTooLong: the time for waiting is over, and what was waited for has not come.
var errTooLong = errors.New("the time is over")

func (f followed[T]) list(ctx context.Context) (map[string]T, string, error) {
	set := map[string]T{}
	for options := (metav1.ListOptions{FieldSelector: f.fields, Limit: pageSize}); ; {
		page, err := f.api.List(ctx, options)
		if err != nil {
			return nil, "", f.session.explain(err)
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
	switch {
	case ctx.Err() != nil:
		return false, nil
	case err != nil:
		return false, f.session.explain(err)
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
	return false, nil
}
