package importer

import (
	"context"
	"errors"
	"net/netip"
	"slices"

	"go4.org/netipx"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/importer"
	"github.com/bcsnet/bcsnet/pkg/importer/system"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// view is one look at both systems.
type view struct {
	importer.CutOver

	leases *store.Client
}

// see looks at both systems.
func see(
	ctx context.Context, s *app.App, of system.System, from system.Source, node string, stock uint16,
) (*view, error) {
	defer s.Say.WaitLater("reading both systems in " + s.Where())()
	at := importer.CutOver{
		Node: node, Stock: uint64(stock), InUse: of.Withdrawer.InUse(),
		ByName: of.Withdrawer.ByName(), Here: map[string]*v1.BCSNetPool{},
	}
	w := withdrawals{s, of.Withdrawer}
	items, err := w.list(ctx) // before the rows: what is withdrawn is judged by rows that are not older
	if err != nil {
		return nil, err
	}
	if at.Rows, err = of.Read(ctx, from); err != nil {
		if missing := (*system.NotServedError)(nil); errors.As(err, &missing) {
			err = notServed(missing)
		}
		return nil, err
	}
	var wrong []importer.Remark
	if at.Seen, wrong, err = w.seen(items, at.Rows.Pools); err != nil {
		return nil, err
	}
	at.Conflicts = append(at.Conflicts, wrong...)
	if at.Pods, err = resource.AllPods(ctx, s); err != nil {
		return nil, resource.Explain(s, err)
	}
	pools, err := resource.AllPools(ctx, s)
	if err != nil {
		return nil, err
	}
	for _, p := range pools {
		at.Here[p.Name] = p.BCSNetPool
	}
	leases, err := s.Leases()
	if err != nil {
		return nil, err
	}
	at.Index, err = resource.ReadAll(ctx, s, leases)
	return &view{at, leases}, err
}

// notServed returns the refusal for a system that the cluster does not have.
func notServed(missing *system.NotServedError) error {
	return app.Refuse(app.ReasonPoolNotFound, "%v", missing).WithHint(
		"see which clusters there are: kubectl config get-contexts")
}

// bring makes the leases of the pods, and then adds the settled addresses to the pools here.
func (v *takeOver) bring(ctx context.Context, at *view, shares []importer.Share) error {
	shares = slices.DeleteFunc(slices.Clone(shares), func(s importer.Share) bool {
		return at.Here[s.Pool.Name] == nil || len(s.Settled.Ranges()) == 0
	})
	x := at.Index
	for _, s := range shares {
		x.Pools.SetPool(store.Pool(withAddresses(at.Here[s.Pool.Name], s.Settled, nil)))
	}
	rows := at.CutOver.Leases(shares)
	plan := importer.Make(importer.Input{
		Rows: rows, Index: x, Pods: at.Pods, Now: at.leases.Now(), By: v.Author(ctx),
	})
	for _, r := range slices.Concat(plan.Left, plan.Conflicts) {
		v.Say.Warn("%s: %s", r.Object, r.Cause)
	}
	j := &job{rows: rows, plan: plan, unfinished: map[string]bool{}}
	if err := v.createLeases(ctx, at.leases, j).Compact(); err != nil {
		return err
	}
	api, err := resource.NewPools(v.App)
	if err != nil {
		return err
	}
	for _, s := range shares {
		now, err := v.withdrawals().read(ctx, []v1.BCSNetPool{*s.Pool})
		if err != nil {
			return err
		}
		ready, err := v.ready(ctx, at, rows, ipaddr.Intersect(s.Settled, importer.Union(now.Withdrawn[s.Pool.Name])))
		if err != nil {
			return err
		}
		if err := v.lock.check(ctx); err != nil {
			return err
		}
		if err := rewrite(ctx, api, s.Pool.Name, ready, nil); err != nil {
			return err
		}
		v.Say.Done("pool %s: %s here: %s", s.Pool.Name, resource.Addresses(ready), resource.Spell(ready))
	}
	return nil
}

// ready returns the settled addresses that the pool here may have: their pods have their leases, and what was given
// back is no longer reserved.
func (v *takeOver) ready(ctx context.Context, at *view, rows importer.Rows, set *netipx.IPSet) (*netipx.IPSet, error) {
	leases := at.leases
	all, err := resource.ReadAddresses(ctx, v.App, leases, slices.Collect(ipaddr.All(set)))
	if err != nil {
		return nil, err
	}
	h := importer.Here{System: v.system.Name, By: v.Author(ctx)}
	var ready []netip.Addr
	for _, l := range all {
		i := slices.IndexFunc(rows.Addresses, func(row importer.Address) bool { return row.Addr == l.Addr })
		if i >= 0 && (l.State != lease.Active ||
			l.HasOtherName(rows.Addresses[i].Holder.Namespace, rows.Addresses[i].Holder.PodName)) {
			continue
		}
		if importer.GivenBack(h.System, l) {
			if _, _, err := leases.Update(ctx, l, func(now lease.Lease) (lease.Lease, bool) {
				return lease.Free(now, leases.Now(), h.Change(lease.VerbUnreserve))
			}, func(now lease.Lease) bool { return importer.GivenBack(h.System, now) }); err != nil {
				return nil, resource.Explain(v.App, err)
			}
		}
		ready = append(ready, l.Addr)
	}
	return ipaddr.SetOfAddrs(ready...), nil
}

// rewrite adds addresses to a pool here and takes others out.
func rewrite(ctx context.Context, api *resource.Pools, pool string, more, less *netipx.IPSet) error {
	_, err := api.Edit(ctx, pool, func(p resource.Pool) (map[string]any, error) {
		next := withAddresses(p.BCSNetPool, more, less)
		return map[string]any{"availableIPs": resource.Values(next.Spec.AvailableIPs)}, nil
	})
	return err
}

// withAddresses returns a pool with some addresses more and others less.
func withAddresses(p *v1.BCSNetPool, more, less *netipx.IPSet) *v1.BCSNetPool {
	next := p.DeepCopy()
	set := ipaddr.Subtract(importer.Union(resource.SetOfEntries(p.Spec.AvailableIPs), more), importer.Union(less))
	next.Spec.AvailableIPs = nil
	for _, r := range set.Ranges() {
		next.Spec.AvailableIPs = append(next.Spec.AvailableIPs, ipaddr.FormatRange(r))
	}
	return next
}
