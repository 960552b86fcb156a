package pool

import (
	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
)

// hostChange holds the arguments of add-host and remove-host.
type hostChange struct {
	*app.App
	output printer.Output
	name   string
	typed  int
	from   resource.HostArgs
}

func (v *hostChange) addTo(cmd *cobra.Command) {
	v.from.AddTo(v.App, cmd)
	v.DryRun.AddTo(cmd)
	v.output.AddToChange(cmd)
}

func (v *hostChange) Complete(args []string) error {
	v.name, v.typed = args[0], len(args)-1
	return v.from.Read(v.App, args[1:])
}

func (v *hostChange) Validate() error {
	if err := v.from.Validate(v.typed); err != nil {
		return err
	}
	return v.output.Validate()
}
