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
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
)

type poolList struct {
	*session
	output output
	which  selectors
}

func newPoolList(s *session) *cobra.Command {
	v := &poolList{session: s}
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls", "get"}, Args: takes(0, 0), RunE: runs(v),
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
	v.output.addTo(cmd)
	v.output.addSort(cmd, ".status.available")
	v.output.addWatch(cmd)
	v.which.addLabels(cmd, "pools")
	v.which.addFields(cmd, "pools", "spec.network=net-a")
	return cmd
}

func (v *poolList) Complete([]string) error { return nil }

func (v *poolList) Validate() error {
	if err := v.which.validate(); err != nil {
		return err
	}
	return v.output.validate()
}

func (v *poolList) Run(ctx context.Context) error {
	if v.output.watch {
		return v.watch(ctx)
	}
	api, err := v.pools()
	if err != nil {
		return err
	}
	all, err := api.listWith(ctx, v.which.options())
	if err != nil {
		return err
	}
	if err := sorted(&v.output.sort, all, func(p pool) (sortKey, error) { return v.output.sort.key(p.stored.Object) }); err != nil {
		return err
	}
	if v.output.printer != nil {
		var items []unstructured.Unstructured
		for _, p := range all {
			items = append(items, *p.stored)
		}
		return v.output.list(v.Out, items)
	}
	columns := addUp(v.columns(), all, func(p pool) *v1.BCSNetPool { return p.BCSNetPool })
	if err := newTable(&v.output, columns).write(v.Out, all); err != nil {
		return err
	}
	v.sumUp(all)
	return nil
}

func (v *poolList) columns() []column[pool] {
	status := func(n func(pool) int64) func(pool) string {
		return func(p pool) string {
			if !counted(p.BCSNetPool) {
				return ""
			}
			return count(n(p))
		}
	}
	return []column[pool]{
		{name: "NAME", cell: func(p pool) string { return p.Name }},
		{name: "CIDR", cell: func(p pool) string { return cidrOf(p.BCSNetPool) }},
		{name: "HOSTS", cell: hostCell},
		{name: "TOTAL", cell: status(func(p pool) int64 { return p.Status.Capacity })},
		{name: "ACTIVE", cell: status(func(p pool) int64 { return p.Status.Active })},
		{name: "RSVD", cell: status(func(p pool) int64 { return p.Status.Reserved })},
		{name: "COOLING", wide: true, cell: status(func(p pool) int64 { return p.Status.Cooling })},
		{name: "OTHERS", wide: true, cell: status(func(p pool) int64 { return othersOf(p.BCSNetPool) })},
		{name: "FREE", cell: status(func(p pool) int64 { return p.Status.Available })},
		{name: "USED", cell: v.used},
		{name: "STATE", cell: func(p pool) string {
			word, _ := v.state(p.BCSNetPool)
			return v.out.paint(v.stateColor(p.BCSNetPool), word)
		}},
		{name: "GATEWAY", wide: true, cell: func(p pool) string { return p.Spec.Gateway }},
		{name: "VLAN", wide: true, cell: func(p pool) string { return unlessZero(p.Spec.VLAN) }},
		{name: "NAMESPACES", wide: true, cell: func(p pool) string { return strings.Join(p.Spec.Namespaces, ",") }},
		{name: "NETWORK", wide: true, cell: func(p pool) string { return p.Spec.Network }},
		{name: "PRIORITY", wide: true, cell: func(p pool) string { return strconv.Itoa(int(p.Spec.Priority)) }},
		{name: "AGE", cell: func(p pool) string { return v.age(p.CreationTimestamp.Time) }},
	}
}

func (v *poolList) used(p pool) string {
	return v.out.usedCell(p.Status.Capacity-p.Status.Available, p.Status.Capacity)
}

// watch goes on and shows what changes.
func (v *poolList) watch(ctx context.Context) error {
	show := func(w io.Writer, p pool) error { return v.output.object(w, p.stored) }
	return watchObjects(ctx, v.session, source{kind: resource(v1.PoolResource), which: v.which.options()}, readPool,
		&watched[pool]{
			view:    newView(v.session, &v.output, v.columns(), show, v.summary),
			compare: func(a, b pool) int { return cmp.Compare(a.Name, b.Name) },
			items:   map[string]pool{},
		})
}

// sumUp says how many there are and which ones to look at.
func (v *poolList) sumUp(all []pool) {
	v.say.note("%s", v.summary(all))
	if len(all) == 0 && v.which == (selectors{}) {
		v.hint("make one: bcsnetctl pool create --help")
	}
}

func (v *poolList) summary(all []pool) string {
	if len(all) == 0 {
		return withWords("no pools", v.which.words()) + " in " + v.where()
	}
	var names []string
	for _, p := range all {
		if word, attention := v.state(p.BCSNetPool); attention {
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
