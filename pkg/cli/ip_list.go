package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

func newIP(s *session) *cobra.Command {
	cmd := &cobra.Command{
		Use: "ip", Aliases: []string{"ips"}, GroupID: "objects", Args: cobra.ArbitraryArgs, RunE: group,
		Short: "Single addresses, whoever has them or not",
	}
	cmd.AddCommand(
		newIPList(s), newIPDescribe(s, "ip"), newIPFind(s, "ip"), newIPHistory(s, "ip"),
		newIPAllocate(s), newIPRelease(s, "ip"), newIPReserve(s), newIPUnreserve(s))
	return cmd
}

type ipList struct {
	*session
	output output
	query  leaseQuery
}

func newIPList(s *session) *cobra.Command {
	v := &ipList{session: s}
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls", "get"}, Args: takes(0, 0), RunE: runs(v),
		Short: "List addresses in numerical order",
		Long: `List addresses in numerical order, whether in use or not. An address that nobody
has used yet may have no object: large pools make them on demand. With --pool
such addresses are listed, too, as Available, unless the pool has more than
65,536 addresses. They are left out without --pool, with --watch, and with any
filter beside --pool and --status.

The status of an Available address that rests for its pool's cooldown is shown
as Cooling, except with --watch, and that of a Reserved one which a claim keeps
as Kept: its pod is the one that had it last.`,
		Example: `  bcsnetctl ip list --pool blue
  bcsnetctl ip list --pool blue --status Available -o name
  bcsnetctl ip list --host 10.0.0.11 --status Active
  bcsnetctl ip list --field-selector status.containerID=4f1c2a77 -o wide`,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	v.output.addTo(cmd)
	v.output.addSort(cmd, ".status.updateTime")
	v.output.addWatch(cmd)
	v.query.addTo(s, cmd)
	cmd.Flags().StringVar(&v.query.status, "status", "", "only addresses that are `STATUS`: Available, Active or Reserved")
	complete(cmd, "status", ipam.Available.String(), ipam.Active.String(), ipam.Reserved.String())
	return cmd
}

func (v *ipList) Complete([]string) error { return nil }

func (v *ipList) Validate() error {
	if err := v.query.validate(); err != nil {
		return err
	}
	return v.output.validate()
}

func (v *ipList) Run(ctx context.Context) error {
	columns := v.leaseColumns(true)
	if v.output.watch {
		return v.query.watch(ctx, v.session, &v.output, columns, countText)
	}
	if v.output.printer == nil {
		v.query.rests = v.rests(ctx)
	}
	found, err := v.query.print(ctx, v.session, &v.output, v.query.rests.in(columns))
	if err != nil || v.output.printer != nil {
		return err
	}
	defer found.remark(v.session, v.query.pool)
	if len(found.counts) == 0 {
		return v.query.empty(ctx, v.session, "addresses")
	}
	text := countText(found.counts)
	if found.cooling > 0 {
		text += fmt.Sprintf(", of which %d %s", found.cooling, humanize.OneOr(found.cooling, "is cooling", "are cooling"))
	}
	v.say.note("%s", text)
	return nil
}
