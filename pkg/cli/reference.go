package cli

import (
	"io"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
)

// Reference returns the tree of commands for generated documentation. It does not depend on the machine, and must not
// be run.
func Reference() *cobra.Command {
	s := app.New(app.ProgramName, "", genericiooptions.IOStreams{Out: io.Discard, ErrOut: io.Discard})
	return newRoot(s)
}
