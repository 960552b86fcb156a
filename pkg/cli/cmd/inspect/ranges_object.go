package inspect

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/cli/view"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// object returns the inspection for -o json and similar formats, with all ranges.
func (v *inspection) object(found *view.Inspection, views []view.Ranges) *unstructured.Unstructured {
	pools := []any{}
	total := map[string]uint64{}
	for _, one := range views {
		o := map[string]any{
			"pool": one.Pool.Name, "cidr": resource.CidrOf(one.Pool.BCSNetPool), "gateway": one.Pool.Spec.Gateway,
			"handsOut": one.Stopped == "",
		}
		if found.Mine != nil {
			o["draws"] = !one.Beside
		}
		for _, p := range one.Parts() {
			ranges := []any{}
			for _, r := range p.Set.Ranges() {
				ranges = append(ranges, ipaddr.FormatRange(r))
			}
			n := ipaddr.SizeOfSet(p.Set)
			total[p.State] = ipaddr.AddSaturated(total[p.State], n)
			o[p.State] = map[string]any{"count": app.Saturated(n), "ranges": ranges}
		}
		pools = append(pools, o)
	}
	o := map[string]any{
		"apiVersion": app.ProgramName + "/v1", "kind": "Inspection", v.kind.name: v.name, "pools": pools,
	}
	for _, p := range (view.Ranges{}).Parts() {
		o[p.State] = app.Saturated(total[p.State])
	}
	return &unstructured.Unstructured{Object: o}
}
