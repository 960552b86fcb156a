package follow

import (
	"cmp"
	"context"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
)

// watchHelp is the help text about --watch.
const watchHelp = `

With --watch the command keeps running. A terminal shows the list as it changes;
if the list is too long, the newest changes come first. q or Ctrl-C ends it with
exit code 0. If the output is not a terminal, each change is a line, and its
EVENT says ADDED, MODIFIED or DELETED; with -o json and the like, an object.`

// AddWatch adds the flag --watch to a list.
func AddWatch(o *printer.Output, cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&o.Watch, "watch", "w", false, "go on and show what changes, until q or Ctrl-C")
	cmd.Long += watchHelp
}

// Source selects the objects of a list.
type Source struct {
	Kind  schema.GroupVersionResource
	Which metav1.ListOptions
	// Namespace limits namespaced objects to one namespace; empty means all.
	Namespace string
}

// View shows a list as it changes.
type View[T any] interface {
	// begin shows the list for the first time.
	begin(all []T) error
	// change shows one more change.
	change(kind watch.EventType, item T) error
	// Refresh is called several times a second with the present list.
	Refresh(now *Watched[T]) error
}

// refreshEvery is the minimum interval between drawings.
const refreshEvery = 250 * time.Millisecond

// Watched is a watched list, with its items by name.
type Watched[T any] struct {
	View    View[T]
	Compare func(a, b T) int
	// Shows filters the objects that the API server selects; nil means all.
	Shows func(T) bool
	// Ranked: the items are a ranking, so the latest changes do not come first.
	Ranked bool
	Items  map[string]T
	begun  bool
	// changed has the number of each item's latest change; changes counts all changes.
	changed map[string]int
	changes int
}

func (w *Watched[T]) all() []T {
	return slices.SortedFunc(maps.Values(w.Items), w.Compare)
}

// latest returns the changed items, the latest change first, followed by the others in order.
func (w *Watched[T]) latest() []T {
	if w.Ranked {
		return w.all()
	}
	names := slices.SortedFunc(maps.Keys(w.Items), func(a, b string) int {
		return cmp.Or(cmp.Compare(w.changed[b], w.changed[a]), w.Compare(w.Items[a], w.Items[b]))
	})
	return app.Map(names, func(name string) T { return w.Items[name] })
}

// begin shows the items that were added so far.
func (w *Watched[T]) begin() error {
	w.begun = true
	return w.View.begin(w.all())
}

// put adds an item, or changes it.
func (w *Watched[T]) put(name string, item T) error {
	kind := watch.Added
	if _, known := w.Items[name]; known {
		kind = watch.Modified
	}
	w.Items[name] = item
	if !w.begun {
		return nil
	}
	if w.changed == nil {
		w.changed = map[string]int{}
	}
	w.changes++
	w.changed[name] = w.changes
	return w.View.change(kind, item)
}

// drop removes an item, and shows its last state.
func (w *Watched[T]) drop(name string) error {
	item, known := w.Items[name]
	delete(w.Items, name)
	delete(w.changed, name)
	if !known || !w.begun {
		return nil
	}
	return w.View.change(watch.Deleted, item)
}

// Become replaces the items and shows the differences. The first call shows the whole list.
func (w *Watched[T]) Become(items []T, nameOf func(T) string) error {
	gone := maps.Clone(w.Items)
	for _, item := range items {
		name := nameOf(item)
		before, known := gone[name]
		delete(gone, name)
		if known && reflect.DeepEqual(before, item) {
			continue
		}
		if err := w.put(name, item); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(gone)) {
		if err := w.drop(name); err != nil {
			return err
		}
	}
	if !w.begun {
		return w.begin()
	}
	return nil
}

// WatchObjects watches a list with one item for each object of a kind.
func WatchObjects[T any](
	ctx context.Context, s *app.App, from Source, read func(*unstructured.Unstructured) (T, error), w *Watched[T],
) error {
	take := func(c Change) error {
		switch c.Kind {
		case watch.Bookmark:
			return w.begin()
		case watch.Deleted:
			return w.drop(c.Name)
		default:
		}
		item, err := read(c.Object)
		if err != nil {
			return err
		}
		if w.Shows != nil && !w.Shows(item) {
			return w.drop(c.Name)
		}
		return w.put(c.Name, item)
	}
	return Run(ctx, s, []Source{from}, take, func() error { return w.View.Refresh(w) })
}

// Run calls take with every change of the sources, and tick several times a second, until the context ends or the user
// presses q. It then returns no error.
func Run(ctx context.Context, s *app.App, from []Source, take func(Change) error, tick func() error) error {
	ctx, stop := s.Quittable(ctx)
	defer stop()
	group, running := errgroup.WithContext(ctx)
	changes, told := make(chan Change), &warnOnce{of: map[int]bool{}}
	for i, src := range from {
		f, err := startFollower(s, src, i, changes, told)
		if err != nil {
			return err
		}
		group.Go(func() error { return f.Run(running) })
	}
	group.Go(func() error {
		ticker := time.NewTicker(refreshEvery)
		defer ticker.Stop()
		for {
			var err error
			select {
			case c := <-changes:
				err = take(c)
			case <-ticker.C:
				err = tick()
			case <-running.Done():
				return running.Err()
			}
			if err != nil {
				return err
			}
		}
	})
	if err := group.Wait(); ctx.Err() == nil {
		return err
	}
	return nil
}

// Mirror applies a change to a map of objects by name.
func Mirror[T any](all map[string]T, c Change, read func(*unstructured.Unstructured) (T, error)) error {
	if c.Kind == watch.Deleted {
		delete(all, c.Name)
		return nil
	}
	item, err := read(c.Object)
	if err == nil {
		all[c.Name] = item
	}
	return err
}
