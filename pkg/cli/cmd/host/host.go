package host

import (
	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
)

// New returns the command host.
func New(s *app.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "host", Aliases: []string{"hosts", "node", "nodes"}, GroupID: "objects",
		Short: "Hosts that draw addresses",
	}
	cmd.AddCommand(newHostList(s), newHostDescribe(s), newRelease(s))
	return cmd
}
