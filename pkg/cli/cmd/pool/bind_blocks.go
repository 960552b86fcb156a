package pool

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/leasing"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/block"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// maxBlocks bounds the blocks that one command gives to a namespace.
const maxBlocks = 256

func (v *poolBind) checkBlocks() (err error) {
	switch {
	case v.chosen("blocks") && (v.blocks < 1 || v.blocks > maxBlocks):
		return app.Usagef("--blocks %d is not between 1 and %d", v.blocks, maxBlocks)
	case v.block == "" && v.chosen("block"):
		return app.Usagef("--block is empty: write the block as a CIDR, such as 10.32.4.64/27")
	case v.block == "":
		return nil
	case v.chosen("blocks"):
		return app.Usagef("--block is one block, and --blocks says how many: use one of them")
	case len(v.namespaces) > 1:
		return app.Usagef("--block is of one namespace, and %d are named", len(v.namespaces))
	}
	if v.which, err = netip.ParsePrefix(v.block); err != nil {
		return app.Usagef("--block %q is not a CIDR, such as 10.32.4.64/27", v.block)
	}
	return nil
}

func (v *poolBind) isBlock(ctx context.Context, api *resource.Pools, p resource.Pool) (bool, error) {
	if !resource.IsBlock(p) {
		return false, nil
	}
	parent, err := api.Get(ctx, p.Spec.Parent)
	return err == nil && parent.Spec.BlockSize > 0, err
}

// ofBlock answers a request about a block, which belongs to one namespace for as long as it exists.
func (v *poolBind) ofBlock(p resource.Pool) error {
	owner, parent := resource.OwnerOf(p), p.Spec.Parent
	if !v.unbind && slices.Equal(v.namespaces, []string{owner}) {
		v.Say.Note("pool %s is the block of namespace %s already", p.Name, owner)
		return v.output.Object(v.Out, p.Stored)
	}
	f := app.Refuse(app.ReasonPoolInvalid,
		"pool %s is a block of pool %s, and belongs only to namespace %s for as long as it exists",
		p.Name, parent, owner)
	if v.unbind {
		return f.WithHint("return it: bcsnetctl pool unbind %s --namespace %s --block %s", parent, owner,
			p.Spec.AvailableIPs[0])
	}
	return f.WithHint("assign a block to a namespace: bcsnetctl pool bind %s --namespace %s", parent,
		v.namespaces[0])
}

// allocator starts an allocator that knows pools and leases. It gives nothing after the returned context has ended,
// because changes of pools wait only that long for requests that do not know of them. The time counts from the reading
// of the pools.
func (v *poolBind) allocator(ctx context.Context) (a *leasing.Allocator, _ context.Context, stop func(), err error) {
	resource.OutlivePipes()
	if a, err = leasing.Start(ctx, v.App, nil); err != nil {
		return nil, nil, nil, err
	}
	asking, cancel := context.WithTimeout(ctx, allocator.MaxRequestTime)
	stop = func() { cancel(); a.Stop() }
	if err = a.Open(asking, v.App); err != nil {
		stop()
		return nil, nil, nil, err
	}
	return a, asking, stop, nil
}

// give gives the namespaces blocks of a split pool. It also binds the pool to them if the pool has autoAssign or is
// bound to other namespaces. Before any change it checks that there are enough blocks.
func (v *poolBind) give(ctx context.Context, api *resource.Pools, p resource.Pool) error {
	if p.DeletionTimestamp != nil {
		return resource.Terminating(p.Name)
	}
	a, asking, stop, err := v.allocator(ctx)
	if err != nil {
		return err
	}
	defer stop()
	todo, err := v.lacking(a.Index)
	if err != nil {
		return err
	}
	if p.Spec.AutoAssign || store.Pool(p.BCSNetPool).Bound() {
		if p, err = v.bindNames(ctx, api, v.namespaces); err != nil {
			return err
		}
	}
	given, err := v.giveAll(asking, a, todo)
	if said := v.sayGiven(ctx, api, p, given); err == nil {
		err = said
	}
	if err != nil {
		return err
	}
	return v.printBlocks(ctx, api, a.Index, given)
}

// lacking returns the blocks that the namespaces still need, as they will be created if nobody else takes them. If
// there are not enough blocks for all, it fails.
func (v *poolBind) lacking(x *index.Index) (todo []ipam.Pool, err error) {
	defer func() {
		for _, b := range todo {
			x.Pools.RemovePool(b.Name)
		}
	}()
	for _, ns := range v.namespaces {
		own := x.Pools.OwnBlocks(v.pool, ns)
		n := v.blocks - len(own)
		if v.which.IsValid() {
			if n = 1; slices.Contains(own, block.Name(v.pool, v.which)) {
				n = 0
			}
		}
		if n <= 0 {
			v.Say.Note("namespace %s has %s of pool %s already: %s", ns, humanize.Plural(len(own), "block"), v.pool,
				humanize.List(own))
			continue
		}
		for range n {
			b, refusal := x.Pools.NextBlock(v.pool, ns, v.which)
			switch {
			case refusal != nil && len(todo) == 0:
				return nil, refusal
			case refusal != nil:
				return todo, app.Refuse(refusal.Reason, "nothing was done: %s, with the %s to be given before",
					refusal.Message, humanize.Plural(len(todo), "block")).WithHint("%s", refusal.Hint)
			}
			x.Pools.SetPool(b) // the next one is another
			todo = append(todo, b)
		}
	}
	return todo, nil
}

// giveAll creates the blocks. It stops at the first error.
func (v *poolBind) giveAll(ctx context.Context, a *leasing.Allocator, todo []ipam.Pool) (given []ipam.Pool, err error) {
	for _, b := range todo {
		if v.DryRun == app.DryRunClient {
			a.Index.Pools.SetPool(b)
		} else if b, err = a.Stocker.GiveBlock(ctx, v.pool, b.Owner(), v.which); err != nil {
			return given, err
		}
		v.Say.Done("block %s (%s) given to namespace %s", b.Name, b.Plan.CIDR, b.Owner())
		given = append(given, b)
	}
	return given, nil
}

// sayGiven prints the effect of new blocks on the chains of their namespaces, and warns of namespaces that do not
// exist.
func (v *poolBind) sayGiven(ctx context.Context, api *resource.Pools, p resource.Pool, given []ipam.Pool) error {
	if len(given) == 0 {
		return nil
	}
	labels, err := resource.LabelsOfNamespaces(ctx, v.App)
	if err != nil {
		return err
	}
	all, err := api.List(ctx)
	if err != nil {
		return err
	}
	others := []ipam.Pool{store.Pool(p.BCSNetPool)} // as changed, also in a dry run
	for _, o := range all {
		if o.Name != p.Name && !slices.ContainsFunc(given, func(b ipam.Pool) bool { return b.Name == o.Name }) {
			others = append(others, store.Pool(o.BCSNetPool))
		}
	}
	for i, b := range given {
		ns := b.Owner()
		if i > 0 && given[i-1].Owner() == ns {
			continue
		}
		if _, exists := labels[ns]; labels != nil && !exists {
			v.Say.Warn("namespace %s does not exist yet: unless it is created within an hour, its blocks are returned",
				ns)
		}
		sayEffects(v.App, chainEffectsOf(ipam.Pool{}, b, others, labels, nil).say())
	}
	return nil
}

// printBlocks prints all blocks of the namespaces if -o is given.
func (v *poolBind) printBlocks(ctx context.Context, api *resource.Pools, x *index.Index, given []ipam.Pool) error {
	if !v.output.Given() {
		return nil
	}
	items := []unstructured.Unstructured{}
	for _, ns := range v.namespaces {
		for _, name := range x.Pools.OwnBlocks(v.pool, ns) {
			at := slices.IndexFunc(given, func(b ipam.Pool) bool { return b.Name == name })
			if at >= 0 && v.DryRun != app.DryRunNone {
				o, err := runtime.DefaultUnstructuredConverter.ToUnstructured(store.BlockObject(given[at]))
				if err != nil {
					return fmt.Errorf("block %s: %w", name, err)
				}
				items = append(items, unstructured.Unstructured{Object: o})
				continue
			}
			b, err := api.Get(ctx, name)
			if err != nil {
				return err
			}
			items = append(items, *b.Stored)
		}
	}
	return v.output.List(v.Out, items)
}
