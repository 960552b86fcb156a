package index

import (
	"testing"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

func TestNewPlanOfTheLongestList(t *testing.T) {
	const entries = 16384
	spec := ipam.PlanSpec{Net: "10.0.0.0", Mask: 8, Gateway: "10.0.0.1"}
	for i := range entries { // every second address, so that none can be joined
		spec.Available = append(spec.Available, ipaddr.Advance(ip("10.1.0.0"), uint64(2*i)).String())
	}
	p, err := ipam.NewPlan(spec)
	if err != nil {
		t.Fatal(err)
	}
	if got := ipaddr.SizeOfSet(p.Usable); got != entries {
		t.Errorf("the plan holds %d addresses, want %d", got, entries)
	}
	if got := indexOf(ipam.Pool{Name: "a", Plan: p}).Pools.Counts("a", now).Free; got != entries {
		t.Errorf("%d addresses are free, want %d", got, entries)
	}
}
