package resource

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/internal/suggest"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// Pools reads and writes pools.
type Pools struct {
	*app.App
	API dynamic.ResourceInterface
}

// Pool is a pool, decoded and as stored.
type Pool struct {
	*v1.BCSNetPool
	Stored *unstructured.Unstructured
	// parent is the parent of a group; nil if it was not read. whole is the parent of a block.
	parent, whole *v1.BCSNetPool
}

// Object returns the pool as stored.
func (p Pool) Object() unstructured.Unstructured { return *p.Stored }

// NewPools returns a client for the pools of the cluster.
func NewPools(s *app.App) (*Pools, error) {
	c, err := s.Dynamic()
	if err != nil {
		return nil, err
	}
	return &Pools{App: s, API: c.Resource(Of(v1.PoolResource))}, nil
}

// ReadPool decodes a pool.
func ReadPool(stored *unstructured.Unstructured) (Pool, error) {
	p := Pool{BCSNetPool: &v1.BCSNetPool{}, Stored: stored}
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(stored.Object, p.BCSNetPool)
	if err != nil {
		return p, fmt.Errorf("pool %s cannot be read: %w", stored.GetName(), err)
	}
	return p, nil
}

// Get reads a pool. The error for a missing one suggests a similar name.
func (p *Pools) Get(ctx context.Context, name string) (Pool, error) {
	if len(validation.NameIsDNSSubdomain(name, false)) > 0 {
		return Pool{}, app.Usagef("%q cannot be the name of a pool", name)
	}
	stored, err := p.API.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && !NoSuchResource(err):
		return Pool{}, p.unknown(ctx, name)
	case err != nil:
		return Pool{}, Explain(p.App, err)
	}
	one, err := ReadPool(stored)
	if err != nil || one.Spec.Parent == "" {
		return one, err
	}
	parent, err := p.maybe(ctx, one.Spec.Parent)
	return one.of(parent.BCSNetPool), err
}

// maybe reads a pool. If it does not exist, it returns an empty one.
func (p *Pools) maybe(ctx context.Context, name string) (Pool, error) {
	stored, err := p.API.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return Pool{}, nil
	case err != nil:
		return Pool{}, Explain(p.App, err)
	}
	return ReadPool(stored)
}

// of returns a pool with its parent set; parent may be nil.
func (p Pool) of(parent *v1.BCSNetPool) Pool {
	p.parent, p.whole = parent, nil
	if parent != nil && parent.Spec.BlockSize > 0 {
		p.parent, p.whole = nil, parent
	}
	return p
}

// Named reads pools by name. It fails if one is missing.
func (p *Pools) Named(ctx context.Context, names []string) ([]Pool, error) {
	return readNamed(ctx, names, p.Get)
}

// List reads all pools, by name.
func (p *Pools) List(ctx context.Context) ([]Pool, error) {
	return p.ListWith(ctx, metav1.ListOptions{})
}

// ListWith reads the pools that match selectors, sorted by name.
func (p *Pools) ListWith(ctx context.Context, which metav1.ListOptions) ([]Pool, error) {
	all, err := readAll(ctx, p.App, p.API, which, ReadPool)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b Pool) int { return cmp.Compare(a.Name, b.Name) })
	return WithParents(all), nil
}

// WithParents returns the pools, each with its parent if that is among them.
func WithParents(all []Pool) []Pool {
	byName := map[string]*v1.BCSNetPool{}
	for _, one := range all {
		byName[one.Name] = one.BCSNetPool
	}
	out := slices.Clone(all)
	for i := range out {
		out[i] = out[i].of(byName[out[i].Spec.Parent])
	}
	return out
}

// unknown returns the error for a pool that does not exist.
func (p *Pools) unknown(ctx context.Context, name string) error {
	all, err := p.List(ctx)
	if err != nil {
		return err
	}
	f := app.Refuse(app.ReasonPoolNotFound, "there is no pool %s", name)
	names := app.Map(all, func(o Pool) string { return o.Name })
	if near := suggest.Nearest(name, names); near != "" {
		return f.WithHint("did you mean %s? All pools: bcsnetctl pool list", near)
	}
	if len(names) == 0 {
		return f.WithHint("there are no pools at all; make one: bcsnetctl pool create --help")
	}
	return f.WithHint("see all pools: bcsnetctl pool list")
}

// Others returns the other pools, not arranged side by side, and whether the named one exists.
func (p *Pools) Others(ctx context.Context, name string) (others []ipam.Pool, exists bool, err error) {
	all, err := p.List(ctx)
	if err != nil {
		return nil, false, err
	}
	for _, o := range all {
		if o.Name == name {
			exists = true
			continue
		}
		others = append(others, store.Pool(o.BCSNetPool))
	}
	return others, exists, nil
}

// maxConflicts bounds the attempts of an edit if others change the pool, too.
const maxConflicts = 12

// Edit changes fields of a pool's spec. change gets the current pool and returns the fields to set; nil removes a
// field, an empty map changes nothing. Only these fields are sent. If somebody else changed the pool meanwhile, change
// is called again.
func (p *Pools) Edit(
	ctx context.Context, name string, change func(Pool) (map[string]any, error),
) (edited Pool, err error) {
	var before Pool
	backoff := wait.Backoff{Steps: maxConflicts, Duration: 10 * time.Millisecond, Factor: 1.7, Jitter: 0.5}
	err = wait.ExponentialBackoffWithContext(ctx, backoff, func(ctx context.Context) (bool, error) {
		if edited, err = p.Get(ctx, name); err != nil {
			return false, err
		}
		if edited.DeletionTimestamp != nil {
			return false, Terminating(name)
		}
		spec, err := change(edited)
		if before = edited; err != nil || len(spec) == 0 {
			return err == nil, err
		}
		edited, err = p.patch(ctx, edited, spec)
		if apierrors.IsConflict(err) {
			return false, nil
		}
		return err == nil, Explain(p.App, err)
	})
	if err == nil {
		WarnReverted(p.App, before, DiffersIn(before, edited))
	}
	if wait.Interrupted(err) && ctx.Err() == nil {
		err = app.Refuse(ipam.ReasonUnavailable, "pool %s was changed by others %d times in a row", name, maxConflicts).
			WithHint("try again in a moment")
	}
	return edited, err
}

// Terminating returns the refusal to change a pool that is being deleted.
func Terminating(name string) error {
	return app.Refuse(app.ReasonPoolTerminating, "pool %s is being deleted and takes no changes", name).
		WithHint("see what it waits for: bcsnetctl pool describe %s", name)
}

func (p *Pools) patch(ctx context.Context, old Pool, spec map[string]any) (Pool, error) {
	if p.DryRun == app.DryRunClient {
		next := old.Stored.DeepCopy()
		for field, value := range spec {
			if value == nil {
				unstructured.RemoveNestedField(next.Object, "spec", field)
			} else if err := unstructured.SetNestedField(next.Object, value, "spec", field); err != nil {
				return Pool{}, err
			}
		}
		return ReadPool(next)
	}
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": old.ResourceVersion},
		"spec":     spec,
	})
	if err != nil {
		return Pool{}, err
	}
	stored, err := p.API.Patch(ctx, old.Name, types.MergePatchType, body,
		metav1.PatchOptions{FieldManager: app.ProgramName, DryRun: p.DryRun.Options()})
	if err != nil {
		return Pool{}, err
	}
	return ReadPool(stored)
}

// Values converts strings to the type of a list in an object.
func Values(list []string) []any {
	out := make([]any, 0, len(list))
	for _, v := range list {
		out = append(out, v)
	}
	return out
}

// PoolKind is the kind of a pool.
const PoolKind = "BCSNetPool"

// AllPools reads all pools of the cluster.
func AllPools(ctx context.Context, s *app.App) ([]Pool, error) {
	api, err := NewPools(s)
	if err != nil {
		return nil, err
	}
	return api.List(ctx)
}

// OnePool reads a pool.
func OnePool(ctx context.Context, s *app.App, name string) (Pool, error) {
	api, err := NewPools(s)
	if err != nil {
		return Pool{}, err
	}
	return api.Get(ctx, name)
}

// ChoosePools reads the named pools without duplicates, or all pools if none is named.
func ChoosePools(ctx context.Context, s *app.App, names []string) ([]Pool, error) {
	api, err := NewPools(s)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return api.List(ctx)
	}
	return api.Named(ctx, names)
}
