package address

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/follow"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

type leaseList struct {
	*app.App
	output printer.Output
	query  resource.LeaseQuery
}

func newLeaseList(s *app.App) *cobra.Command {
	v := &leaseList{App: s, query: resource.LeaseQuery{Status: lease.Active.String()}}
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls", "get"}, Args: app.Takes(0, 0), RunE: app.Runs(v),
		Short: "List the addresses in use and who holds them",
		Long: `List the addresses in use (status Active) and who holds them, in numerical
order.`,
		Example: `  bcsnetctl lease list --host 10.0.0.11
  bcsnetctl lease list -n payments --pod web-0
  bcsnetctl lease list --pool blue -o wide
  bcsnetctl lease list --outdated
  bcsnetctl lease list --pool blue --watch`,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	v.output.AddTo(cmd)
	v.output.AddSort(cmd, ".status.updateTime")
	follow.AddWatch(&v.output, cmd)
	v.query.AddTo(s, cmd)
	cmd.Flags().StringVar(&v.query.Pod, "pod", "", "only addresses of this `POD`, or NAMESPACE/POD")
	return cmd
}

func (v *leaseList) Complete([]string) error { return nil }

func (v *leaseList) Validate() error {
	return validateList(&v.query, &v.output)
}

func (v *leaseList) Run(ctx context.Context) error {
	columns, remark, err := v.query.ReadOutdated(ctx, v.App, resource.LeaseColumns(v.App, false))
	if err != nil {
		return err
	}
	if v.output.Watch {
		return watchLeases(ctx, &v.query, v.App, &v.output, columns, useText)
	}
	found, err := printList(ctx, &v.query, v.App, &v.output, columns)
	if err != nil || v.output.Printer != nil {
		return err
	}
	defer remark()
	if len(found.counts) == 0 {
		return v.query.Empty(ctx, v.App, "leases")
	}
	v.Say.Note("%s", useText(found.counts))
	found.remark(v.App, v.query.Pool)
	return nil
}
