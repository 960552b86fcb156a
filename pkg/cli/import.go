package cli

import (
	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
)

// newImport groups what takes over from other systems.
func newImport(s *app.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "import", Aliases: []string{"adopt", "migrate"}, GroupID: "other",
		Short: "Take pools, claims and leases over from another system",
	}
	cmd.AddCommand(newImportNetservice(s))
	return cmd
}
