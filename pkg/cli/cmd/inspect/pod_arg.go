package inspect

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
)

// podArg returns the arguments with the pod as a name, also where it is written pod NAME or pod/NAME; what follows
// stays.
func podArg(args []string) []string {
	isPod := func(word string) bool { return slices.Contains([]string{"pod", "pods", "po"}, word) }
	if len(args) > 1 && isPod(args[0]) {
		return args[1:]
	}
	if len(args) == 0 {
		return args
	}
	if kind, name, ok := strings.Cut(args[0], "/"); ok && isPod(kind) {
		return append([]string{name}, args[1:]...)
	}
	return args
}

// onePod refuses arguments that do not name one pod.
func onePod(cmd *cobra.Command, args []string) error { return app.Takes(1, 1)(cmd, podArg(args)) }
