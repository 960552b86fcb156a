package cli

import (
	"io"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
)

// Reference returns the tree of commands for those who write about it: nothing in it depends on the machine. It is
// not meant to be run.
func Reference() *cobra.Command {
	s := app.New(app.ProgramName, "", genericiooptions.IOStreams{Out: io.Discard, ErrOut: io.Discard})
	return newRoot(s)
}
