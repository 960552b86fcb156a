// Package cli is the command line: it combines the commands of cmd/* into one tree with two names, bcsnetctl and
// kubectl bcsnet. The commands read and write objects directly and need no controller. Results go to standard output,
// messages to standard error.
package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
)

// Main runs the command line args, where args[0] is the name that was called, and returns the exit code. After the
// first Ctrl-C a command can print what it has done; the second one ends the process.
func Main(args []string, version string, streams genericiooptions.IOStreams) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer context.AfterFunc(ctx, stop)()
	ctrllog.SetLogger(logr.Discard()) // controller-runtime's client complains to the terminal without one
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
