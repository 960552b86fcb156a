package pool

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/cli/view"
	"github.com/bcsnet/bcsnet/pkg/history"
)

type poolHistory struct {
	*app.App
	resource.Period
	output printer.Output
	pool   string
	limit  int
}

// mostChanges is the default maximum of changes.
const mostChanges = 1000

func newHistory(s *app.App) *cobra.Command {
	v := &poolHistory{App: s}
	cmd := &cobra.Command{
		Use: "history POOL", Args: app.Takes(1, 1), RunE: app.Runs(v),
		Short: "Show who changed a pool, when and how",
		Long: `Show the changes of a pool, newest first: who created, changed or deleted it,
and the fields of each change before and after. For a list it shows the removed
and the added entries. The controller keeps this for 30 days, unless its
--history-retention says otherwise, also for pools that are gone.

BY is the API server's user, if the policy bcsnet-authors is installed and
served (Kubernetes 1.36 and newer). Otherwise it is the client's own name,
marked as a program. No object has the user who deleted a pool: see the API
server's audit log.`,
		Example: `  bcsnetctl pool history blue
  bcsnetctl pool history blue --since 7d -o json`,
		ValidArgsFunction: resource.CompletePools(s),
	}
	cmd.Flags().IntVar(&v.limit, "limit", mostChanges, "at most so many `CHANGES`, the newest; 0 for all")
	v.AddTo(cmd, "")
	app.Complete(cmd, "limit", "100", "1000", "0")
	v.output.AddToViews(cmd)
	return cmd
}

func (v *poolHistory) Complete(args []string) error {
	v.pool = args[0]
	return nil
}

func (v *poolHistory) Validate() error {
	if v.limit < 0 {
		return app.Usagef("--limit %d is negative", v.limit)
	}
	return cmp.Or(v.Period.Validate(v.Now()), v.output.Validate())
}

func (v *poolHistory) Run(ctx context.Context) error {
	h, err := view.PoolHistoryOf(ctx, v.App, v.pool, v.Period, v.limit)
	if err != nil {
		return err
	}
	if len(h.Records) == 0 {
		if _, err := resource.ChoosePools(ctx, v.App, []string{v.pool}); err != nil {
			return err
		}
		v.Say.Note("no change of pool %s is recorded in %s", v.pool, v.Where())
	}
	resource.SayGaps(v.App, h.Gaps)
	for _, note := range h.Notes {
		v.Say.Note("%s", note)
	}
	if v.output.Printer != nil {
		return v.output.Object(v.Out, printer.NewViews("PoolHistory", h.Records, changeFields))
	}
	return printer.NewTable(&v.output, changeColumns()).Write(v.Out, changeRows(h.Records))
}

// changeRow is a changed field.
type changeRow struct {
	history.Record
	history.FieldChange
}

// changeRows returns a row for each changed field, and one for a change without fields.
func changeRows(records []history.Record) (rows []changeRow) {
	for _, r := range records {
		if len(r.Changes) == 0 {
			rows = append(rows, changeRow{Record: r})
		}
		for _, c := range r.Changes {
			rows = append(rows, changeRow{r, c})
		}
	}
	return rows
}

func changeColumns() []printer.Column[changeRow] {
	return []printer.Column[changeRow]{
		{Name: "TIME", Cell: func(r changeRow) string { return resource.TimeText(r.Time) }},
		{Name: "WHAT", Cell: func(r changeRow) string { return r.What }},
		{Name: "BY", Cell: func(r changeRow) string { return view.Author(r.Record) }},
		{Name: "FIELD", Cell: func(r changeRow) string { return r.Field }},
		{Name: "OLD", Cell: func(r changeRow) string { return r.Old }},
		{Name: "NEW", Cell: func(r changeRow) string { return r.New }},
	}
}

// changeFields returns the fields of a record for -o json and similar formats.
func changeFields(r history.Record) map[string]any {
	changes := app.Map(r.Changes,
		func(c history.FieldChange) any { return map[string]any{"field": c.Field, "old": c.Old, "new": c.New} })
	return map[string]any{
		"pool": r.Pool, "time": resource.TimeText(r.Time), "what": r.What, "by": r.By, "program": r.Program,
		"generation": r.Generation, "changes": changes,
	}
}
