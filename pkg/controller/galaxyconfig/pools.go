package galaxyconfig

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/compat/galaxy/config"
	"github.com/bcsnet/bcsnet/pkg/controller/configmap"
	"github.com/bcsnet/bcsnet/pkg/controller/informers"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
)

// owns reports whether a pool was created from the ConfigMap.
func (r *reconciler) owns(o *v1.BCSNetPool) bool {
	return o.Annotations[v1.FloatingIPConfigAnnotation] == r.from.String()
}

func isGone(o *v1.BCSNetPool) bool { return o.Annotations[v1.FloatingIPGoneAnnotation] != "" }

// poolHandler triggers a comparison of the pools if somebody changes one that was created from the ConfigMap, and if
// one that will be deleted may have become empty.
func (r *reconciler) poolHandler() toolscache.ResourceEventHandler {
	return informers.SpecHandler(func(o *v1.BCSNetPool) {
		if r.owns(o) {
			r.wakeUp()
		}
	}, isGone)
}

// changes are the changes of a pass, by names of pools.
type changes struct{ created, updated, cordoned, deleted []string }

func (c changes) String() string {
	return configmap.Describe(configmap.Change{How: "created", Names: c.created},
		configmap.Change{How: "updated", Names: c.updated}, configmap.Change{How: "cordoned", Names: c.cordoned},
		configmap.Change{How: "deleted", Names: c.deleted})
}

// apply makes the pools match the entries. It continues after an error. The caller must look for conflicts among the
// errors first: they end when newer versions of the pools arrive.
func (r *reconciler) apply(ctx context.Context, entries []config.Entry) (done changes, err error) {
	var list v1.BCSNetPoolList
	if err := r.cache.List(ctx, &list); err != nil {
		return done, err
	}
	var ours []*v1.BCSNetPool
	taken := map[string]bool{}
	for i := range list.Items {
		if o := &list.Items[i]; r.owns(o) {
			ours = append(ours, o)
		} else {
			taken[o.Name] = true
		}
	}
	plan := config.Make(entries, ours, taken)
	var errs []error
	for _, o := range plan.Gone { // first, because others may have their addresses now
		errs = append(errs, r.retire(ctx, o, entries, &done))
	}
	for _, w := range plan.Wanted {
		errs = append(errs, r.ensure(ctx, w, &done))
	}
	return done, errors.Join(errs...)
}

// ensure creates or changes the pool of an entry.
func (r *reconciler) ensure(ctx context.Context, w config.Wanted, done *changes) error {
	if w.Pool == nil {
		o := &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: w.Name}}
		w.Entry.Set(&o.Spec)
		r.mark(o)
		if err := r.client.Create(ctx, o); err != nil {
			return fmt.Errorf("creating pool %s: %w", w.Name, err)
		}
		done.created = append(done.created, w.Name)
		return nil
	}
	if !w.Pool.DeletionTimestamp.IsZero() {
		return fmt.Errorf("pool %s is being deleted; it is created again when that is done", w.Name)
	}
	next := w.Pool.DeepCopy()
	w.Entry.Set(&next.Spec)
	r.mark(next)
	if isGone(next) { // the entry is back
		delete(next.Annotations, v1.FloatingIPGoneAnnotation)
		next.Spec.Cordoned = false
	}
	changed, err := configmap.Patch(ctx, r.client, w.Pool, next)
	if changed {
		done.updated = append(done.updated, w.Name)
	}
	return err
}

func (r *reconciler) mark(o *v1.BCSNetPool) {
	configmap.Mark(o, v1.SourceFloatingIP, v1.FloatingIPConfigAnnotation, r.from)
}

// retire cordons a pool whose entry was removed, and deletes it if no address is held and it has no groups, whose
// creators may want the entry back. If an address is allocated in between, the deletion waits for it, like any deletion
// of a pool.
func (r *reconciler) retire(ctx context.Context, o *v1.BCSNetPool, entries []config.Entry, done *changes) error {
	if !o.DeletionTimestamp.IsZero() {
		return nil
	}
	next := o.DeepCopy()
	next.Annotations[v1.FloatingIPGoneAnnotation] = "true"
	next.Spec.Cordoned = true
	config.Retire(next, entries)
	changed, err := configmap.Patch(ctx, r.client, o, next)
	if changed {
		done.cordoned = append(done.cordoned, o.Name+r.heldText(o.Name))
	}
	if changed || err != nil || r.held(o.Name) > 0 || len(r.groups(o.Name)) > 0 {
		return err
	}
	if err := r.client.Delete(ctx, o, client.Preconditions{UID: &o.UID,
		ResourceVersion: &o.ResourceVersion}); err != nil {
		return fmt.Errorf("deleting pool %s: %w", o.Name, err)
	}
	done.deleted = append(done.deleted, o.Name)
	return nil
}

// held returns the number of held addresses of a pool.
func (r *reconciler) held(pool string) int {
	c := r.index.Pools.Counts(pool, r.now())
	return c.Active + c.Reserved
}

func (r *reconciler) groups(pool string) []string {
	blocks := r.index.Pools.BlocksOf(pool)
	return slices.DeleteFunc(r.index.Pools.Children(pool),
		func(name string) bool { return slices.Contains(blocks, name) })
}

// heldText describes what a pool that will be deleted waits for.
func (r *reconciler) heldText(pool string) string {
	var waits []string
	if n := r.held(pool); n > 0 {
		waits = append(waits, fmt.Sprintf("%s in use or reserved %s released", humanize.Plural(n, "address"),
			humanize.OneOr(n, "is", "are")))
	}
	if groups := r.groups(pool); len(groups) > 0 {
		waits = append(waits, fmt.Sprintf("%s %s deleted: %s", humanize.OneOr(len(groups), "its group", "its groups"),
			humanize.OneOr(len(groups), "is", "are"), humanize.List(groups)))
	}
	if len(waits) == 0 {
		return ""
	}
	return " until " + strings.Join(waits, ", and until ")
}
