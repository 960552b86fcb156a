package pool

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/store"
)

type poolCreate struct {
	*app.App
	flags    *pflag.FlagSet
	output   printer.Output
	cidr     string
	settings poolSettings
	// selector selects hosts, tenants namespaces.
	selector, tenants string
	object            v1.BCSNetPool
	plan              ipam.Plan
}

func newCreate(s *app.App) *cobra.Command {
	v := &poolCreate{App: s}
	spec := &v.object.Spec
	cmd := &cobra.Command{
		Use: "create NAME --cidr CIDR [--gateway IP] --range A-B", Args: app.Takes(1, 1), RunE: app.Runs(v),
		Short: "Create a pool",
		Long: `Create a pool. Nothing is filled in: you name the subnet, the gateway and the
addresses to allocate. Network, broadcast and gateway addresses inside the
ranges are left out. Without --gateway the network has no router: pods get no
gateway, and no default route.

With --parent it is a group: some of the addresses of another pool, with its own
hosts and namespaces, or the parent's if none are named. Subnet, gateway and
network are the parent's. The parent stops allocating the addresses at once, and
the group starts some seconds later. Addresses that somebody has are refused.`,
		Example: "  bcsnetctl pool create blue --cidr 10.0.0.0/24 --gateway 10.0.0.1 --range 10.0.0.20-10.0.0.99 " +
			`--host 10.0.0.11
  bcsnetctl pool create six --cidr 2001:db8::/64 --gateway 2001:db8::1 --range 2001:db8::100-2001:db8::1ff \
    --network blue --namespace payments --dry-run=server -o yaml
  bcsnetctl pool create rack7 --cidr 10.0.7.0/24 --gateway 10.0.7.1 --range 10.0.7.20-10.0.7.99 \
    --host-selector topology.example.com/rack=7 --namespace-selector tier=gold
  bcsnetctl pool create storage --cidr 10.9.0.0/24 --range 10.9.0.20-10.9.0.99 --host-subnet 10.0.0.0/24
  bcsnetctl pool create blue-payments --parent blue --range 10.0.0.64-10.0.0.95 --namespace payments`,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := cmd.Flags()
	v.flags = f
	f.StringVar(&v.cidr, "cidr", "", "the subnet as a `CIDR` (required, but for a group)")
	f.StringVar(&spec.Gateway, "gateway", "",
		"the gateway's `IP` in the subnet; leave it out if the network has no router")
	f.StringVar(&spec.Parent, "parent", "", "make it a group of this `POOL`: a part of its addresses")
	f.StringSliceVar(&spec.AvailableIPs, "range", nil,
		"`ADDRESSES` to allocate: a-b, a CIDR or a single one; repeatable (required)")
	f.StringSliceVar(&spec.ExcludeIPs, "exclude", nil, "`ADDRESSES` in the ranges not to allocate; repeatable")
	f.StringSliceVar(&spec.Hosts, "host", nil, "`IP` of a host that may draw from the pool; repeatable")
	f.StringSliceVar(&spec.HostSubnets, "host-subnet", nil,
		"`CIDR` whose hosts may draw from the pool, also those that join later; repeatable")
	f.StringVar(&v.selector, "host-selector", "",
		"`LABELS` of nodes that may draw from the pool, by their internal IPs, as in kubectl")
	f.StringSliceVar(&spec.Namespaces, "namespace", nil, "bind the pool to this `NAMESPACE`; repeatable")
	f.StringVar(&v.tenants, "namespace-selector", "",
		"bind the pool to the namespaces that have these `LABELS`, as in kubectl")
	f.StringVar(&spec.Network, "network", "", "`NAME` shared by the IPv4 and IPv6 pools of one network")
	v.settings.addTo(cmd, spec)
	s.DryRun.AddTo(cmd)
	v.output.AddToChange(cmd)
	app.CompleteWith(cmd, "quota", completeQuotas(s))
	app.CompleteWith(cmd, "namespace", resource.CompleteNamespaces(s))
	app.CompleteWith(cmd, "parent", resource.CompleteParents(s))
	app.CompleteWith(cmd, "host", resource.CompleteHosts(s))
	for _, name := range []string{
		"cidr", "gateway", "range", "exclude", "host-subnet", "host-selector", "namespace-selector", "network",
	} {
		app.Complete(cmd, name)
	}
	return cmd
}

func (v *poolCreate) Complete(args []string) error {
	v.object.Name = args[0]
	return nil
}

func (v *poolCreate) Validate() error {
	if problems := validation.NameIsDNSSubdomain(v.object.Name, false); len(problems) > 0 {
		return app.Usagef("%q is not a name for a pool", v.object.Name).
			WithHint("a name is lower-case letters, digits, - and ., with a letter or digit at both ends")
	}
	if err := v.checkNarrowing(); err != nil {
		return err
	}
	if err := v.setSubnet(); err != nil {
		return err
	}
	spec := &v.object.Spec
	if _, err := resource.ParseEntries(spec.AvailableIPs); err != nil {
		return err
	}
	if _, err := resource.ParseHosts(spec.Hosts); err != nil {
		return err
	}
	for _, text := range spec.HostSubnets {
		if _, err := ipaddr.ParseNetwork(text); err != nil {
			return app.Usagef("--host-subnet: %v", err).WithHint("write a subnet of hosts as 10.0.0.0/16")
		}
	}
	var err error
	if spec.HostSelector, err = parseSelector("host-selector", "nodes", v.selector); err != nil {
		return err
	}
	if spec.NamespaceSelector, err = parseSelector("namespace-selector", "namespaces", v.tenants); err != nil {
		return err
	}
	if err := v.settings.read(spec); err != nil {
		return err
	}
	if spec.Quotas, err = parseQuotas(v.settings.quotas); err != nil {
		return err
	}
	if spec.Parent == "" {
		if err := v.setPlan(); err != nil {
			return err
		}
	}
	return v.output.Validate()
}

// checkNarrowing refuses empty values of flags that limit whom the pool serves, such as from an unset shell variable:
// the pool would serve everybody.
func (v *poolCreate) checkNarrowing() error {
	for _, name := range []string{
		"parent", "gateway", "host", "host-subnet", "host-selector", "namespace", "namespace-selector",
	} {
		f := v.flags.Lookup(name)
		if text := f.Value.String(); f.Changed && (text == "" || text == "[]") {
			return app.Usagef("--%s is empty", name).WithHint("say what it is, or leave --%s out", name)
		}
	}
	return nil
}

// parseSelector parses the label selector of a flag for objects of a kind. An empty text returns nil.
func parseSelector(flag, kind, text string) (*metav1.LabelSelector, error) {
	if text == "" {
		return nil, nil
	}
	s, err := metav1.ParseToLabelSelector(text)
	if err == nil {
		_, err = store.Selector(s)
	}
	if err != nil {
		example := map[string]string{"nodes": "rack=7", "namespaces": "tier=gold"}[kind]
		return nil, app.Usagef("--%s %q: %v", flag, text, err).
			WithHint("write it as for kubectl get %s -l: %s", kind, example)
	}
	return s, nil
}

func (v *poolCreate) Run(ctx context.Context) error {
	group := v.object.Spec.Parent != ""
	api, others, exists, err := v.others(ctx)
	blind := err != nil && v.DryRun == app.DryRunClient && !group
	switch {
	case blind:
		v.Say.Warn("not compared with the pools of the cluster: %v", err)
	case err != nil:
		return err
	case exists:
		return v.existing(ctx, api)
	}
	if group {
		if err := v.setParent(ctx, api); err != nil {
			return err
		}
	}
	fit := resource.NewFit(others, store.Pool(&v.object))
	if err := fit.Check(ctx, v.App); err != nil {
		return err
	}
	if err := fit.Overlaps(v.object.Name); err != nil {
		return err
	}
	created, err := v.create(ctx, api)
	if err != nil {
		return err
	}
	what := resource.Addresses(v.plan.Usable)
	if group {
		what += " of pool " + v.object.Spec.Parent
	}
	v.Say.Done("pool %s created: %s for %s", v.object.Name, what,
		resource.ForHosts(resource.Pool{BCSNetPool: &v.object}))
	if v.object.Spec.Gateway == "" {
		v.Say.Note("  it has no gateway: pods get no default route with its addresses")
	}
	_, is := fit.Pool(v.object.Name)
	v.warnHostless(ctx, is)
	if !blind {
		if err := v.sayChain(ctx, is, others); err != nil {
			return err
		}
	}
	if group && v.DryRun == app.DryRunNone {
		v.Hint("pool %s no longer allocates them, the group will in some seconds: bcsnetctl wait %s --for=ready",
			v.object.Spec.Parent, v.object.Name)
	}
	return v.output.Object(v.Out, created)
}

// others returns the other pools of the cluster, and whether this one exists already.
func (v *poolCreate) others(ctx context.Context) (*resource.Pools, []ipam.Pool, bool, error) {
	api, err := resource.NewPools(v.App)
	if err != nil {
		return nil, nil, false, err
	}
	others, exists, err := api.Others(ctx, v.object.Name)
	return api, others, exists, err
}

// warnHostless warns if no host may draw from the pool.
func (v *poolCreate) warnHostless(ctx context.Context, is ipam.Pool) {
	switch {
	case len(is.Hosts)+len(is.HostSubnets) > 0:
	case is.HostSelector == nil:
		v.Say.Warn("no host may draw from it yet")
		v.Hint("let hosts draw: bcsnetctl pool add-host %s HOST...", v.object.Name)
	default:
		nodes, err := resource.ListNodes(ctx, v.App)
		if err == nil && len(is.WithNodes(resource.Known(nodes)).Selected) == 0 {
			v.Say.Warn("no host may draw from it yet: no node with an internal IP has the labels %s", is.HostSelector)
			v.Hint("see the labels: kubectl get nodes --show-labels")
		}
	}
}

// sayChain prints which namespaces leave the default chain for the pool, and on which hosts they get no address.
func (v *poolCreate) sayChain(ctx context.Context, is ipam.Pool, others []ipam.Pool) error {
	var labels map[string]map[string]string
	if !is.InDefaultChain() { // else no namespace leaves it
		var err error
		if labels, err = resource.LabelsOfNamespaces(ctx, v.App); err != nil {
			return err
		}
	}
	sayEffects(v.App, chainEffectsOf(ipam.Pool{}, store.Pool(&v.object), others, labels, nil).say())
	return nil
}

func (v *poolCreate) create(ctx context.Context, api *resource.Pools) (*unstructured.Unstructured, error) {
	created, err := resource.CreateOurs(ctx, v.App, api.API, resource.PoolKind, &v.object)
	if apierrors.IsAlreadyExists(err) {
		return nil, v.existing(ctx, api)
	}
	return created, resource.Explain(v.App, err)
}

func (v *poolCreate) existing(ctx context.Context, api *resource.Pools) error {
	if p, err := api.Get(ctx, v.object.Name); err == nil && p.DeletionTimestamp != nil {
		return app.Refuse(app.ReasonPoolTerminating, "there is a pool %s already, which is being deleted",
			v.object.Name).
			WithHint("create it after that one is deleted; see what the deletion waits for: bcsnetctl pool describe %s",
				v.object.Name)
	}
	return app.Refuse(app.ReasonPoolExists, "there is a pool %s already", v.object.Name).
		WithHint("see it: bcsnetctl pool describe %s; give it more: bcsnetctl pool add-ip %s ADDRESS...", v.object.Name,
			v.object.Name)
}
