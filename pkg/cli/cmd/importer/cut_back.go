package importer

import (
	"context"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/importer"
	"github.com/bcsnet/bcsnet/pkg/importer/system"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// returning has the addresses that go back to the other system while it runs.
type returning struct {
	*view

	here importer.Here
	all  []importer.Return
	stay []importer.Staying
}

// returns plans what goes back. It is nil if the other system has withdrawn nothing for us.
func (v *revert) returns(ctx context.Context, here importer.Here) (*returning, error) {
	if v.system.Withdrawer == nil {
		return nil, nil
	}
	items, _, err := listOthers(ctx, v.App, v.system.Withdrawer.Kind())
	if err != nil {
		return nil, err
	}
	stock := v.stock
	if v.node == "" {
		stock = 0
		if !slices.ContainsFunc(items, func(o unstructured.Unstructured) bool {
			return o.GetAnnotations()[v1.WithdrawnAnnotation] != ""
		}) {
			return nil, nil
		}
	}
	at, err := (&takeOver{App: v.App, system: v.system, node: v.node, stock: stock}).see(ctx)
	if err != nil {
		return nil, err
	}
	r := &returning{view: at, here: here}
	r.all, r.stay = at.Returns(here)
	return r, nil
}

// show prints the addresses that return to the other system.
func (r *returning) show(s *app.App, to system.System) {
	for _, one := range r.all {
		addrs := one.Addrs()
		s.Say.Start("back to %s: pool %s: %s of pods, %d free: %s", to.Title, one.Pool,
			humanize.Plural(len(one.Held), "address"), len(one.Free), resource.Spell(ipaddr.SetOfAddrs(addrs...)))
	}
}

// cutBack takes back the cut-over of one node.
func (v *revert) cutBack(ctx context.Context) error {
	if err := haveNode(ctx, v.App, v.node); err != nil {
		return err
	}
	r, err := v.returns(ctx, importer.Here{System: v.system.Name, Now: v.leases.Now(), By: v.Author(ctx)})
	if err != nil {
		return err
	}
	r.show(v.App, v.system)
	v.showStay(r.stay)
	stay := importer.Reversal{Stay: r.stay}
	if len(r.all) == 0 {
		v.Say.Note("nothing to return: no pod of %s has an address, and no free ones are above --addresses", v.node)
		return v.rest(stay)
	}
	if err := v.Confirm(ctx, v.yes, "Return these addresses to "+v.system.Title+"?"); err != nil {
		return err
	}
	return app.Several{v.giveReturns(ctx, r), v.rest(stay)}.Compact()
}

// giveReturns gives addresses back in the order opposite to a cut-over: they are reserved here, go out of the pool
// here, and only then may the other system allocate them.
func (v *revert) giveReturns(ctx context.Context, r *returning) error {
	if v.DryRun == app.DryRunClient {
		return nil
	}
	api, err := resource.NewPools(v.App)
	if err != nil {
		return err
	}
	for _, one := range r.all {
		if err := v.lock.check(ctx); err != nil {
			return err
		}
		given, err := v.reserve(ctx, r, one)
		if err != nil {
			return err
		}
		set := ipaddr.SetOfAddrs(given...)
		if r.Here[one.Pool] != nil {
			if err := rewrite(ctx, api, one.Pool, nil, set); err != nil {
				return err
			}
		}
		if err := v.lock.check(ctx); err != nil {
			return err
		}
		i := slices.IndexFunc(r.Pools, func(p v1.BCSNetPool) bool { return p.Name == one.Pool })
		if err := (withdrawals{v.App, v.system.Withdrawer}).change(ctx, &r.Pools[i], ipaddr.SetOf(), set); err != nil {
			return err
		}
		v.Say.Done("pool %s: %s back to %s: %s", one.Pool, resource.Addresses(set), v.system.Title, resource.Spell(set))
	}
	return nil
}

// reserve reserves the addresses of a return, and returns those that are.
func (v *revert) reserve(ctx context.Context, r *returning, one importer.Return) (given []netip.Addr, err error) {
	pool, made := r.Index.Pools.Get(one.Pool)
	todo := slices.Concat(one.Held, one.Free)
	if !made {
		return one.Addrs(), nil // nobody can get them here
	}
	done := make([]bool, len(todo))
	failed := resource.InBulk(ctx, v.App, todo, "returned", func(i int, l lease.Lease) (err error) {
		now := l
		switch _, back := r.here.Back(l); {
		case importer.GivenBack(r.here.System, l):
		case back:
			now, _, err = v.leases.Update(ctx, l, r.here.Back, func(now lease.Lease) bool {
				_, ok := r.here.Back(now)
				return ok
			})
		default:
			now, _, err = allocator.ReserveLease(ctx, v.leases, l, pool.Params(), r.here.Change(lease.VerbReserve))
		}
		done[i] = importer.GivenBack(r.here.System, now)
		return resource.Explain(v.App, err)
	})
	for i, l := range todo {
		if done[i] && failed[i] == nil {
			given = append(given, l.Addr)
		}
	}
	if len(given) < len(todo) && ctx.Err() == nil {
		v.Say.Note("%s changed meanwhile and stay here: run it again", humanize.Plural(len(todo)-len(given), "address"))
	}
	return given, resource.Unfinished(ctx, "returned", todo, failed)
}
