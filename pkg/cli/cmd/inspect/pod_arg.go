package inspect

import (
	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
)

// podArg turns pod NAME and pod/NAME at the beginning of the arguments into NAME.
func podArg(args []string) []string {
	if len(args) > 1 && resource.IsPodWord(args[0]) {
		return args[1:]
	}
	if len(args) == 0 {
		return args
	}
	return append([]string{resource.PodWord(args[0])}, args[1:]...)
}

// onePod refuses arguments other than one pod.
func onePod(cmd *cobra.Command, args []string) error { return app.Takes(1, 1)(cmd, podArg(args)) }
