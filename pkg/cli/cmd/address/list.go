package address

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/follow"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// addressList runs ip list and lease list, which lists leased addresses only.
type addressList struct {
	*app.App
	output printer.Output
	query  resource.LeaseQuery
	leases bool
}

func newList(s *app.App) *cobra.Command {
	v := &addressList{App: s}
	cmd := v.command(&cobra.Command{
		Short: "List addresses in numerical order",
		Long: `List addresses in numerical order, whether in use or not. An address that nobody
has used yet may have no object: large pools make them on demand. With --pool
such addresses are listed, too, as Available, unless the pool has more than
65,536 addresses. They are left out without --pool, with --watch, and with any
filter beside --pool and --status.

Objects are Available, Active or Reserved. Lists tell more of some of them:

  Cooling      Available, and rests for the cooldown of its pool
  Kept         Reserved, because a claim keeps it; POD had it last
  Quarantined  Reserved, because somebody else answered for it
  Draining     Active or Reserved, and no longer in its pool, or its pool is
               being deleted: nobody gets it afterwards

--status takes each of these words. Reserved finds those that are Kept, too, and
so on. With --watch nothing is shown as Cooling or Draining.`,
		Example: `  bcsnetctl ip list --pool blue
  bcsnetctl ip list --pool blue --status Available -o name
  bcsnetctl ip list --pool blue --status Draining
  bcsnetctl ip list --host 10.0.0.11 --status Active
  bcsnetctl ip list --pool blue --outdated
  bcsnetctl ip list --field-selector status.containerID=4f1c2a77 -o wide`,
	})
	cmd.Flags().StringVar(&v.query.Status, "status", "",
		"only addresses that are `STATUS`: Available, Active, Reserved, or a word of lists")
	app.Complete(cmd, "status", resource.StatusWords()...)
	return cmd
}

func newLeaseList(s *app.App) *cobra.Command {
	v := &addressList{App: s, query: resource.LeaseQuery{Status: lease.Active.String()}, leases: true}
	cmd := v.command(&cobra.Command{
		Short: "List the addresses in use and who holds them",
		Long: `List the addresses in use (status Active) and who holds them, in numerical
order.`,
		Example: `  bcsnetctl lease list --host 10.0.0.11
  bcsnetctl lease list -n payments --pod web-0
  bcsnetctl lease list --pool blue -o wide
  bcsnetctl lease list --outdated
  bcsnetctl lease list --pool blue --watch`,
	})
	cmd.Flags().StringVar(&v.query.Pod, "pod", "", "only addresses of this `POD`, or NAMESPACE/POD")
	return cmd
}

func (v *addressList) command(cmd *cobra.Command) *cobra.Command {
	cmd.Use, cmd.Aliases, cmd.Args, cmd.RunE = "list", []string{"ls", "get"}, app.Takes(0, 0), app.Runs(v)
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	v.output.AddTo(cmd)
	v.output.AddSort(cmd, ".status.updateTime")
	follow.AddWatch(&v.output, cmd)
	v.query.AddTo(v.App, cmd)
	return cmd
}

func (v *addressList) Validate() error {
	if v.query.OnlyOutdated && v.output.Watch {
		return app.Usagef("--outdated and --watch exclude each other: a lease is outdated by a change of its pool, " +
			"and the list watches addresses")
	}
	if err := v.query.Validate(); err != nil {
		return err
	}
	if v.output.Watch && v.query.NeedsPools() {
		return app.Usagef("--watch does not show which addresses are %s", v.query.Word).
			WithHint("ask again from time to time: bcsnetctl ip list --status %s", v.query.Word)
	}
	return v.output.Validate()
}

func (v *addressList) Run(ctx context.Context) error {
	columns, remark, err := v.query.ReadOutdated(ctx, v.App, resource.LeaseColumns(v.App, !v.leases))
	if err != nil {
		return err
	}
	noun, text := "addresses", countText
	if v.leases {
		noun, text = "leases", useText
	}
	if v.output.Watch {
		return watchLeases(ctx, &v.query, v.App, &v.output, columns, text)
	}
	if !v.leases && v.output.Printer == nil || v.query.NeedsPools() {
		statuses, err := resource.NewStatuses(ctx, v.App)
		if err != nil && v.query.NeedsPools() {
			return err
		}
		v.query.Statuses = statuses // nil if the user may not read pools; then no address shows as cooling or draining
		columns = statuses.In(columns)
	}
	found, err := printList(ctx, &v.query, v.App, &v.output, columns)
	if err != nil || v.output.Printer != nil {
		return err
	}
	defer found.remark(v.App, v.query.Pool)
	defer remark()
	if len(found.counts) == 0 {
		return v.query.Empty(ctx, v.App, noun)
	}
	sum := text(found.counts)
	if found.cooling > 0 {
		sum += fmt.Sprintf(", of which %d %s", found.cooling, humanize.OneOr(found.cooling, "is cooling",
			"are cooling"))
	}
	if found.draining > 0 {
		sum += fmt.Sprintf("; %d %s draining", found.draining, humanize.OneOr(found.draining, "is", "are"))
	}
	v.Say.Note("%s", sum)
	return nil
}
