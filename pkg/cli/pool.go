package cli

import (
	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
)

func newPool(s *app.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "pool", Aliases: []string{"pools"}, GroupID: "objects", Args: cobra.ArbitraryArgs, RunE: group,
		Short: "Ranges of addresses and the hosts that draw from them",
	}
	cmd.AddCommand(
		newPoolList(s), newPoolDescribe(s), newPoolCreate(s), newPoolDelete(s),
		newPoolAddHost(s), newPoolRemoveHost(s), newPoolAddIP(s), newPoolRemoveIP(s),
		newPoolCordon(s), newPoolUncordon(s),
		newPoolEdit(s), newPoolExport(s), newPoolImport(s), newPoolDiff(s), newPoolTree(s), newPoolUsage(s))
	return cmd
}
