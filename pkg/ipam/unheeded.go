package ipam

import (
	"maps"
	"reflect"
	"slices"
)

// Unheeded names the fields that a spec sets of a block, each otherwise than its parent does, and otherwise than the
// spec did before: they do nothing, as all but its addresses, its namespace, its priority above 0 and whether it is
// cordoned is read from the parent. before is the zero Pool for one that is new; its gateway is written by itself.
func (p Pool) Unheeded(before, parent Pool) (fields []string) {
	for _, f := range []struct {
		name      string
		set       bool
		different func(o Pool) bool
	}{
		{"gateway", before.Name != "", func(o Pool) bool { return p.Plan.Gateway != o.Plan.Gateway }},
		{"hosts", len(p.Hosts) > 0, func(o Pool) bool { return !maps.Equal(p.Hosts, o.Hosts) }},
		{"hostSubnets", len(p.HostSubnets) > 0, func(o Pool) bool { return !maps.Equal(p.HostSubnets, o.HostSubnets) }},
		{"hostSelector", p.HostSelector != nil, func(o Pool) bool {
			return !SameSelector(p.HostSelector,
				o.HostSelector)
		}},
		{"excludeIPs", p.Plan.Excluded != nil && len(p.Plan.Excluded.Ranges()) > 0, func(o Pool) bool {
			return o.Plan.Excluded == nil || !p.Plan.Excluded.Equal(o.Plan.Excluded)
		}},
		{"namespaceSelector", p.NamespaceSelector != nil, func(o Pool) bool {
			return !SameSelector(p.NamespaceSelector, o.NamespaceSelector)
		}},
		{"default", p.NotDefault, func(o Pool) bool { return !o.NotDefault }},
		{"network", p.Network != "", func(o Pool) bool { return p.Network != o.Network }},
		{"priority", p.Priority < 0, func(o Pool) bool { return p.Priority != o.Priority }},
		{"maxPerHost", p.MaxPerHost != 0, func(o Pool) bool { return p.MaxPerHost != o.MaxPerHost }},
		{"maxPerNamespace", p.MaxPerNamespace != 0,
			func(o Pool) bool { return p.MaxPerNamespace != o.MaxPerNamespace }},
		{"quotas", len(p.Quotas) > 0, func(o Pool) bool { return !maps.Equal(p.Quotas, o.Quotas) }},
		{"vlan", p.Link.VLAN != 0, func(o Pool) bool { return p.Link.VLAN != o.Link.VLAN }},
		{"mtu", p.Link.MTU != 0, func(o Pool) bool { return p.Link.MTU != o.Link.MTU }},
		{"routes", len(p.Link.Routes) > 0, func(o Pool) bool { return !slices.Equal(p.Link.Routes, o.Link.Routes) }},
		{"dns", p.Link.DNS != nil, func(o Pool) bool { return !reflect.DeepEqual(p.Link.DNS, o.Link.DNS) }},
		{"allocationOrder", p.Order != "", func(o Pool) bool { return p.Order != o.Order }},
		{"cooldown", p.Cooldown != 0, func(o Pool) bool { return p.Cooldown != o.Cooldown }},
	} {
		if f.set && f.different(parent) && f.different(before) {
			fields = append(fields, f.name)
		}
	}
	return fields
}
