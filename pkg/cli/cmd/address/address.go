package address

import (
	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
)

// NewIP returns the command ip.
func NewIP(s *app.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "ip", Aliases: []string{"ips"}, GroupID: "objects",
		Short: "Single addresses, in use or free",
	}
	cmd.AddCommand(
		newList(s), newDescribe(s, "ip"), newFind(s, "ip"), newHistory(s, "ip"),
		newFreeRuns(s), newAllocate(s), newRelease(s, "ip"), newReserve(s), newUnreserve(s))
	return cmd
}

// NewLease returns the command lease.
func NewLease(s *app.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "lease", Aliases: []string{"leases"}, GroupID: "objects",
		Short: "Addresses in use and who holds them",
	}
	cmd.AddCommand(
		newLeaseList(s), newDescribe(s, "lease"), newFind(s, "lease"), newHistory(s, "lease"),
		newRelease(s, "lease"))
	return cmd
}
