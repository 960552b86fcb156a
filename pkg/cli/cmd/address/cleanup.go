package address

import (
	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
)

// NewCleanup returns the command cleanup, the former spelling of ip release with a selection. The next release drops
// it.
func NewCleanup(s *app.App) *cobra.Command {
	all := &cobra.Command{Use: "cleanup", Hidden: true,
		Short: "The former spelling of ip release --network, --pool, ..."}
	for _, by := range selections(s) {
		cmd := newRelease(s, "ip")
		run := cmd.RunE
		cmd.Use, cmd.Aliases, cmd.Hidden, cmd.Args = by.name+" NAME", nil, true, app.Takes(1, 1)
		cmd.ValidArgsFunction = by.completes
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			s.Say.Warn("cleanup %s ends with the next release: it is ip release --%s %s now", by.name, by.name, args[0])
			if err := cmd.Flags().Set(by.name, args[0]); err != nil {
				return err
			}
			return run(cmd, nil)
		}
		all.AddCommand(cmd)
	}
	return all
}
