package pool

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/cli/view"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// poolSettings holds the flags for those fields of a pool that have a single value and may change at any time.
type poolSettings struct {
	materialize, order string
	cooldown           time.Duration
	inDefault          bool
	quotas             []string
}

// settingFields maps the flags to fields of the spec.
func settingFields() map[string]string {
	return map[string]string{
		"allocation-order": "allocationOrder", "cooldown": "cooldown", "default": "default", "gateway": "gateway",
		"materialize": "materialize", "max-per-host": "maxPerHost", "max-per-namespace": "maxPerNamespace",
		"mtu": "mtu", "priority": "priority", "quota": "quotas", "vlan": "vlan",
	}
}

// addTo adds the flags to a command. Numbers are stored in spec at once, other values by read.
func (v *poolSettings) addTo(cmd *cobra.Command, spec *v1.BCSNetPoolSpec) {
	f := cmd.Flags()
	f.BoolVar(&v.inDefault, "default", true,
		"while it is bound to no namespace, serve every namespace without its own pools; "+
			"with =false only requests that name the pool")
	f.Int32Var(&spec.MaxPerHost, "max-per-host", 0,
		"let one host have at most `N` addresses of the pool at a time; 0 means no limit")
	f.Int32Var(&spec.MaxPerNamespace, "max-per-namespace", 0,
		"let one namespace have at most `N` addresses of the pool at a time; 0 means no limit")
	f.StringSliceVar(&v.quotas, "quota", nil,
		"let one namespace have at most so many addresses, as `NAMESPACE=N`, in place of "+
			"--max-per-namespace; repeatable")
	f.Int32Var(&spec.VLAN, "vlan", 0, "VLAN `ID` for the CNI plugin; 0 is untagged")
	f.Int32Var(&spec.MTU, "mtu", 0, "MTU in `BYTES` for the CNI plugin; 0 leaves it to the plugin")
	f.Int32Var(&spec.Priority, "priority", 0, "order `N` among the pools that fit a request; the higher goes first")
	f.StringVar(&v.materialize, "materialize", "",
		"`WHEN` addresses get their objects: Auto (the default), Always or OnDemand")
	f.StringVar(&v.order, "allocation-order", "",
		"`WHICH` free address a request gets: Spread (the default) or Lowest")
	f.DurationVar(&v.cooldown, "cooldown", 0,
		"`TIME` for which a released address is not allocated again, such as 90s or 1h30m")
	app.Complete(cmd, "materialize", materializeValues()...)
	app.Complete(cmd, "allocation-order", string(v1.AllocationSpread), string(v1.AllocationLowest))
	for _, name := range []string{"max-per-host", "max-per-namespace", "vlan", "mtu", "priority", "cooldown"} {
		app.Complete(cmd, name)
	}
}

func materializeValues() []string {
	return []string{string(v1.MaterializeAuto), string(v1.MaterializeAlways), string(v1.MaterializeOnDemand)}
}

// read parses the other values, except quotas, into spec.
func (v *poolSettings) read(spec *v1.BCSNetPoolSpec) (err error) {
	if !v.inDefault {
		spec.Default = new(false)
	}
	materialize, ok := anyCase(v.materialize, append(materializeValues(), "")...)
	if !ok {
		return app.Usagef("--materialize %q is not Auto, Always or OnDemand", v.materialize)
	}
	spec.Materialize = v1.Materialize(materialize)
	order, ok := anyCase(v.order, "", string(v1.AllocationSpread), string(v1.AllocationLowest))
	if !ok {
		return app.Usagef("--allocation-order %q is not Spread or Lowest", v.order)
	}
	spec.AllocationOrder = v1.AllocationOrder(order)
	spec.Cooldown, err = resource.CooldownOf(v.cooldown)
	return err
}

// anyCase returns the value that equals text, ignoring case.
func anyCase(text string, values ...string) (string, bool) {
	for _, value := range values {
		if strings.EqualFold(value, text) {
			return value, true
		}
	}
	return "", false
}

// parseQuotas parses quotas of the form NAMESPACE=N.
func parseQuotas(texts []string) (all []v1.NamespaceQuota, err error) {
	for _, text := range texts {
		namespace, number, _ := strings.Cut(text, "=")
		n, err := strconv.ParseInt(number, 10, 32)
		if err != nil || n < 0 || namespace == "" {
			return nil, app.Usagef("--quota %q is not NAMESPACE=N", text).
				WithHint("for example: --quota shop=20; 0 allows no address")
		}
		all = append(all, v1.NamespaceQuota{Namespace: namespace, Max: int32(n)})
	}
	return all, nil
}

// completeQuotas offers the namespaces, each followed by =.
func completeQuotas(s *app.App) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		all, directive := resource.CompleteNamespaces(s)(cmd, args, typed)
		for i := range all {
			all[i] += "="
		}
		return all, directive | cobra.ShellCompDirectiveNoSpace
	}
}

// quotas prints the use of each namespace with a quota.
func quotas(b *bytes.Buffer, all []ipam.NamespaceUse) error {
	return printer.Indented(b, "Quotas", printer.Table[ipam.NamespaceUse]{Headers: true,
		Columns: []printer.Column[ipam.NamespaceUse]{
			{Name: "NAMESPACE", Cell: func(u ipam.NamespaceUse) string { return u.Namespace }},
			{Name: "HAS", Cell: func(u ipam.NamespaceUse) string { return strconv.Itoa(u.Has) }},
			{Name: "QUOTA", Cell: func(u ipam.NamespaceUse) string { return strconv.Itoa(u.Quota) }},
			{Name: "STATE", Cell: view.QuotaState},
		}}, all)
}
