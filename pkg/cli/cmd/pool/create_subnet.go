package pool

import (
	"context"
	"net/netip"
	"strings"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// setSubnet parses the subnet. A group has its parent's.
func (v *poolCreate) setSubnet() error {
	spec := &v.object.Spec
	if spec.Parent != "" && (v.cidr != "" || spec.Gateway != "") {
		return app.Usagef(
			"--cidr and --gateway cannot be used with --parent: a group has the subnet and gateway of pool %s",
			spec.Parent).
			WithHint("leave them out")
	}
	var missing []string
	for _, required := range []struct {
		flag string
		set  bool
	}{
		{"--cidr", v.cidr != "" || spec.Parent != ""}, {"--range", len(spec.AvailableIPs) > 0},
	} {
		if !required.set {
			missing = append(missing, required.flag)
		}
	}
	if len(missing) > 0 {
		noun := "a pool"
		if spec.Parent != "" {
			noun = "a group"
		}
		return app.Usagef("%s needs %s", noun, strings.Join(missing, ", "))
	}
	if spec.Parent != "" {
		return nil
	}
	subnet, err := netip.ParsePrefix(v.cidr)
	if err != nil {
		return app.Usagef("--cidr %q is not a CIDR such as 10.0.0.0/24", v.cidr)
	}
	spec.Net, spec.Mask = subnet.Addr().String(), int32(subnet.Bits())
	return nil
}

func (v *poolCreate) setPlan() (err error) {
	if v.plan, err = ipam.NewPlan(store.PlanSpec(&v.object)); err != nil {
		return app.Usagef("%s", strings.NewReplacer("availableIPs", "--range", "excludeIPs",
			"--exclude").Replace(err.Error()))
	}
	if len(v.plan.Usable.Ranges()) == 0 {
		return app.Usagef(
			"the ranges have no address to allocate: network, broadcast, gateway and excluded ones do not count")
	}
	return nil
}

// setParent copies the subnet and the gateway of the parent.
func (v *poolCreate) setParent(ctx context.Context, api *resource.Pools) error {
	spec := &v.object.Spec
	parent, err := api.Get(ctx, spec.Parent)
	if err != nil {
		return err
	}
	if parent.DeletionTimestamp != nil {
		return resource.Terminating(parent.Name)
	}
	spec.Net, spec.Mask, spec.Gateway = parent.Spec.Net, parent.Spec.Mask, parent.Spec.Gateway
	subnet, err := netip.ParsePrefix(resource.CidrOf(parent.BCSNetPool))
	if err != nil {
		return app.Refuse(app.ReasonPoolInvalid, "the spec of pool %s cannot be used: %v", parent.Name, err)
	}
	entries, err := resource.ParseEntries(spec.AvailableIPs)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !subnet.Contains(e.From()) || !subnet.Contains(e.To()) {
			return app.Refuse(app.ReasonInvalidParent, "%s", ipam.BadIPPool(e.Text, subnet)).
				WithHint("see what the parent has: bcsnetctl inspect pool %s", parent.Name)
		}
	}
	return v.setPlan()
}
