package cli

import "github.com/spf13/cobra"

// newImport groups what takes over from other systems.
func newImport(s *session) *cobra.Command {
	cmd := &cobra.Command{
		Use: "import", Aliases: []string{"adopt", "migrate"}, GroupID: "other", Args: cobra.ArbitraryArgs, RunE: group,
		Short: "Take pools, claims and leases over from another system",
	}
	cmd.AddCommand(newImportNetservice(s))
	return cmd
}
