package importer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/leasing"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/importer"
	"github.com/bcsnet/bcsnet/pkg/importer/system"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/internal/suggest"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// revert takes an import back.
type revert struct {
	*app.App
	system system.System
	output printer.Output
	yes    bool
	node   string
	stock  uint16
	given  func(flag string) bool
	leases *store.Client
	lock   *lock
}

func newRevert(s *app.App) *cobra.Command {
	v := &revert{App: s}
	cmd := &cobra.Command{
		Use: "revert SYSTEM", Args: app.Takes(1, 1), RunE: app.Runs(v),
		Short: "Take an import back",
		Long: `Take back what an import of a system made: its pools are cordoned, its claims
and pools deleted. An address that the import found with a pod becomes reserved,
because the other system has it: pools that existed before allocate it only
after bcsnetctl ip unreserve. What a table (csv) reserved becomes free.

An address that a pod got from bcsnet since the import stays with the pod, and
so do its pool and its claim; exit code 3 tells of it. Restart such pods with
the other system, then run it again. Which objects an import made is written on
these objects, so it runs on every machine, and again when it was interrupted.

After a cut-over (import SYSTEM --cut-over NODE) the other system gets back what
it had withdrawn, each address once it is reserved here. With --cut-over only
the addresses of one node's pods go back, and free ones beyond --addresses.
Nothing else of the other system is changed.`,
		Example: `  bcsnetctl import revert whereabouts --dry-run=client
  bcsnetctl import revert whereabouts --yes
  bcsnetctl import revert spiderpool --cut-over node-1`,
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return systemNames(), cobra.ShellCompDirectiveNoFileComp
		},
	}
	cmd.Flags().BoolVarP(&v.yes, "yes", "y", false, "do not ask")
	cmd.Flags().StringVar(&v.node, "cut-over", "", "take back only the cut-over of this `NODE`")
	addStock(cmd, &v.stock)
	v.given = cmd.Flags().Changed
	app.CompleteWith(cmd, "cut-over", resource.CompleteNodes(s))
	s.DryRun.AddTo(cmd)
	v.output.AddTo(cmd)
	return cmd
}

func systemNames() (names []string) {
	for _, of := range system.All() {
		names = append(names, of.Name)
	}
	return names
}

func (v *revert) Complete(args []string) error {
	for _, of := range system.All() {
		if of.Name == args[0] || slices.Contains(of.Aliases, args[0]) {
			v.system = of
			return nil
		}
	}
	err := app.Usagef("there is no system %q to import from", args[0])
	if near := suggest.Nearest(args[0], systemNames()); near != "" {
		return err.WithHint("did you mean %s?", near)
	}
	return err.WithHint("there are %s", strings.Join(systemNames(), ", "))
}

func (v *revert) Validate() error {
	if err := onlyCutOver(v.node, v.given, "addresses"); err != nil {
		return err
	}
	return v.output.Validate()
}

func (v *revert) Run(ctx context.Context) error {
	var err error
	if v.leases, err = v.Leases(); err != nil {
		return err
	}
	if v.node != "" && v.system.Withdrawer == nil {
		return app.Usagef("there is no cut-over by nodes from %s", v.system.Title).
			WithHint("take the whole import back: bcsnetctl import revert %s", v.system.Name)
	}
	if v.system.Withdrawer == nil {
		return v.takeBack(ctx)
	}
	return withLock(ctx, v.App, func(ctx context.Context, l *lock) error {
		if v.lock = l; v.node != "" {
			return v.cutBack(ctx)
		}
		return v.takeBack(ctx)
	})
}

// takeBack takes the whole import back.
func (v *revert) takeBack(ctx context.Context) error {
	here, err := v.read(ctx)
	if err != nil {
		return err
	}
	back, err := v.returns(ctx, here)
	if err != nil {
		return err
	}
	r, some := importer.Revert(here), false
	v.show(r)
	if back != nil {
		some = len(back.all) > 0
		back.show(v.App, v.system)
		v.showStay(slices.DeleteFunc(slices.Clone(back.stay), func(s importer.Staying) bool {
			return slices.ContainsFunc(r.Stay, func(said importer.Staying) bool { return said.Object == s.Object })
		}))
	}
	if r.Empty() && !some {
		if err := v.stillWithdrawn(ctx, &r); err != nil {
			return err
		}
		return v.rest(r)
	}
	if err := v.Confirm(ctx, v.yes, "Take the import back?"); err != nil {
		return err
	}
	resource.OutlivePipes()
	if some {
		if err := v.giveReturns(ctx, back); err != nil {
			return err
		}
		if here, err = v.read(ctx); err != nil {
			return err
		}
		r = importer.Revert(here)
	}
	if err := v.cordon(ctx, r.Cordon); err != nil {
		return err
	}
	failed := v.giveBack(ctx, here, r.Leases)
	if ctx.Err() == nil && v.DryRun == app.DryRunNone { // pods came and went meanwhile
		if here, err = v.read(ctx); err != nil {
			return append(app.Several{failed}, err).Compact()
		}
		r = importer.Revert(here)
		if err := v.stillWithdrawn(ctx, &r); err != nil {
			return append(app.Several{failed}, err).Compact()
		}
	}
	err = v.remove(ctx, r)
	return app.Several{failed, err, v.rest(r)}.Compact()
}

// stillWithdrawn adds the objects that still withdraw addresses for us to what stays, with the pools of them.
func (v *revert) stillWithdrawn(ctx context.Context, r *importer.Reversal) error {
	w := v.system.Withdrawer
	if w == nil {
		return nil
	}
	items, _, err := listOthers(ctx, v.App, w.Kind())
	for i := range items {
		o := &items[i]
		text := o.GetAnnotations()[v1.WithdrawnAnnotation]
		if text == "" {
			continue
		}
		r.Stay = append(r.Stay, importer.Staying{Remark: importer.Remark{
			Object: o.GetKind() + " " + resource.KeyOf(o), Cause: "it withdraws " + text,
		}})
		r.Pools = slices.DeleteFunc(r.Pools, func(p *v1.BCSNetPool) bool { return w.Carries(o, p) })
	}
	return err
}

// read reads what there is of this system.
func (v *revert) read(ctx context.Context) (here importer.Here, err error) {
	defer v.Say.WaitLater("reading pools, claims and addresses in " + v.Where())()
	here = importer.Here{System: v.system.Name, Table: v.system.Table, Now: v.leases.Now(), By: v.Author(ctx)}
	pools, err := resource.AllPools(ctx, v.App)
	if err != nil {
		return here, err
	}
	for _, p := range pools {
		here.Pools = append(here.Pools, p.BCSNetPool)
	}
	api, err := resource.NewClaims(v.App)
	if err != nil {
		return here, err
	}
	claims, err := api.List(ctx, "", metav1.ListOptions{})
	if err != nil {
		return here, err
	}
	for _, c := range claims {
		here.Claims = append(here.Claims, c.BCSNetIPClaim)
	}
	here.Leases, err = resource.HeldLeases(ctx, v.App, resource.LeaseQuery{Selectors: resource.TakenOnly()},
		func(lease.Lease) bool { return true })
	return here, err
}

// show prints what becomes of what.
func (v *revert) show(r importer.Reversal) {
	if r.Empty() {
		v.Say.Note("nothing to take back: no object is of an import of %s", v.system.Title)
	} else {
		v.Say.Start("to take back: %s, %s, %s", humanize.Plural(len(r.Pools), "pool"),
			humanize.Plural(len(r.Claims), "claim"), humanize.Plural(len(r.Leases), "address"))
	}
	if len(r.Cordon) > 0 {
		v.Say.Start("to cordon: %s", humanize.List(r.Cordon))
	}
	if n := r.Reserved; n > 0 {
		v.Say.Note("%s %s reserved in pools that the import did not make", humanize.Plural(n, "address"),
			humanize.OneOr(n, "stays", "stay"))
	}
	v.showStay(r.Stay)
}

// showStay prints what stays. After leasing.MaxLines it counts, but still names all holders: their pods are what the
// user has to delete.
func (v *revert) showStay(all []importer.Staying) {
	shown := min(len(all), leasing.MaxLines)
	for _, s := range all[:shown] {
		v.Say.Warn("%s stays: %s", s.Object, s.Cause)
	}
	if shown == len(all) {
		return
	}
	v.Say.Warn("and %s", humanize.Plural(len(all)-shown, "more object"))
	var holders []string
	for _, s := range all[shown:] {
		if s.Holder != "" {
			holders = append(holders, s.Holder)
		}
	}
	if len(holders) > 0 {
		v.Say.Warn("among them the addresses of %s", strings.Join(app.SortedOnce(holders), ", "))
	}
}

// rest returns the error for what stays.
func (v *revert) rest(r importer.Reversal) error {
	if len(r.Stay) == 0 {
		return nil
	}
	f := &app.Failure{Code: app.ExitFindings, Message: fmt.Sprintf("%s of the import %s, %s first",
		humanize.Plural(len(r.Stay), "object"), humanize.OneOr(len(r.Stay), "stays", "stay"), r.Stay[0].Object)}
	return f.WithHint("have the network configurations name %s again, delete the pods that have these addresses, "+
		"then run it again", v.system.Title)
}
