package inspect

import (
	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
)

// podArg returns the arguments with the pod as a name, also where it is written pod NAME or pod/NAME; what follows
// stays.
func podArg(args []string) []string {
	if len(args) > 1 && resource.IsPodWord(args[0]) {
		return args[1:]
	}
	if len(args) == 0 {
		return args
	}
	return append([]string{resource.PodWord(args[0])}, args[1:]...)
}

// onePod refuses arguments that do not name one pod.
func onePod(cmd *cobra.Command, args []string) error { return app.Takes(1, 1)(cmd, podArg(args)) }
