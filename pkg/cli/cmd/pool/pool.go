package pool

import (
	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
)

// New returns the command pool. more are subcommands of other packages.
func New(s *app.App, more ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: "pool", Aliases: []string{"pools"}, GroupID: "objects",
		Short: "Ranges of addresses and the hosts that draw from them",
	}
	cmd.AddCommand(
		newList(s), newDescribe(s), newCreate(s), newDelete(s),
		newAddHost(s), newRemoveHost(s), newAddIP(s), newRemoveIP(s),
		newBind(s), newUnbind(s), newCordon(s), newUncordon(s),
		newSet(s), newEdit(s), newExport(s), newDiff(s), newTree(s), newHistory(s),
		newRename(s), newMerge(s), newSplit(s))
	cmd.AddCommand(more...)
	return cmd
}
