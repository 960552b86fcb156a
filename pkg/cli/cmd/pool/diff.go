package pool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

type poolDiff struct {
	*app.App
	output printer.Output
	files  []string
	wanted []manifest
	// alone: the API server must not be asked.
	alone bool
}

func newDiff(s *app.App) *cobra.Command {
	v := &poolDiff{App: s}
	cmd := &cobra.Command{
		Use: "diff -f FILE", Args: app.Takes(0, 0), RunE: app.Runs(v),
		Short: "Show what applying files would do to pools and leases",
		Long: `Show what kubectl apply --server-side -f would do to pools, and to the leases
that exist: which addresses would drain, which hosts would lose the pool, which
overlaps there would be. The API server checks the files and stores nothing.
Fields that a file does not name stay as they are.

The exit code is 0 when nothing would change, 3 when something would, and 1 when
a file would be refused.`,
		Example: `  bcsnetctl pool diff -f blue.yaml
  bcsnetctl pool export --all | bcsnetctl --context other pool diff -f - -o json`,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringArrayVarP(&v.files, "filename", "f", nil,
		"`FILE` with pools, - for standard input; repeatable (required)")
	v.output.AddToView(cmd)
	return cmd
}

func (v *poolDiff) Complete([]string) (err error) {
	v.wanted, err = readManifests(v.App, v.files)
	return err
}

func (v *poolDiff) Validate() error {
	if len(v.files) == 0 {
		return app.Usagef("%s pool diff needs -f FILE", v.Name)
	}
	return v.output.Validate()
}

func (v *poolDiff) Run(ctx context.Context) error {
	all, err := v.compare(ctx)
	if err != nil {
		return err
	}
	if v.output.Printer != nil {
		err = v.output.Object(v.Out, printer.NewViews("PoolDiff", all, diffFields))
	} else {
		err = v.write(all)
	}
	if err != nil {
		return err
	}
	return v.sumUp(all)
}

// What applying would do to a pool.
const (
	actionCreated   = "created"
	actionChanged   = "changed"
	actionUnchanged = "unchanged"
	actionRefused   = "refused"
)

// change describes the effect of applying a file on one pool.
type change struct {
	name          string
	action        string
	before, after resource.Pool // before is empty for a new pool
	effects       effects
	refused       error
}

func (v *poolDiff) compare(ctx context.Context) ([]change, error) {
	api, err := resource.NewPools(v.App)
	if err != nil {
		return nil, err
	}
	list, err := api.List(ctx)
	if err != nil {
		return nil, err
	}
	live := map[string]resource.Pool{}
	for _, p := range list {
		live[p.Name] = p
	}
	var all []change
	var next []ipam.Pool
	for _, m := range v.wanted {
		c, err := v.one(ctx, api, m, live[m.pool.Name])
		if err != nil {
			return nil, err
		}
		if c.refused == nil {
			next = append(next, store.Pool(c.after.BCSNetPool))
		}
		all = append(all, c)
	}
	fit := resource.NewFit(resource.Given(list), next...) // a file may have both parents and their groups
	for i := range all {
		c := &all[i]
		if c.action == actionUnchanged {
			continue
		}
		if c.refused == nil {
			if err := fit.CheckOne(ctx, v.App, c.name); err != nil {
				c.action, c.refused = actionRefused, fmt.Errorf("%s: %w", v.wanted[i].from, err)
			}
		}
		if c.effects, err = changeEffects(ctx, v.App, c.before, c.after, fit); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// one compares a pool with its file. live is empty if the pool does not exist.
func (v *poolDiff) one(ctx context.Context, api *resource.Pools, m manifest, live resource.Pool) (change, error) {
	c := change{name: m.pool.Name, action: actionCreated, before: live, after: m.pool}
	var err error
	if live.Stored != nil {
		if c.after, err = overlaid(live, m.pool); err != nil {
			return c, err
		}
		c.refused = heldBack(live, c.after)
	}
	if !v.alone && c.refused == nil {
		c, err = v.afterApply(ctx, api, m, c)
	}
	switch {
	case err != nil:
		return c, err
	case c.refused != nil:
		c.action = actionRefused
		c.refused = fmt.Errorf("%s: %w", m.from, c.refused)
	case live.Stored != nil && samePool(live, c.after):
		c.action = actionUnchanged
	case live.Stored != nil:
		c.action = actionChanged
	}
	return c, nil
}

// afterApply asks the API server for the pool as it would be after an apply.
func (v *poolDiff) afterApply(ctx context.Context, api *resource.Pools, m manifest, c change) (change, error) {
	after, err := applyPool(ctx, api, m)
	switch {
	case err == nil:
		c.after = after
	case apierrors.IsForbidden(err):
		v.alone = true
		v.Say.Warn("the API server was not asked: that needs the permission to patch pools; " +
			"checked only by this command")
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		c.refused = fmt.Errorf("pool %s: %w", c.name, resource.Explain(v.App, err))
	default:
		return c, resource.Explain(v.App, err)
	}
	return c, nil
}

// changeEffects reads the leases of a pool and describes the effects of a change on them.
func changeEffects(ctx context.Context, s *app.App, before, after resource.Pool, fit *resource.Fit) (effects, error) {
	was, is := fit.Pool(after.Name)
	var held []lease.Lease
	pools := []resource.Pool{after}
	if before.Stored != nil {
		pools = append(pools, before)
		var err error
		taken := func(l lease.Lease) bool { return l.State != lease.Available }
		if held, err = resource.HeldLeases(ctx, s, resource.LeaseQuery{Pool: after.Name}, taken); err != nil {
			return effects{}, err
		}
	}
	nodes := resource.Known(resource.NodesFor(ctx, s, pools...))
	e := effectsOf(was.WithNodes(nodes), is.WithNodes(nodes), held, fit)
	if err := e.addChildren(ctx, s, after.Name, fit); err != nil {
		return e, err
	}
	others := fit.Others(after.Name)
	var labels map[string]map[string]string
	same := sameChains(was, is)
	if !same {
		var err error
		if labels, err = resource.LabelsOfNamespaces(ctx, s); err != nil {
			return e, err
		}
	}
	if !same || !sameShadows(was, is, others) {
		var given ipam.Pool
		if before.Stored != nil {
			given = store.Pool(before.BCSNetPool)
		}
		e.chain = chainEffectsOf(given, store.Pool(after.BCSNetPool), others, labels, held)
	}
	return e, nil
}

// sumUp prints how many pools would change, and returns the error for the exit code.
func (v *poolDiff) sumUp(all []change) error {
	counts := map[string]int{}
	var refused app.Several
	for _, c := range all {
		if counts[c.action]++; c.refused != nil {
			refused = append(refused, c.refused)
		}
	}
	var parts []string
	for _, of := range []struct{ action, words string }{
		{actionCreated, "to create"}, {actionChanged, "to change"}, {actionUnchanged, "unchanged"},
		{actionRefused, "refused"},
	} {
		if n := counts[of.action]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, of.words))
		}
	}
	if len(all) == 0 {
		names := app.Map(v.files, sourceName)
		v.Say.Note("no pools in %s", strings.Join(names, ", "))
	} else {
		v.Say.Note("%s: %s", humanize.Plural(len(all), "pool"), strings.Join(parts, ", "))
	}
	if err := refused.OrNil(); err != nil {
		return err
	}
	if counts[actionCreated]+counts[actionChanged] > 0 {
		return app.Found()
	}
	return nil
}

// heldBack refuses to change the subnet of a pool that has addresses in use or reserved. The API server has the same
// rule, but reports no numbers.
func heldBack(before, after resource.Pool) error {
	s := before.Status
	if resource.CidrOf(before.BCSNetPool) == resource.CidrOf(after.BCSNetPool) || s.Active+s.Reserved == 0 {
		return nil
	}
	return app.Refuse(app.ReasonPoolInvalid,
		"pool %s cannot change from %s to %s while its addresses are held (%d active, %d reserved)",
		before.Name, resource.CidrOf(before.BCSNetPool), resource.CidrOf(after.BCSNetPool), s.Active, s.Reserved).
		WithHint("release them first, or make another pool; see who has them: bcsnetctl ip list --pool %s", before.Name)
}

// isRefusal reports whether an error says that the pool itself is not acceptable.
func isRefusal(err error) bool {
	var f *app.Failure
	refusals := []ipam.Reason{app.ReasonPoolInvalid, app.ReasonInvalidParent, ipam.ReasonAddressInUse}
	return errors.As(err, &f) && slices.Contains(refusals, f.Reason) || apierrors.IsInvalid(err) ||
		apierrors.IsBadRequest(err)
}
