package pool

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// poolSet changes those fields of a pool that have a single value.
type poolSet struct {
	poolChange
	settings poolSettings
	chosen   func(flag string) bool
	// spec holds the values of the flags, unbounded the namespaces whose quotas are removed.
	spec      v1.BCSNetPoolSpec
	unbounded []string
}

// noGateway is the value of --gateway for a network without a router.
const noGateway = "none"

func newSet(s *app.App) *cobra.Command {
	v := &poolSet{poolChange: poolChange{
		App: s, done: "changed", again: "run it again; see the pool: bcsnetctl pool describe",
	}}
	cmd := &cobra.Command{
		Use: "set POOL --FIELD VALUE", Args: app.Takes(1, 1), RunE: app.Runs(v),
		Short: "Change settings of a pool: VLAN, gateway, quotas and others",
		Long: `Change settings of a pool: each flag is a field, and the others stay as they
are. As pool edit it says what the change does to leases, and asks when it
touches something that is in use. Pods keep the VLAN, gateway and MTU that they
were given. A namespace with the quota 0 gets no more addresses of the pool.

Addresses, hosts and namespaces have commands of their own: pool add-ip,
add-host, bind and their opposites; pool edit changes everything else.`,
		Example: `  bcsnetctl pool set blue --vlan 120 --dry-run=client
  bcsnetctl pool set blue --gateway 10.0.0.254 --mtu 9000
  bcsnetctl pool set blue --quota payments=20,batch=0
  bcsnetctl pool set blue --quota batch- --max-per-namespace 50
  bcsnetctl pool set blue --cooldown 5m --priority 10 --default=false`,
		ValidArgsFunction: resource.CompletePoolFirst(s, nil),
	}
	v.settings.addTo(cmd, &v.spec)
	cmd.Flags().StringVar(&v.spec.Gateway, "gateway", "", "the gateway's `IP` in the subnet, or none for no gateway")
	cmd.Flag("quota").Usage += "; NAMESPACE- ends a quota"
	cmd.Flag("cooldown").Usage += "; 0s means no cooldown"
	app.Complete(cmd, "gateway", noGateway)
	app.CompleteWith(cmd, "quota", completeQuotas(s))
	v.chosen = cmd.Flags().Changed
	v.addTo(cmd)
	return cmd
}

func (v *poolSet) Complete(args []string) error {
	v.name = args[0]
	return nil
}

func (v *poolSet) Validate() error {
	some := false
	for flag := range settingFields() {
		some = some || v.chosen(flag)
	}
	if !some {
		return app.Usagef("%s pool set needs a setting to change, such as --vlan", v.Name)
	}
	if err := v.checkGateway(); err != nil {
		return err
	}
	if err := v.settings.read(&v.spec); err != nil {
		return err
	}
	var set []string
	for _, text := range v.settings.quotas {
		if ns, ends := strings.CutSuffix(text, "-"); ends && ns != "" && !strings.Contains(ns, "=") {
			v.unbounded = append(v.unbounded, ns)
		} else {
			set = append(set, text)
		}
	}
	var err error
	if v.spec.Quotas, err = parseQuotas(set); err != nil {
		return err
	}
	for _, q := range v.spec.Quotas {
		if slices.Contains(v.unbounded, q.Namespace) {
			return app.Usagef("--quota gives namespace %s a quota and ends it", q.Namespace)
		}
	}
	return v.output.Validate()
}

// checkGateway refuses a gateway that is not an address. An empty value, such as from an unset shell variable, would
// take the default route from pods.
func (v *poolSet) checkGateway() error {
	if !v.chosen("gateway") {
		return nil
	}
	if v.spec.Gateway == noGateway {
		v.spec.Gateway = ""
		return nil
	}
	a, err := ipaddr.ParseAddr(v.spec.Gateway)
	if err != nil {
		return app.Usagef("--gateway %q is not an IP address", v.spec.Gateway).
			WithHint("for a network without a router: --gateway none")
	}
	v.spec.Gateway = a.String()
	return nil
}

// Run changes the pool.
func (v *poolSet) Run(ctx context.Context) error {
	api, live, err := v.read(ctx)
	if err != nil {
		return err
	}
	wanted, err := v.wanted(live)
	if err != nil {
		return err
	}
	next, err := v.checked(ctx, api, live, wanted)
	if err != nil {
		return err
	}
	return v.apply(ctx, api, live, next)
}

// wanted returns the stored pool with the fields of the given flags.
func (v *poolSet) wanted(live resource.Pool) (*unstructured.Unstructured, error) {
	if v.chosen("quota") {
		v.spec.Quotas = v.quotas(live)
	}
	values, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v.spec)
	if err != nil {
		return nil, err
	}
	next := live.Stored.DeepCopy()
	for flag, field := range settingFields() {
		switch value, some := values[field]; {
		case !v.chosen(flag):
		case some:
			if err := unstructured.SetNestedField(next.Object, value, "spec", field); err != nil {
				return nil, err
			}
		default: // a zero value is left out
			unstructured.RemoveNestedField(next.Object, "spec", field)
		}
	}
	return next, nil
}

// quotas returns the pool's quotas changed by the flag, and prints which quotas to remove do not exist.
func (v *poolSet) quotas(live resource.Pool) (all []v1.NamespaceQuota) {
	all = slices.Clone(live.Spec.Quotas)
	for _, q := range v.spec.Quotas {
		if i := slices.IndexFunc(all, of(q.Namespace)); i >= 0 {
			all[i] = q
		} else {
			all = append(all, q)
		}
	}
	for _, ns := range v.unbounded {
		if !slices.ContainsFunc(live.Spec.Quotas, of(ns)) {
			v.Say.Note("namespace %s has no quota in pool %s", ns, live.Name)
		}
		all = slices.DeleteFunc(all, of(ns))
	}
	return all
}

// of reports whether a quota is that of a namespace.
func of(namespace string) func(v1.NamespaceQuota) bool {
	return func(q v1.NamespaceQuota) bool { return q.Namespace == namespace }
}
