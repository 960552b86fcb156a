package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

func newLease(s *session) *cobra.Command {
	cmd := &cobra.Command{
		Use: "lease", Aliases: []string{"leases"}, GroupID: "objects", Args: cobra.ArbitraryArgs, RunE: group,
		Short: "Addresses in use and who holds them",
	}
	cmd.AddCommand(
		newLeaseList(s), newIPDescribe(s, "lease"), newIPFind(s, "lease"), newIPHistory(s, "lease"),
		newIPRelease(s, "lease"))
	return cmd
}

type leaseList struct {
	*session
	output output
	query  leaseQuery
}

func newLeaseList(s *session) *cobra.Command {
	v := &leaseList{session: s, query: leaseQuery{status: ipam.Active.String()}}
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls", "get"}, Args: takes(0, 0), RunE: runs(v),
		Short: "List the addresses in use and who holds them",
		Long: `List the addresses in use (status Active) and who holds them, in numerical
order.`,
		Example: `  bcsnetctl lease list --host 10.0.0.11
  bcsnetctl lease list -n payments --pod web-0
  bcsnetctl lease list --pool blue -o wide
  bcsnetctl lease list --pool blue --watch`,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	v.output.addTo(cmd)
	v.output.addSort(cmd, ".status.updateTime")
	v.output.addWatch(cmd)
	v.query.addTo(s, cmd)
	cmd.Flags().StringVar(&v.query.pod, "pod", "", "only addresses of this `POD`, or NAMESPACE/POD")
	return cmd
}

func (v *leaseList) Complete([]string) error { return nil }

func (v *leaseList) Validate() error {
	if err := v.query.validate(); err != nil {
		return err
	}
	return v.output.validate()
}

func (v *leaseList) Run(ctx context.Context) error {
	columns := v.leaseColumns(false)
	if v.output.watch {
		return v.query.watch(ctx, v.session, &v.output, columns, useText)
	}
	found, err := v.query.print(ctx, v.session, &v.output, columns)
	if err != nil || v.output.printer != nil {
		return err
	}
	if len(found.counts) == 0 {
		return v.query.empty(ctx, v.session, "leases")
	}
	v.say.note("%s", useText(found.counts))
	found.remark(v.session, v.query.pool)
	return nil
}
