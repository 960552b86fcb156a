package importer

import (
	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/importer/system"
)

// New returns the command import, whose subcommands take objects over from other systems.
func New(s *app.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "import", Aliases: []string{"adopt", "migrate"}, GroupID: "other",
		Short: "Take pools, claims and leases over from another system",
	}
	for _, of := range system.All() {
		cmd.AddCommand(newTakeOver(s, of))
	}
	cmd.AddCommand(newNADs(s), newRevert(s))
	return cmd
}
