package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
)

type poolList struct {
	*app.App
	output printer.Output
	which  selectors
}

func newPoolList(s *app.App) *cobra.Command {
	v := &poolList{App: s}
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls", "get"}, Args: app.Takes(0, 0), RunE: app.Runs(v),
		Short: "List pools and how full they are",
		Long: `List pools and how full they are, as their status says. STATE is Ready, or the
gravest thing to know; bcsnetctl pool describe says more. Unseen means that no
controller has looked at the pool yet.`,
		Example: `  bcsnetctl pool list
  bcsnetctl pool list -o wide -l team=payments
  bcsnetctl pool list --field-selector spec.network=net-a
  bcsnetctl pool list --sort-by .status.available
  bcsnetctl pool list --watch
  bcsnetctl pool list -o custom-columns=NAME:metadata.name,FREE:status.available`,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	v.output.AddTo(cmd)
	v.output.AddSort(cmd, ".status.available")
	addWatch(&v.output, cmd)
	v.which.addLabels(cmd, "pools")
	v.which.addFields(cmd, "pools", "spec.network=net-a")
	return cmd
}

func (v *poolList) Complete([]string) error { return nil }

func (v *poolList) Validate() error {
	if err := v.which.validate(); err != nil {
		return err
	}
	return v.output.Validate()
}

func (v *poolList) Run(ctx context.Context) error {
	if v.output.Watch {
		return v.watch(ctx)
	}
	api, err := newPools(v.App)
	if err != nil {
		return err
	}
	all, err := api.listWith(ctx, v.which.options())
	if err != nil {
		return err
	}
	if err := printer.Sorted(&v.output.Sort, all, func(p pool) (printer.SortKey, error) { return v.output.Sort.Key(p.stored.Object) }); err != nil {
		return err
	}
	if v.output.Printer != nil {
		var items []unstructured.Unstructured
		for _, p := range all {
			items = append(items, *p.stored)
		}
		return v.output.List(v.Out, items)
	}
	columns := addUp(v.columns(), all, func(p pool) *v1.BCSNetPool { return p.BCSNetPool })
	if err := printer.NewTable(&v.output, columns).Write(v.Out, all); err != nil {
		return err
	}
	v.sumUp(all)
	return nil
}

func (v *poolList) columns() []printer.Column[pool] {
	status := func(n func(pool) int64) func(pool) string {
		return func(p pool) string {
			if !counted(p.BCSNetPool) {
				return ""
			}
			return app.Count(n(p))
		}
	}
	return []printer.Column[pool]{
		{Name: "NAME", Cell: func(p pool) string { return p.Name }},
		{Name: "CIDR", Cell: func(p pool) string { return cidrOf(p.BCSNetPool) }},
		{Name: "HOSTS", Cell: hostCell},
		{Name: "TOTAL", Cell: status(func(p pool) int64 { return p.Status.Capacity })},
		{Name: "ACTIVE", Cell: status(func(p pool) int64 { return p.Status.Active })},
		{Name: "RSVD", Cell: status(func(p pool) int64 { return p.Status.Reserved })},
		{Name: "COOLING", Wide: true, Cell: status(func(p pool) int64 { return p.Status.Cooling })},
		{Name: "OTHERS", Wide: true, Cell: status(func(p pool) int64 { return othersOf(p.BCSNetPool) })},
		{Name: "FREE", Cell: status(func(p pool) int64 { return p.Status.Available })},
		{Name: "USED", Cell: v.used},
		{Name: "STATE", Cell: func(p pool) string {
			word, _ := poolState(v.App, p.BCSNetPool)
			return v.Terminal.Paint(poolStateColor(v.App, p.BCSNetPool), word)
		}},
		{Name: "GATEWAY", Wide: true, Cell: func(p pool) string { return p.Spec.Gateway }},
		{Name: "VLAN", Wide: true, Cell: func(p pool) string { return app.UnlessZero(p.Spec.VLAN) }},
		{Name: "NAMESPACES", Wide: true, Cell: func(p pool) string { return strings.Join(p.Spec.Namespaces, ",") }},
		{Name: "NETWORK", Wide: true, Cell: func(p pool) string { return p.Spec.Network }},
		{Name: "PRIORITY", Wide: true, Cell: func(p pool) string { return strconv.Itoa(int(p.Spec.Priority)) }},
		{Name: "AGE", Cell: func(p pool) string { return v.Age(p.CreationTimestamp.Time) }},
	}
}

func (v *poolList) used(p pool) string {
	return v.Terminal.UsedCell(p.Status.Capacity-p.Status.Available, p.Status.Capacity)
}

// watch goes on and shows what changes.
func (v *poolList) watch(ctx context.Context) error {
	show := func(w io.Writer, p pool) error { return v.output.Object(w, p.stored) }
	return watchObjects(ctx, v.App, source{kind: resource(v1.PoolResource), which: v.which.options()}, readPool,
		&watched[pool]{
			view:    newView(v.App, &v.output, v.columns(), show, v.summary),
			compare: func(a, b pool) int { return cmp.Compare(a.Name, b.Name) },
			items:   map[string]pool{},
		})
}

// sumUp says how many there are and which ones to look at.
func (v *poolList) sumUp(all []pool) {
	v.Say.Note("%s", v.summary(all))
	if len(all) == 0 && v.which == (selectors{}) {
		v.Hint("make one: bcsnetctl pool create --help")
	}
}

func (v *poolList) summary(all []pool) string {
	if len(all) == 0 {
		return withWords("no pools", v.which.words()) + " in " + v.Where()
	}
	var names []string
	for _, p := range all {
		if word, attention := poolState(v.App, p.BCSNetPool); attention {
			names = append(names, fmt.Sprintf("%s (%s)", p.Name, word))
		}
	}
	text := humanize.Plural(len(all), "pool")
	switch len(names) {
	case 0:
	case 1:
		text += ", 1 needs attention: " + names[0]
	default:
		text += fmt.Sprintf(", %d need attention: %s", len(names), humanize.List(names))
	}
	return text
}
