package cli

import (
	"net/netip"
	"slices"

	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// poolHosts is a pool and hosts: what add-host and remove-host are told.
type poolHosts struct {
	*app.App
	output printer.Output
	name   string
	typed  int
	from   hostArgs
}

func (v *poolHosts) addTo(cmd *cobra.Command) {
	v.from.addTo(v.App, cmd)
	v.DryRun.AddTo(cmd)
	v.output.AddToChange(cmd)
}

func (v *poolHosts) Complete(args []string) error {
	v.name, v.typed = args[0], len(args)-1
	return v.from.read(v.App, args[1:])
}

func (v *poolHosts) Validate() error {
	if err := v.from.validate(v.typed); err != nil {
		return err
	}
	return v.output.Validate()
}

// hostIndex is the place of a host in a list, however it is written there; -1 when it is not in it.
func hostIndex(list []string, h netip.Addr) int {
	return slices.IndexFunc(list, func(s string) bool { a, err := ipaddr.ParseAddr(s); return err == nil && a == h })
}

// hostAddrs are the hosts of a list that can be read.
func hostAddrs(list []string) (out []netip.Addr) {
	for _, text := range list {
		if h, err := ipaddr.ParseAddr(text); err == nil {
			out = append(out, h)
		}
	}
	return out
}
