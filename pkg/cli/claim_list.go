package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
)

func newClaim(s *session) *cobra.Command {
	cmd := &cobra.Command{
		Use: "claim", Aliases: []string{"claims"}, GroupID: "objects", Args: cobra.ArbitraryArgs, RunE: group,
		Short: "Addresses that are kept for workloads",
	}
	cmd.AddCommand(
		newClaimList(s), newClaimDescribe(s), newClaimCreate(s), newClaimResize(s), newClaimRelease(s), newClaimDelete(s))
	return cmd
}

type claimList struct {
	*session
	output output
	which  selectors
	in     inNamespace
}

func newClaimList(s *session) *cobra.Command {
	v := &claimList{session: s}
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls", "get"}, Args: takes(0, 0), RunE: runs(v),
		Short: "List claims and their addresses",
		Long: `List the claims of a namespace: whose they are, how many of their addresses pods
have, and which those are, as their status says. Without -n it is the namespace
of the kubeconfig's context; -A is for all.`,
		Example: `  bcsnetctl claim list -n shop
  bcsnetctl claim list -A -o wide
  bcsnetctl claim list -A --sort-by .status.held`,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	v.output.addTo(cmd)
	v.output.addSort(cmd, ".status.held")
	v.output.addWatch(cmd)
	v.which.addLabels(cmd, "claims")
	v.in.addTo(s, cmd, "only claims of this `NAMESPACE`")
	v.in.addAll(cmd, "claims of all namespaces")
	return cmd
}

func (v *claimList) Complete([]string) error { return nil }

func (v *claimList) Validate() error {
	if err := v.which.validate(); err != nil {
		return err
	}
	return v.output.validate()
}

func (v *claimList) Run(ctx context.Context) error {
	if err := v.in.complete(v.session); err != nil {
		return err
	}
	if v.output.watch {
		return v.watch(ctx)
	}
	api, err := v.claims()
	if err != nil {
		return err
	}
	all, err := api.list(ctx, v.in.name, v.which.options())
	if err != nil {
		return err
	}
	if err := sorted(&v.output.sort, all, func(c ipClaim) (sortKey, error) { return v.output.sort.key(c.stored.Object) }); err != nil {
		return err
	}
	if v.output.printer != nil {
		var items []unstructured.Unstructured
		for _, c := range all {
			items = append(items, *c.stored)
		}
		return v.output.list(v.Out, items)
	}
	if err := newTable(&v.output, v.columns()).write(v.Out, all); err != nil {
		return err
	}
	v.say.note("%s", v.summary(all))
	if len(all) == 0 && !v.in.all && v.which == (selectors{}) {
		v.hint("those of all namespaces: bcsnetctl claim list -A")
	}
	return nil
}

// columns are those that crd-ipkeeper shows, and ours behind them.
func (v *claimList) columns() []column[ipClaim] {
	return []column[ipClaim]{
		{name: "NAME", cell: func(c ipClaim) string { return c.Name }},
		{name: "OWNERKIND", cell: func(c ipClaim) string {
			if c.Spec.Owner == nil {
				return ""
			}
			return c.Spec.Owner.Kind
		}},
		{name: "NAMESPACE", cell: func(c ipClaim) string { return c.Namespace }},
		{name: "USED", cell: func(c ipClaim) string { return c.Status.Usage }},
		{name: "IPPOOL", cell: func(c ipClaim) string { return c.Status.IPPool }},
		{name: "OWNER", wide: true, cell: func(c ipClaim) string {
			if c.Spec.Owner == nil {
				return c.Spec.SharedName
			}
			return c.Spec.Owner.Name
		}},
		{name: "POLICY", wide: true, cell: func(c ipClaim) string { return string(c.Spec.ReleasePolicy) }},
		{name: "READY", wide: true, cell: func(c ipClaim) string { word, _ := claimState(c.BCSNetIPClaim); return word }},
		{name: "AGE", wide: true, cell: func(c ipClaim) string { return v.age(c.CreationTimestamp.Time) }},
	}
}

// watch goes on and shows what changes.
func (v *claimList) watch(ctx context.Context) error {
	show := func(w io.Writer, c ipClaim) error { return v.output.object(w, c.stored) }
	from := source{kind: resource(v1.ClaimResource), which: v.which.options(), namespace: v.in.name}
	return watchObjects(ctx, v.session, from, readClaim, &watched[ipClaim]{
		view:    newView(v.session, &v.output, v.columns(), show, v.summary),
		compare: byClaim,
		items:   map[string]ipClaim{},
	})
}

// summary says how many there are and which ones to look at.
func (v *claimList) summary(all []ipClaim) string {
	if len(all) == 0 {
		text := withWords("no claims", v.which.words())
		if v.in.name != "" {
			text += " in namespace " + v.in.name
		}
		return text + " in " + v.where()
	}
	var names []string
	for _, c := range all {
		if word, attention := claimState(c.BCSNetIPClaim); attention {
			names = append(names, fmt.Sprintf("%s (%s)", c.name(), word))
		}
	}
	text := humanize.Plural(len(all), "claim")
	if len(names) > 0 {
		text += fmt.Sprintf(", %d %s attention: %s", len(names), humanize.OneOr(len(names), "needs", "need"), humanize.List(names))
	}
	return text
}
