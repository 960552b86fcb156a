package inspect

import (
	"math"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// object returns what was inspected for -o json and the like, with all ranges.
func (v *inspection) object(views []view) *unstructured.Unstructured {
	pools := []any{}
	total := map[string]uint64{}
	for _, one := range views {
		o := map[string]any{
			"pool": one.pool.Name, "cidr": resource.CidrOf(one.pool.BCSNetPool), "gateway": one.pool.Spec.Gateway,
			"handsOut": v.stopped(one.pool.Name) == "",
		}
		if v.mine != nil {
			o["draws"] = !one.beside
		}
		for _, p := range one.parts() {
			ranges := []any{}
			for _, r := range p.set.Ranges() {
				ranges = append(ranges, ipaddr.FormatRange(r))
			}
			n := ipaddr.SizeOfSet(p.set)
			total[p.state] = ipaddr.AddSaturated(total[p.state], n)
			o[p.state] = map[string]any{"count": saturated(n), "ranges": ranges}
		}
		pools = append(pools, o)
	}
	o := map[string]any{
		"apiVersion": app.ProgramName + "/v1", "kind": "Inspection", v.kind.name: v.name, "pools": pools,
	}
	for _, p := range (view{}).parts() {
		o[p.state] = saturated(total[p.state])
	}
	return &unstructured.Unstructured{Object: o}
}

// saturated returns a count as objects hold it: at most 2^63-1.
func saturated(n uint64) int64 { return int64(min(n, math.MaxInt64)) }
