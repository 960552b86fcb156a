package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

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
has used yet may have no object: large pools make them on demand. Such an
address is free and not listed.`,
		Example: `  bcsnetctl ip list --pool blue
  bcsnetctl ip list --host 10.0.0.11 --status Active
  bcsnetctl ip list --field-selector status.containerID=4f1c2a77 -o wide`,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	v.output.addTo(cmd)
	v.query.addTo(s, cmd)
	cmd.Flags().StringVar(&v.query.status, "status", "", "only addresses that are `STATUS`: Available, Active or Reserved")
	cmd.Flags().StringVar(&v.query.fields, "field-selector", "", "only addresses with these `FIELDS`, such as status.podName=web-0")
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
	counts, err := v.query.print(ctx, v.session, &v.output, v.leaseColumns(true))
	if err != nil || v.output.printer != nil {
		return err
	}
	total := 0
	var parts []string
	for _, state := range []ipam.State{ipam.Active, ipam.Reserved, ipam.Available} {
		if n := counts[state]; n > 0 {
			total += n
			parts = append(parts, fmt.Sprintf("%d %s", n, state))
		}
	}
	if total == 0 {
		return v.query.empty(ctx, v.session, "addresses")
	}
	v.say.note("%s: %s", plural(total, "address"), strings.Join(parts, ", "))
	return nil
}
