// Package cli is the command line: it puts the commands of cmd/* together into one tree under two names, bcsnetctl and
// kubectl bcsnet. The commands work on the objects themselves and need no controller. What a command finds goes to
// standard output, what it has to say to standard error.
package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
)

// Main runs the command line args, args[0] being the name that was called, and returns the exit code
// of the process. The first Ctrl-C lets a command say what it has done; the second ends the process.
func Main(args []string, version string, streams genericiooptions.IOStreams) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer context.AfterFunc(ctx, stop)()
	s := app.New(app.CalledName(args[0]), version, streams)
	root := newRoot(s)
	root.SetArgs(bareDryRun(args[1:]))
	err := root.ExecuteContext(ctx)
	if err == nil {
		err = s.Unshown
	}
	s.Report(ctx, err)
	return app.ExitCode(ctx, err)
}
