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
)

type ipList struct {
	*app.App
	output printer.Output
	query  resource.LeaseQuery
}

func newList(s *app.App) *cobra.Command {
	v := &ipList{App: s}
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls", "get"}, Args: app.Takes(0, 0), RunE: app.Runs(v),
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
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	v.output.AddTo(cmd)
	v.output.AddSort(cmd, ".status.updateTime")
	follow.AddWatch(&v.output, cmd)
	v.query.AddTo(s, cmd)
	cmd.Flags().StringVar(&v.query.Status, "status", "",
		"only addresses that are `STATUS`: Available, Active, Reserved, or a word of lists")
	app.Complete(cmd, "status", resource.StatusWords()...)
	return cmd
}

func (v *ipList) Complete([]string) error { return nil }

func (v *ipList) Validate() error {
	if err := validateList(&v.query, &v.output); err != nil {
		return err
	}
	if v.output.Watch && v.query.NeedsPools() {
		return app.Usagef("--watch does not show which addresses are %s", v.query.Word).
			WithHint("ask again from time to time: bcsnetctl ip list --status %s", v.query.Word)
	}
	return nil
}

func (v *ipList) Run(ctx context.Context) error {
	columns, remark, err := v.query.ReadOutdated(ctx, v.App, resource.LeaseColumns(v.App, true))
	if err != nil {
		return err
	}
	if v.output.Watch {
		return watchLeases(ctx, &v.query, v.App, &v.output, columns, countText)
	}
	if v.output.Printer == nil || v.query.NeedsPools() {
		statuses, err := resource.NewStatuses(ctx, v.App)
		if err != nil && v.query.NeedsPools() {
			return err
		}
		v.query.Statuses = statuses // nil for somebody who may not read pools, and sees no address cool or drain
	}
	found, err := printList(ctx, &v.query, v.App, &v.output, v.query.Statuses.In(columns))
	if err != nil || v.output.Printer != nil {
		return err
	}
	defer found.remark(v.App, v.query.Pool)
	defer remark()
	if len(found.counts) == 0 {
		return v.query.Empty(ctx, v.App, "addresses")
	}
	text := countText(found.counts)
	if found.cooling > 0 {
		text += fmt.Sprintf(", of which %d %s", found.cooling, humanize.OneOr(found.cooling, "is cooling",
			"are cooling"))
	}
	if found.draining > 0 {
		text += fmt.Sprintf("; %d %s draining", found.draining, humanize.OneOr(found.draining, "is", "are"))
	}
	v.Say.Note("%s", text)
	return nil
}
