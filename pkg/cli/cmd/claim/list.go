package claim

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/follow"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
)

type claimList struct {
	*app.App
	output printer.Output
	which  resource.Selectors
	in     resource.InNamespace
}

func newList(s *app.App) *cobra.Command {
	v := &claimList{App: s}
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls", "get"}, Args: app.Takes(0, 0), RunE: app.Runs(v),
		Short: "List claims and their addresses",
		Long: `List the claims of a namespace: whose they are, how many of their addresses pods
have, and which those are, as their status says. Without -n it is the namespace
of the kubeconfig's context; -A is for all.`,
		Example: `  bcsnetctl claim list -n shop
  bcsnetctl claim list -A -o wide
  bcsnetctl claim list -A --sort-by .status.held`,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	v.output.AddTo(cmd)
	v.output.AddSort(cmd, ".status.held")
	follow.AddWatch(&v.output, cmd)
	v.which.AddLabels(cmd, "claims")
	v.in.AddTo(s, cmd, "only claims of this `NAMESPACE`")
	v.in.AddAll(cmd, "claims of all namespaces")
	return cmd
}

func (v *claimList) Validate() error { return cmp.Or(v.which.Validate(), v.output.Validate()) }

func (v *claimList) Run(ctx context.Context) error {
	if err := v.in.Complete(v.App); err != nil {
		return err
	}
	if v.output.Watch {
		return v.watch(ctx)
	}
	all, err := resource.AllClaims(ctx, v.App, v.in.Name, v.which.Options())
	if err != nil {
		return err
	}
	if err := printer.Sorted(&v.output.Sort, all,
		func(c resource.Claim) (printer.SortKey, error) { return v.output.Sort.Key(c.Stored.Object) }); err != nil {
		return err
	}
	if v.output.Printer != nil {
		return v.output.List(v.Out, app.Map(all, resource.Claim.Object))
	}
	if err := printer.NewTable(&v.output, v.columns()).Write(v.Out, all); err != nil {
		return err
	}
	v.Say.Note("%s", v.summary(all))
	if len(all) == 0 && !v.in.All && v.which == (resource.Selectors{}) {
		v.Hint("the claims of all namespaces: bcsnetctl claim list -A")
	}
	return nil
}

// columns returns the columns of crd-ipkeeper, followed by ours.
func (v *claimList) columns() []printer.Column[resource.Claim] {
	return []printer.Column[resource.Claim]{
		{Name: "NAME", Cell: func(c resource.Claim) string { return c.Name }},
		{Name: "OWNERKIND", Cell: func(c resource.Claim) string {
			if c.Spec.Owner == nil {
				return ""
			}
			return c.Spec.Owner.Kind
		}},
		{Name: "NAMESPACE", Cell: func(c resource.Claim) string { return c.Namespace }},
		{Name: "USED", Cell: func(c resource.Claim) string { return c.Status.Usage }},
		{Name: "IPPOOL", Cell: func(c resource.Claim) string { return c.Status.IPPool }},
		{Name: "OWNER", Wide: true, Cell: func(c resource.Claim) string {
			if c.Spec.Owner == nil {
				return c.Spec.SharedName
			}
			return c.Spec.Owner.Name
		}},
		{Name: "POLICY", Wide: true, Cell: func(c resource.Claim) string { return string(c.Spec.ReleasePolicy) }},
		{
			Name: "READY", Wide: true,
			Cell: func(c resource.Claim) string {
				word, _ := resource.ClaimState(c.BCSNetIPClaim)
				return word
			},
		},
		{Name: "AGE", Wide: true, Cell: func(c resource.Claim) string { return v.Age(c.CreationTimestamp.Time) }},
	}
}

func (v *claimList) watch(ctx context.Context) error {
	show := func(w io.Writer, c resource.Claim) error { return v.output.Object(w, c.Stored) }
	from := follow.Source{Kind: resource.Of(v1.ClaimResource), Which: v.which.Options(), Namespace: v.in.Name}
	return follow.WatchObjects(ctx, v.App, from, resource.ReadClaim, &follow.Watched[resource.Claim]{
		View:    follow.NewView(v.App, &v.output, v.columns(), show, v.summary),
		Compare: resource.ByClaim,
		Items:   map[string]resource.Claim{},
	})
}

// summary counts the claims, and the ones that need attention.
func (v *claimList) summary(all []resource.Claim) string {
	if len(all) == 0 {
		text := resource.WithWords("no claims", v.which.Words())
		if v.in.Name != "" {
			text += " in namespace " + v.in.Name
		}
		return text + " in " + v.Where()
	}
	var names []string
	for _, c := range all {
		if word, attention := resource.ClaimState(c.BCSNetIPClaim); attention {
			names = append(names, fmt.Sprintf("%s (%s)", c.FullName(), word))
		}
	}
	text := humanize.Plural(len(all), "claim")
	if len(names) > 0 {
		text += fmt.Sprintf(", %d %s attention: %s", len(names), humanize.OneOr(len(names), "needs", "need"),
			humanize.List(names))
	}
	return text
}
