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

The status of an Available address that rests for its pool's cooldown is shown
as Cooling, except with --watch, and that of a Reserved one which a claim keeps
as Kept: its pod is the one that had it last. One that rests because somebody
else answered for it is shown as Quarantined.`,
		Example: `  bcsnetctl ip list --pool blue
  bcsnetctl ip list --pool blue --status Available -o name
  bcsnetctl ip list --host 10.0.0.11 --status Active
  bcsnetctl ip list --pool blue --outdated
  bcsnetctl ip list --field-selector status.containerID=4f1c2a77 -o wide`,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	v.output.AddTo(cmd)
	v.output.AddSort(cmd, ".status.updateTime")
	follow.AddWatch(&v.output, cmd)
	v.query.AddTo(s, cmd)
	cmd.Flags().StringVar(&v.query.Status, "status", "", "only addresses that are `STATUS`: Available, Active or Reserved")
	app.Complete(cmd, "status", lease.Available.String(), lease.Active.String(), lease.Reserved.String())
	return cmd
}

func (v *ipList) Complete([]string) error { return nil }

func (v *ipList) Validate() error {
	return validateList(&v.query, &v.output)
}

func (v *ipList) Run(ctx context.Context) error {
	columns, remark, err := v.query.ReadOutdated(ctx, v.App, resource.LeaseColumns(v.App, true))
	if err != nil {
		return err
	}
	if v.output.Watch {
		return watchLeases(ctx, &v.query, v.App, &v.output, columns, countText)
	}
	if v.output.Printer == nil {
		v.query.Cooling = resource.NewCooldowns(ctx, v.App)
	}
	found, err := printList(ctx, &v.query, v.App, &v.output, v.query.Cooling.In(columns))
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
		text += fmt.Sprintf(", of which %d %s", found.cooling, humanize.OneOr(found.cooling, "is cooling", "are cooling"))
	}
	v.Say.Note("%s", text)
	return nil
}
