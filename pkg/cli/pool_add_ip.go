package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
)

type poolAddIP struct {
	*session
	output  output
	name    string
	args    []string
	entries []entry
}

func newPoolAddIP(s *session) *cobra.Command {
	v := &poolAddIP{session: s}
	cmd := &cobra.Command{
		Use: "add-ip POOL ADDRESS...", Aliases: []string{"add-range"}, Args: takes(2, 0), RunE: runs(v),
		Short: "Add addresses, ranges or CIDRs to a pool",
		Long: `Add addresses to a pool: single ones, ranges a-b with both ends, or CIDRs. All
are added or none. Addresses outside the subnet, in this pool already or in
another pool are refused; an entry that the pool already has is no error.

- reads addresses from standard input, one entry a line.`,
		Example: `  bcsnetctl pool add-ip blue 10.0.0.64-10.0.0.95
  bcsnetctl pool add-ip blue 10.0.0.20 10.0.0.128/27 --dry-run=server`,
		ValidArgsFunction: s.completePoolFirst(nil),
	}
	s.dry.addTo(cmd)
	v.output.addToChange(cmd)
	return cmd
}

func (v *poolAddIP) Complete(args []string) (err error) {
	v.name = args[0]
	v.args, err = v.orLines("addresses", args[1:])
	return err
}

func (v *poolAddIP) Validate() (err error) {
	if v.entries, err = parseEntries(v.args); err != nil {
		return err
	}
	return v.output.validate()
}

func (v *poolAddIP) Run(ctx context.Context) error {
	if len(v.entries) == 0 {
		v.say.note("standard input named no address: nothing to add")
		return nil
	}
	api, err := v.pools()
	if err != nil {
		return err
	}
	var add addition
	edited, err := api.edit(ctx, v.name, func(p pool) (map[string]any, error) {
		others, _, err := api.others(ctx, v.name)
		if err != nil {
			return nil, err
		}
		if add, err = addEntries(p.BCSNetPool, others, v.entries); err != nil || len(add.list) == len(p.Spec.AvailableIPs) {
			return nil, err
		}
		return map[string]any{"availableIPs": values(add.list)}, nil
	})
	if err != nil {
		return err
	}
	if len(add.same) > 0 {
		v.say.note("already in pool %s: %s", v.name, strings.Join(add.same, ", "))
	}
	for _, w := range add.warnings {
		v.say.warn("%s", w)
	}
	if len(add.added.Ranges()) > 0 {
		v.say.done("%s added to pool %s: %s", addresses(add.added), v.name, spell(add.added))
	}
	return v.output.object(v.Out, edited.stored)
}
