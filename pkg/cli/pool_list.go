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
	"github.com/bcsnet/bcsnet/pkg/cli/follow"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
)

type poolList struct {
	*app.App
	output printer.Output
	which  resource.Selectors
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
	follow.AddWatch(&v.output, cmd)
	v.which.AddLabels(cmd, "pools")
	v.which.AddFields(cmd, "pools", "spec.network=net-a")
	return cmd
}

func (v *poolList) Complete([]string) error { return nil }

func (v *poolList) Validate() error {
	if err := v.which.Validate(); err != nil {
		return err
	}
	return v.output.Validate()
}

func (v *poolList) Run(ctx context.Context) error {
	if v.output.Watch {
		return v.watch(ctx)
	}
	api, err := resource.NewPools(v.App)
	if err != nil {
		return err
	}
	all, err := api.ListWith(ctx, v.which.Options())
	if err != nil {
		return err
	}
	if err := printer.Sorted(&v.output.Sort, all, func(p resource.Pool) (printer.SortKey, error) { return v.output.Sort.Key(p.Stored.Object) }); err != nil {
		return err
	}
	if v.output.Printer != nil {
		var items []unstructured.Unstructured
		for _, p := range all {
			items = append(items, *p.Stored)
		}
		return v.output.List(v.Out, items)
	}
	columns := addUp(v.columns(), all, func(p resource.Pool) *v1.BCSNetPool { return p.BCSNetPool })
	if err := printer.NewTable(&v.output, columns).Write(v.Out, all); err != nil {
		return err
	}
	v.sumUp(all)
	return nil
}

func (v *poolList) columns() []printer.Column[resource.Pool] {
	status := func(n func(resource.Pool) int64) func(resource.Pool) string {
		return func(p resource.Pool) string {
			if !resource.Counted(p.BCSNetPool) {
				return ""
			}
			return app.Count(n(p))
		}
	}
	return []printer.Column[resource.Pool]{
		{Name: "NAME", Cell: func(p resource.Pool) string { return p.Name }},
		{Name: "CIDR", Cell: func(p resource.Pool) string { return resource.CidrOf(p.BCSNetPool) }},
		{Name: "HOSTS", Cell: resource.HostCell},
		{Name: "TOTAL", Cell: status(func(p resource.Pool) int64 { return p.Status.Capacity })},
		{Name: "ACTIVE", Cell: status(func(p resource.Pool) int64 { return p.Status.Active })},
		{Name: "RSVD", Cell: status(func(p resource.Pool) int64 { return p.Status.Reserved })},
		{Name: "COOLING", Wide: true, Cell: status(func(p resource.Pool) int64 { return p.Status.Cooling })},
		{Name: "OTHERS", Wide: true, Cell: status(func(p resource.Pool) int64 { return othersOf(p.BCSNetPool) })},
		{Name: "FREE", Cell: status(func(p resource.Pool) int64 { return p.Status.Available })},
		{Name: "USED", Cell: v.used},
		{Name: "STATE", Cell: func(p resource.Pool) string {
			word, _ := resource.PoolState(v.App, p.BCSNetPool)
			return v.Terminal.Paint(resource.PoolStateColor(v.App, p.BCSNetPool), word)
		}},
		{Name: "GATEWAY", Wide: true, Cell: func(p resource.Pool) string { return p.Spec.Gateway }},
		{Name: "VLAN", Wide: true, Cell: func(p resource.Pool) string { return app.UnlessZero(p.Spec.VLAN) }},
		{Name: "NAMESPACES", Wide: true, Cell: func(p resource.Pool) string { return strings.Join(p.Spec.Namespaces, ",") }},
		{Name: "NETWORK", Wide: true, Cell: func(p resource.Pool) string { return p.Spec.Network }},
		{Name: "PRIORITY", Wide: true, Cell: func(p resource.Pool) string { return strconv.Itoa(int(p.Spec.Priority)) }},
		{Name: "AGE", Cell: func(p resource.Pool) string { return v.Age(p.CreationTimestamp.Time) }},
	}
}

func (v *poolList) used(p resource.Pool) string {
	return v.Terminal.UsedCell(p.Status.Capacity-p.Status.Available, p.Status.Capacity)
}

// watch goes on and shows what changes.
func (v *poolList) watch(ctx context.Context) error {
	show := func(w io.Writer, p resource.Pool) error { return v.output.Object(w, p.Stored) }
	return follow.WatchObjects(ctx, v.App, follow.Source{Kind: resource.Of(v1.PoolResource), Which: v.which.Options()}, resource.ReadPool,
		&follow.Watched[resource.Pool]{
			View:    follow.NewView(v.App, &v.output, v.columns(), show, v.summary),
			Compare: func(a, b resource.Pool) int { return cmp.Compare(a.Name, b.Name) },
			Items:   map[string]resource.Pool{},
		})
}

// sumUp says how many there are and which ones to look at.
func (v *poolList) sumUp(all []resource.Pool) {
	v.Say.Note("%s", v.summary(all))
	if len(all) == 0 && v.which == (resource.Selectors{}) {
		v.Hint("make one: bcsnetctl pool create --help")
	}
}

func (v *poolList) summary(all []resource.Pool) string {
	if len(all) == 0 {
		return resource.WithWords("no pools", v.which.Words()) + " in " + v.Where()
	}
	var names []string
	for _, p := range all {
		if word, attention := resource.PoolState(v.App, p.BCSNetPool); attention {
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
