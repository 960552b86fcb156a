package events

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
)

type eventList struct {
	*app.App
	output printer.Output
	// pools and claims are the named objects; if both are empty, all are meant.
	pools  []string
	claims []types.NamespacedName
	kind   string
	table  *printer.GrowingTable[resource.Event]
}

// New returns the command events.
func New(s *app.App) *cobra.Command {
	v := &eventList{App: s}
	cmd := &cobra.Command{
		Use: "events [POOL|NAMESPACE/CLAIM...]", Aliases: []string{"event"}, GroupID: "objects",
		Args:  cobra.ArbitraryArgs,
		RunE:  app.Runs(v),
		Short: "Show what happened to pools and claims",
		Long: `Show the events of pools and claims, the newest last: a pool is ready or no
longer, ran out of addresses, began to drain, shares addresses with another; a
claim released an address. A claim is written NAMESPACE/NAME; without names it
is all pools, and all claims of all namespaces. The controller makes events;
Kubernetes deletes them after an hour, like all events.`,
		Example: `  bcsnetctl events
  bcsnetctl events blue --type Warning
  bcsnetctl events shop/deploy-web
  bcsnetctl events --sort-by .reason
  bcsnetctl events -w`,
		ValidArgsFunction: resource.CompletePools(s),
	}
	v.output.AddTo(cmd)
	cmd.Flags().StringVar(&v.kind, "type", "", "only events of this `TYPE`: Normal or Warning")
	cmd.Flags().BoolVarP(&v.output.Watch, "watch", "w", false, "go on and print events as they happen")
	app.Complete(cmd, "type", corev1.EventTypeNormal, corev1.EventTypeWarning)
	v.output.AddSort(cmd, ".regarding.name")
	return cmd
}

func (v *eventList) Complete(args []string) error {
	for _, arg := range args {
		if !strings.Contains(arg, "/") {
			v.pools = append(v.pools, arg)
			continue
		}
		key, err := (&resource.InNamespace{}).Key(arg)
		if err != nil {
			return err
		}
		v.claims = append(v.claims, key)
	}
	return nil
}

func (v *eventList) Validate() error {
	kinds := []string{"", corev1.EventTypeNormal, corev1.EventTypeWarning}
	i := slices.IndexFunc(kinds, func(k string) bool { return strings.EqualFold(k, v.kind) })
	if i < 0 {
		return app.Usagef("--type %q is not Normal or Warning", v.kind)
	}
	v.kind = kinds[i]
	return v.output.Validate()
}

func (v *eventList) Run(ctx context.Context) error {
	c, err := v.Dynamic()
	if err != nil {
		return err
	}
	api := c.Resource(resource.EventResource()).Namespace(v.namespace())
	found, err := v.list(ctx, api)
	if err != nil {
		return err
	}
	if err := printer.Sorted(&v.output.Sort, found,
		func(e resource.Event) (printer.SortKey, error) { return v.output.Sort.Key(e.Stored.Object) }); err != nil {
		return err
	}
	if v.table = (&printer.GrowingTable[resource.Event]{Table: printer.NewTable(&v.output,
		v.columns())}); v.output.Watch {
		v.table.Begin()
	}
	if err := v.print(ctx, found); err != nil || !v.output.Watch {
		return err
	}
	return v.follow(ctx, api, found)
}

// namespace returns the namespace to list events in; empty if there are several. Events about objects without a
// namespace are in the namespace default.
func (v *eventList) namespace() string {
	switch {
	case len(v.pools) > 0 && len(v.claims) == 0:
		return metav1.NamespaceDefault
	case len(v.claims) == 1 && len(v.pools) == 0:
		return v.claims[0].Namespace
	}
	return metav1.NamespaceAll
}

// selector returns the field selector for events about our objects. wants filters further.
func (v *eventList) selector() string {
	set := fields.Set{resource.EventGroupField: v1.GroupVersion.String()}
	if v.kind != "" {
		set["type"] = v.kind
	}
	switch {
	case len(v.claims) == 0 && len(v.pools) > 0:
		set["regarding.kind"] = resource.PoolKind
	case len(v.pools) == 0 && len(v.claims) > 0:
		set["regarding.kind"] = resource.ClaimKind
	}
	switch {
	case len(v.pools) == 1 && len(v.claims) == 0:
		set["regarding.name"] = v.pools[0]
	case len(v.claims) == 1 && len(v.pools) == 0:
		set["regarding.name"] = v.claims[0].Name
	}
	return set.AsSelector().String()
}

// list reads the events, the newest last.
func (v *eventList) list(ctx context.Context, api dynamic.ResourceInterface) (found []resource.Event, err error) {
	for options := (metav1.ListOptions{FieldSelector: v.selector(), Limit: resource.PageSize}); ; {
		page, err := api.List(ctx, options)
		if err != nil {
			return nil, resource.Explain(v.App, err)
		}
		for i := range page.Items {
			e, err := resource.ReadEvent(&page.Items[i])
			if err != nil {
				return nil, err
			}
			if v.wants(e) {
				found = append(found, e)
			}
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			slices.SortStableFunc(found, func(a, b resource.Event) int { return a.When.Compare(b.When) })
			return found, nil
		}
	}
}

func (v *eventList) wants(e resource.Event) bool {
	all := len(v.pools)+len(v.claims) == 0
	switch e.Regarding.Kind {
	case resource.PoolKind:
		return all || slices.Contains(v.pools, e.Regarding.Name)
	case resource.ClaimKind:
		return all || slices.Contains(v.claims, types.NamespacedName{
			Namespace: e.Regarding.Namespace, Name: e.Regarding.Name,
		})
	}
	return false
}

func (v *eventList) print(ctx context.Context, found []resource.Event) error {
	if v.output.Printer != nil && !v.output.Watch {
		return v.output.List(v.Out, app.Map(found, resource.Event.Object))
	}
	if err := v.write(found); err != nil {
		return err
	}
	if err := v.known(ctx, found); err != nil {
		return err
	}
	if len(found) == 0 {
		v.empty()
	}
	v.pointToHistory(found)
	return nil
}

// eventsLast is the default of the API server's --event-ttl.
const eventsLast = time.Hour

// HistoryHint names the command for the time before the oldest event.
const HistoryHint = "who had an address before, for longer than an hour: bcsnetctl ip history ADDRESS"

// pointToHistory prints HistoryHint, unless the command watches or found an event older than eventsLast.
func (v *eventList) pointToHistory(found []resource.Event) {
	older := func(e resource.Event) bool { return v.Now().Sub(e.When) > eventsLast }
	if !v.output.Watch && !slices.ContainsFunc(found, older) {
		v.Hint(HistoryHint)
	}
}

// known refuses a named pool or claim that neither exists nor has events.
func (v *eventList) known(ctx context.Context, found []resource.Event) error {
	pools, err := resource.NewPools(v.App)
	if err != nil {
		return err
	}
	for _, name := range v.pools {
		if slices.ContainsFunc(found, func(e resource.Event) bool {
			return e.Regarding.Kind == resource.PoolKind && e.Regarding.Name == name
		}) {
			continue
		}
		if _, err := pools.Get(ctx, name); err != nil {
			return err
		}
	}
	claims, err := resource.NewClaims(v.App)
	if err != nil {
		return err
	}
	for _, key := range v.claims {
		if slices.ContainsFunc(found, func(e resource.Event) bool {
			return e.Regarding.Kind == resource.ClaimKind && e.Regarding.Namespace == key.Namespace &&
				e.Regarding.Name == key.Name
		}) {
			continue
		}
		if _, err := claims.Get(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

// empty prints that there are no events about the selected objects.
func (v *eventList) empty() {
	what := "no events"
	if v.kind != "" {
		what = "no " + v.kind + " events"
	}
	var about []string
	if len(v.pools) > 0 {
		about = append(about, app.Those("pool", v.pools))
	}
	claims := app.Map(v.claims, types.NamespacedName.String)
	if len(claims) > 0 {
		about = append(about, app.Those("claim", claims))
	}
	if len(about) == 0 {
		about = []string{"pools", "claims"}
	}
	v.Say.Note("%s about %s in %s; Kubernetes keeps them for an hour", what, strings.Join(about, " and "), v.Where())
}
