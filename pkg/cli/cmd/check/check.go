package check

import (
	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
)

// New returns the command check.
func New(s *app.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "check", GroupID: "other",
		Short: "Try out whether nodes give pods working addresses",
		Long: `Try out, with pods that are deleted at the end, whether nodes give pods working
addresses. To look for what is wrong without any pod: bcsnetctl doctor.`,
		Example: `  bcsnetctl check nodes`,
	}
	cmd.AddCommand(newNodes(s))
	return cmd
}
