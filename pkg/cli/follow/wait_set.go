package follow

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
)

// WaitSet is a set of objects that mirrors the API server.
type WaitSet[T any] struct {
	App *app.App
	API dynamic.ResourceInterface
	// Fields selects the objects. An object that no longer matches leaves the set.
	Fields string
	// Read converts an object to an item of the set.
	Read func(*unstructured.Unstructured) (T, error)
	// See receives the set after the first list and after every change. The wait ends when it returns true or an error.
	See func(map[string]T) (bool, error)
}

// Named returns the field selector for the object with a name.
func Named(name string) string { return fields.OneTermEqualSelector("metadata.name", name).String() }

// Remaining returns a function that returns the rest of a time limit, for several consecutive waits. 0 means no limit.
func Remaining(s *app.App, limit time.Duration) func() time.Duration {
	began := s.Now()
	return func() time.Duration {
		if limit == 0 {
			return 0
		}
		return max(limit-s.Now().Sub(began), 1) // never 0, which means no limit
	}
}

// lookTime bounds how much longer than the limit the first list may take.
const lookTime = 10 * time.Second

// ErrTooLong reports that the time is over before the state was reached.
var ErrTooLong = errors.New("the time is over")

// Until watches the set until See ends the wait. After limit it returns ErrTooLong, but not before See was called once.
// 0 means no limit.
func (f WaitSet[T]) Until(ctx context.Context, limit time.Duration) error {
	following, stop := context.WithCancel(ctx)
	defer stop()
	changes, ended := make(chan Change), make(chan error, 1)
	all := NewFollower(f.App, f.API, metav1.ListOptions{FieldSelector: f.Fields}, 0, changes)
	go func() { ended <- all.Run(following) }()
	var over <-chan time.Time
	if limit > 0 {
		over = time.After(limit)
	}
	set, whole, late := map[string]T{}, false, false
	for {
		select {
		case c := <-changes:
			if err := f.take(set, c); err != nil {
				return err
			}
			if whole = whole || c.Kind == watch.Bookmark; !whole {
				continue
			}
			if done, err := f.See(set); err != nil || done {
				return err
			}
			if late {
				return ErrTooLong
			}
		case err := <-ended:
			return err
		case <-over:
			if whole {
				return ErrTooLong
			}
			if late {
				return context.DeadlineExceeded
			}
			late, over = true, time.After(lookTime)
		}
	}
}

func (f WaitSet[T]) take(set map[string]T, c Change) (err error) {
	switch c.Kind {
	case watch.Added, watch.Modified:
		set[c.Name], err = f.Read(c.Object)
	case watch.Deleted:
		delete(set, c.Name)
	default:
	}
	return err
}
