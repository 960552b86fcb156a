package pool

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
)

type poolEdit struct{ poolChange }

func newEdit(s *app.App) *cobra.Command {
	v := &poolEdit{poolChange{App: s, done: "edited", again: "edit it again: bcsnetctl pool edit"}}
	cmd := &cobra.Command{
		Use: "edit POOL", Args: app.Takes(1, 1), RunE: app.Runs(v),
		Short: "Edit a pool in an editor",
		Long: `Edit a pool in an editor: KUBE_EDITOR, EDITOR or vi. If the text is refused, the
editor opens again with the reason; leaving it without a change ends the
command. It says what the change does to leases, and asks when it touches
something that is in use. If somebody else changes the pool meanwhile, nothing
is stored. Without a terminal, EDITOR has to be a program that needs none.`,
		Example: `  bcsnetctl pool edit blue
  KUBE_EDITOR="code --wait" bcsnetctl pool edit blue --dry-run=server -o yaml`,
		ValidArgsFunction: resource.CompletePoolFirst(s, nil),
	}
	v.addTo(cmd)
	return cmd
}

func (v *poolEdit) Complete(args []string) error {
	v.name = args[0]
	return nil
}

func (v *poolEdit) Validate() error {
	if v.EditorNeedsTerminal() {
		return app.Usagef("standard input is not a terminal, and the editor %s needs one", v.Editor()).
			WithHint(
				"have a program edit: EDITOR='sed -i s/old/new/' bcsnetctl pool edit %s; or: bcsnetctl pool export "+
					"%s > FILE, and kubectl apply --server-side -f FILE", v.name, v.name)
	}
	return v.output.Validate()
}

func (v *poolEdit) Run(ctx context.Context) error {
	api, live, err := v.read(ctx)
	if err != nil {
		return err
	}
	draft, err := newDraft(v.App, live)
	if err != nil {
		return err
	}
	defer draft.drop()
	var next resource.Pool
	for {
		edited, err := draft.open(ctx)
		if err != nil {
			return err
		}
		if !edited {
			return v.cancelled(draft)
		}
		wanted, err := draft.wanted(live)
		if err == nil {
			next, err = v.checked(ctx, api, live, wanted)
		}
		if err == nil {
			break
		}
		if !isRefusal(err) {
			return draft.save(err)
		}
		draft.refused = err
	}
	return draft.saveUnlessStored(v.apply(ctx, api, live, next))
}

func (v *poolEdit) cancelled(d *draft) error {
	if d.refused != nil {
		return d.save(d.refused)
	}
	v.unchanged()
	return nil
}
