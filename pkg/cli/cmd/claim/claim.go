package claim

import (
	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
)

// New returns the command claim.
func New(s *app.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "claim", Aliases: []string{"claims"}, GroupID: "objects",
		Short: "Addresses that are kept for workloads",
	}
	cmd.AddCommand(newList(s), newDescribe(s), newCreate(s), newResize(s), newRelease(s), newDelete(s))
	return cmd
}
