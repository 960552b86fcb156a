package importer

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/importer"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// see looks at both systems.
func (v *takeOver) see(ctx context.Context) (*view, error) {
	return see(ctx, v.App, v.system, v.source(), v.node, v.stock)
}

// haveNode refuses a node that does not exist.
func haveNode(ctx context.Context, s *app.App, name string) error {
	nodes, err := resource.ListNodes(ctx, s)
	if err == nil && !slices.ContainsFunc(nodes, func(n resource.Node) bool { return n.Name == name }) {
		err = app.Refuse(app.ReasonPoolNotFound, "there is no node %s", name).WithHint("kubectl get nodes")
	}
	return err
}

// cutOver takes over the pods of a node, with as many free addresses as its next pods need. Each step leaves every
// address with one system, so it can end after any of them and be run again.
func (v *takeOver) cutOver(ctx context.Context) error {
	if err := haveNode(ctx, v.App, v.node); err != nil {
		return err
	}
	first, err := v.see(ctx)
	if err != nil {
		return err
	}
	shares, wrong := first.Shares()
	if err := v.showShares(shares, wrong); err != nil {
		return err
	}
	shares = slices.DeleteFunc(shares, func(s importer.Share) bool {
		return !s.Withdraws() && !s.Pending() && len(s.Hold) == 0
	})
	if v.DryRun == app.DryRunClient || len(shares) == 0 {
		return v.contradictions(wrong)
	}
	if err := v.Confirm(ctx, v.yes, "Do you want to take this over while both systems run?"); err != nil {
		return err
	}
	resource.OutlivePipes()
	if err := v.lock.check(ctx); err != nil {
		return err
	}
	if err := v.hold(ctx, first.Here, shares); err != nil {
		return err
	}
	shares = slices.DeleteFunc(shares, func(s importer.Share) bool { return !s.Withdraws() && !s.Pending() })
	if len(shares) == 0 {
		return v.contradictions(wrong)
	}
	if err := v.withdraw(ctx, shares); err != nil || v.DryRun != app.DryRunNone {
		return err
	}
	if wrong, err = v.settleDown(ctx, first.Pools); err != nil {
		return err
	}
	return v.contradictions(wrong)
}

// withdraw makes the pools, which have no address yet, and has the other system withdraw addresses.
func (v *takeOver) withdraw(ctx context.Context, shares []importer.Share) error {
	api, err := resource.NewPools(v.App)
	if err != nil {
		return err
	}
	for _, s := range shares {
		if err := v.lock.check(ctx); err != nil {
			return err
		}
		if !s.Made {
			p := s.Pool.DeepCopy()
			p.Labels = map[string]string{v1.ImportedLabel: v.system.Name}
			p.Spec.Cordoned, p.Spec.AvailableIPs, p.Spec.ExcludeIPs = true, nil, nil
			if err := v.createOne(ctx, api.API, &job{}, p, importer.PoolObject(p.Name)); err != nil {
				return err
			}
		}
		add := importer.Union(s.Moved, s.Taken)
		if !s.Withdraws() {
			continue
		}
		if err := v.withdrawals().change(ctx, s.Pool, add, s.Torn); err != nil {
			return err
		}
		if len(add.Ranges()) == 0 {
			continue
		}
		v.Say.Done("pool %s: %s withdrawn there: %s", s.Pool.Name, resource.Addresses(add), resource.Spell(add))
	}
	return nil
}

func (v *takeOver) withdrawals() withdrawals { return withdrawals{v.App, v.system.Withdrawer} }

// settleDown waits until allocations that began before the withdrawal have ended, looks again, and takes over what is
// free or with a pod of the node. It reads everything back at the end, and returns what is wrong then.
func (v *takeOver) settleDown(ctx context.Context, pools []v1.BCSNetPool) ([]importer.Remark, error) {
	before, err := v.withdrawals().read(ctx, pools)
	if err != nil {
		return nil, err
	}
	v.Say.Wait("waiting %s for allocations that %s may have begun", v.settle, v.system.Title)
	select {
	case <-time.After(v.settle):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	second, err := v.see(ctx)
	if err != nil {
		return nil, err
	}
	second.Before = &before
	shares, wrong := second.Shares()
	if len(second.Conflicts) > 0 {
		for _, r := range wrong {
			v.Say.Warn("%s: %s", r.Object, r.Cause)
		}
		return wrong, nil
	}
	if err := v.lock.check(ctx); err != nil {
		return nil, err
	}
	for _, s := range shares {
		n := ipaddr.SizeOfSet(s.Back)
		if n == 0 {
			continue
		}
		if err := v.withdrawals().change(ctx, s.Pool, ipaddr.SetOf(), s.Back); err != nil {
			return nil, err
		}
		v.Say.Note("pool %s: %s, which a pod there got meanwhile, %s back: %s", s.Pool.Name, resource.Addresses(s.Back),
			humanize.OneOr(int(n), "goes", "go"), resource.Spell(s.Back))
	}
	if err := v.lift(ctx, shares); err != nil {
		return nil, err
	}
	if err := v.bring(ctx, second, shares); err != nil {
		return nil, err
	}
	third, err := v.see(ctx)
	if err != nil {
		return nil, err
	}
	shares, left := third.Shares()
	var cordoned []string
	for _, s := range shares {
		if here := third.Here[s.Pool.Name]; here != nil && here.Spec.Cordoned {
			cordoned = append(cordoned, here.Name)
		}
		if s.Pending() {
			left = append(left, importer.Remark{Object: importer.PoolObject(s.Pool.Name), Cause: fmt.Sprintf(
				"%s: withdrawn there and not here: run it again", resource.Spell(importer.Union(s.Settled, s.Back)))})
		}
	}
	for _, r := range left {
		v.Say.Warn("%s: %s", r.Object, r.Cause)
	}
	if len(left) == 0 {
		v.Say.Done("read back: every address belongs to one system")
		v.Hint("have the pods of %s ask bcsnet: bcsnetctl import nads", v.node)
	}
	if len(left) == 0 && len(cordoned) > 0 {
		v.Hint("then let the pools allocate: bcsnetctl pool uncordon %s", strings.Join(cordoned, " "))
	}
	return append(wrong, left...), nil
}
