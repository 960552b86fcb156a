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
  bcsnetctl lease list --pool blue -o wide`,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	v.output.addTo(cmd)
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
	counts, err := v.query.print(ctx, v.session, &v.output, v.leaseColumns(false))
	if err != nil || v.output.printer != nil {
		return err
	}
	n := counts[ipam.Active]
	if n == 0 {
		return v.query.empty(ctx, v.session, "leases")
	}
	v.say.note("%s in use", plural(n, "address"))
	return nil
}
