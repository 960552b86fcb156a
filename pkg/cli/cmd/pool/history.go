package pool

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
	if err := v.Period.Validate(v.Now()); err != nil {
		return err
	}
	return v.output.Validate()
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
		return v.output.Object(v.Out, changeObjects(h.Records))
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

// changeObjects returns the list for -o json and similar formats. The cluster has no such kind: it is a view.
func changeObjects(records []history.Record) *unstructured.UnstructuredList {
	l := &unstructured.UnstructuredList{Object: map[string]any{
		"apiVersion": app.ProgramName + "/v1", "kind": "PoolHistoryList",
	}}
	for _, r := range records {
		changes := []any{}
		for _, c := range r.Changes {
			changes = append(changes, map[string]any{"field": c.Field, "old": c.Old, "new": c.New})
		}
		l.Items = append(l.Items, unstructured.Unstructured{Object: map[string]any{
			"apiVersion": app.ProgramName + "/v1", "kind": "PoolHistory", "pool": r.Pool,
			"time": resource.TimeText(r.Time), "what": r.What, "by": r.By, "program": r.Program,
			"generation": r.Generation, "changes": changes,
		}})
	}
	return l
}
