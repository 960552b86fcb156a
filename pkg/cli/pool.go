package cli

import (
	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
)

// newPool is the command pool. The commands of other nouns that stand under it, too, are more.
func newPool(s *app.App, more ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: "pool", Aliases: []string{"pools"}, GroupID: "objects",
		Short: "Ranges of addresses and the hosts that draw from them",
	}
	cmd.AddCommand(
		newPoolList(s), newPoolDescribe(s), newPoolCreate(s), newPoolDelete(s),
		newPoolAddHost(s), newPoolRemoveHost(s), newPoolAddIP(s), newPoolRemoveIP(s),
		newPoolCordon(s), newPoolUncordon(s),
		newPoolEdit(s), newPoolExport(s), newPoolImport(s), newPoolDiff(s), newPoolTree(s))
	cmd.AddCommand(more...)
	return cmd
}
