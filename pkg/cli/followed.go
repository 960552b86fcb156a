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

	"github.com/bcsnet/bcsnet/pkg/cli/app"
)

// waitSet is a set of objects that is kept as the API server has it.
type waitSet[T any] struct {
	session *app.App
	api     dynamic.ResourceInterface
	// fields selects the objects: one that no longer matches leaves the set.
	fields string
	// read keeps what is needed of an object.
	read func(*unstructured.Unstructured) (T, error)
	// see is told of the set when it was read and after every change; the end is true or an error.
	see func(map[string]T) (bool, error)
}

// named selects the one object of a name.
func named(name string) string { return fields.OneTermEqualSelector("metadata.name", name).String() }

// remaining shares a time limit among several things that are waited for one after the other: it says how
// much is left; 0 is for ever.
func remaining(s *app.App, limit time.Duration) func() time.Duration {
	began := s.Now()
	return func() time.Duration {
		if limit == 0 {
			return 0
		}
		return max(limit-s.Now().Sub(began), 1) // what is left of a limit is never for ever
	}
}

// lookTime is how much longer than the waiting the first look at the set may take.
const lookTime = 10 * time.Second

// errTooLong: the time for waiting is over, and what was waited for has not come.
var errTooLong = errors.New("the time is over")

// until follows the set until see has seen enough, for at most some time; 0 is for ever. The set is seen
// once at least. That the time is over is the error errTooLong.
func (f waitSet[T]) until(ctx context.Context, limit time.Duration) error {
	following, stop := context.WithCancel(ctx)
	defer stop()
	changes, ended := make(chan change), make(chan error, 1)
	all := newFollower(f.session, f.api, metav1.ListOptions{FieldSelector: f.fields}, 0, changes)
	go func() { ended <- all.run(following) }()
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
			if whole = whole || c.kind == watch.Bookmark; !whole {
				continue
			}
			if done, err := f.see(set); err != nil || done {
				return err
			}
			if late {
				return errTooLong
			}
		case err := <-ended:
			return err
		case <-over:
			if whole {
				return errTooLong
			}
			if late {
				return context.DeadlineExceeded
			}
			late, over = true, time.After(lookTime)
		}
	}
}

func (f waitSet[T]) take(set map[string]T, c change) (err error) {
	switch c.kind {
	case watch.Added, watch.Modified:
		set[c.name], err = f.read(c.object)
	case watch.Deleted:
		delete(set, c.name)
	default:
	}
	return err
}
