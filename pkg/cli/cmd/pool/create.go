package pool

import (
	"context"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

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
	output      printer.Output
	cidr        string
	materialize string
	cooldown    time.Duration
	quotas      []string
	object      v1.BCSNetPool
	plan        ipam.Plan
}

func newCreate(s *app.App) *cobra.Command {
	v := &poolCreate{App: s}
	spec := &v.object.Spec
	cmd := &cobra.Command{
		Use: "create NAME --cidr CIDR --gateway IP --range A-B", Args: app.Takes(1, 1), RunE: app.Runs(v),
		Short: "Create a pool",
		Long: `Create a pool. Nothing is filled in: the subnet, the gateway and the addresses
to hand out are for you to say. Network, broadcast and gateway addresses inside
the ranges are left out.`,
		Example: "" +
			`  bcsnetctl pool create blue --cidr 10.0.0.0/24 --gateway 10.0.0.1 --range 10.0.0.20-10.0.0.99 --host 10.0.0.11
  bcsnetctl pool create six --cidr 2001:db8::/64 --gateway 2001:db8::1 --range 2001:db8::100-2001:db8::1ff \
    --network blue --namespace payments --dry-run=server -o yaml`,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := cmd.Flags()
	f.StringVar(&v.cidr, "cidr", "", "the subnet as a `CIDR` (required)")
	f.StringVar(&spec.Gateway, "gateway", "", "the gateway's `IP` in the subnet (required)")
	f.StringSliceVar(&spec.AvailableIPs, "range", nil,
		"`ADDRESSES` to hand out: a-b, a CIDR or a single one; repeatable (required)")
	f.StringSliceVar(&spec.ExcludeIPs, "exclude", nil, "`ADDRESSES` in the ranges not to hand out; repeatable")
	f.StringSliceVar(&spec.Hosts, "host", nil, "`IP` of a host that may draw from the pool; repeatable")
	f.StringSliceVar(&spec.HostSubnets, "host-subnet", nil,
		"`CIDR` whose hosts may draw from the pool, also those that join later; repeatable")
	f.StringSliceVar(&spec.Namespaces, "namespace", nil, "bind the pool to this `NAMESPACE` alone; repeatable")
	f.StringVar(&spec.Network, "network", "", "`NAME` shared by the IPv4 and IPv6 pools of one network")
	f.Int32Var(&spec.MaxPerHost, "max-per-host", 0,
		"let one host have at most `N` addresses of the pool at a time; 0 is no bound")
	f.Int32Var(&spec.MaxPerNamespace, "max-per-namespace", 0,
		"let one namespace have at most `N` addresses of the pool at a time; 0 is no bound")
	f.StringSliceVar(&v.quotas, "quota", nil,
		"let one namespace have at most so many addresses, in place of --max-per-namespace, as `NAMESPACE=N`; repeatable")
	f.Int32Var(&spec.VLAN, "vlan", 0, "VLAN `ID` for the CNI plugin; 0 is untagged")
	f.Int32Var(&spec.MTU, "mtu", 0, "MTU in `BYTES` for the CNI plugin; 0 leaves it to the plugin")
	f.Int32Var(&spec.Priority, "priority", 0, "order `N` among the pools that fit a request; the higher goes first")
	f.StringVar(&v.materialize, "materialize", "",
		"`WHEN` addresses get their objects: Auto (the default), Always or OnDemand")
	f.DurationVar(&v.cooldown, "cooldown", 0,
		"`TIME` that a released address rests before it is handed out again, such as 90s or 1h30m")
	s.DryRun.AddTo(cmd)
	v.output.AddToChange(cmd)
	app.Complete(cmd, "materialize", materializeValues()...)
	app.CompleteWith(cmd, "namespace", resource.CompleteNamespaces(s))
	app.CompleteWith(cmd, "host", resource.CompleteHosts(s))
	for _, name := range []string{
		"cidr", "gateway", "range", "exclude", "host-subnet", "network", "max-per-host", "max-per-namespace", "quota", "vlan",
		"mtu", "priority", "cooldown",
	} {
		app.Complete(cmd, name)
	}
	return cmd
}

func materializeValues() []string {
	return []string{string(v1.MaterializeAuto), string(v1.MaterializeAlways), string(v1.MaterializeOnDemand)}
}

func (v *poolCreate) Complete(args []string) error {
	v.object.Name = args[0]
	return nil
}

func (v *poolCreate) Validate() error {
	if problems := validation.NameIsDNSSubdomain(v.object.Name, false); len(problems) > 0 {
		return app.Usagef("%q is no name for a pool", v.object.Name).
			WithHint("a name is lower-case letters, digits, - and ., with a letter or digit at both ends")
	}
	var missing []string
	for _, required := range []struct {
		flag string
		set  bool
	}{
		{"--cidr", v.cidr != ""}, {"--gateway", v.object.Spec.Gateway != ""},
		{"--range", len(v.object.Spec.AvailableIPs) > 0},
	} {
		if !required.set {
			missing = append(missing, required.flag)
		}
	}
	if len(missing) > 0 {
		return app.Usagef("a pool needs %s", strings.Join(missing, ", "))
	}
	subnet, err := netip.ParsePrefix(v.cidr)
	if err != nil {
		return app.Usagef("--cidr %q is not a CIDR such as 10.0.0.0/24", v.cidr)
	}
	spec := &v.object.Spec
	spec.Net, spec.Mask = subnet.Addr().String(), int32(subnet.Bits())
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
	if err := v.setMaterialize(); err != nil {
		return err
	}
	if spec.Quotas, err = parseQuotas(v.quotas); err != nil {
		return err
	}
	if spec.Cooldown, err = resource.CooldownOf(v.cooldown); err != nil {
		return err
	}
	if v.plan, err = ipam.NewPlan(store.PlanSpec(&v.object)); err != nil {
		return app.Usagef("%s", strings.NewReplacer("availableIPs", "--range", "excludeIPs",
			"--exclude").Replace(err.Error()))
	}
	if len(v.plan.Usable.Ranges()) == 0 {
		return app.Usagef(
			"the ranges hold no address to hand out: network, broadcast, gateway and excluded ones do not count")
	}
	return v.output.Validate()
}

func (v *poolCreate) setMaterialize() error {
	for _, value := range materializeValues() {
		if strings.EqualFold(value, v.materialize) {
			v.object.Spec.Materialize = v1.Materialize(value)
			return nil
		}
	}
	if v.materialize == "" {
		return nil
	}
	return app.Usagef("--materialize %q is not Auto, Always or OnDemand", v.materialize)
}

func (v *poolCreate) Run(ctx context.Context) error {
	api, err := resource.NewPools(v.App)
	if err != nil {
		return err
	}
	others, exists, err := api.Others(ctx, v.object.Name)
	if err != nil {
		return err
	}
	if exists {
		return v.existing(ctx, api)
	}
	if err := resource.OverlapsOthers(v.object.Name, v.plan.Usable, others); err != nil {
		return err
	}
	created, err := v.create(ctx, api)
	if err != nil {
		return err
	}
	v.Say.Done("pool %s created: %s for %s", v.object.Name, resource.Addresses(v.plan.Usable),
		resource.ForHosts(resource.Pool{BCSNetPool: &v.object}))
	if len(v.object.Spec.Hosts)+len(v.object.Spec.HostSubnets) == 0 {
		v.Say.Warn("no host may draw from it yet")
		v.Hint("let hosts draw: bcsnetctl pool add-host %s HOST...", v.object.Name)
	}
	return v.output.Object(v.Out, created)
}

func (v *poolCreate) create(ctx context.Context, api *resource.Pools) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v.object)
	if err != nil {
		return nil, err
	}
	o := &unstructured.Unstructured{Object: content}
	unstructured.RemoveNestedField(o.Object, "status")
	o.SetGroupVersionKind(v1.GroupVersion.WithKind(resource.PoolKind))
	if v.DryRun == app.DryRunClient {
		return o, nil
	}
	created, err := api.API.Create(ctx, o, metav1.CreateOptions{FieldManager: app.ProgramName, DryRun: v.DryRun.Options()})
	if apierrors.IsAlreadyExists(err) {
		return nil, v.existing(ctx, api)
	}
	return created, resource.Explain(v.App, err)
}

func (v *poolCreate) existing(ctx context.Context, api *resource.Pools) error {
	if p, err := api.Get(ctx, v.object.Name); err == nil && p.DeletionTimestamp != nil {
		return app.Refuse(app.ReasonPoolTerminating, "there is a pool %s already, which is being deleted", v.object.Name).
			WithHint("create it when that one is gone; see what it waits for: bcsnetctl pool describe %s", v.object.Name)
	}
	return app.Refuse(app.ReasonPoolExists, "there is a pool %s already", v.object.Name).
		WithHint("see it: bcsnetctl pool describe %s; give it more: bcsnetctl pool add-ip %s ADDRESS...", v.object.Name,
			v.object.Name)
}
