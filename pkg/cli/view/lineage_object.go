package view

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/explain"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// Object returns the lineage for -o json and similar formats. The cluster has no such kind: it is a view.
func (t *Lineage) Object(kind string) *unstructured.Unstructured {
	addresses := []any{}
	for _, l := range t.Leases {
		o := resource.LeaseObject(l)
		o["status"], o["pool"], o["claim"], o["for"], o["until"] = resource.StatusText(l), l.Pool, l.Claim,
			l.PodPrimaryKey, l.ExpiredTime
		addresses = append(addresses, o)
	}
	o := map[string]any{"apiVersion": app.ProgramName + "/v1", "kind": kind, "addresses": addresses}
	if t.key.Name != "" {
		pod := map[string]any{"namespace": t.key.Namespace, "name": t.key.Name, "exists": t.pod != nil}
		if t.pod != nil {
			pod["uid"], pod["node"], pod["phase"] = t.pod.UID, t.pod.Node, t.phase
		}
		o["pod"] = pod
	}
	if len(t.ignored) > 0 {
		var ignored []any
		for _, i := range t.ignored {
			one := map[string]any{"object": i.Object, "annotation": i.Key, "known": i.Known}
			if i.Target != "" {
				one["target"] = i.Target
			}
			ignored = append(ignored, one)
		}
		o["ignored"] = ignored
	}
	if len(t.interfaces) > 0 {
		var all []any
		for _, i := range t.interfaces {
			all = append(all, i.object())
		}
		o["interfaces"] = all
	}
	switch {
	case t.pod == nil:
	case t.wrong != nil:
		o["problem"] = t.wrong.Error()
	default:
		o["policy"] = policyObject(t.policy)
		w := t.policy.Workload
		o["workload"] = map[string]any{"group": w.Group, "kind": w.Kind, "namespace": w.Namespace, "name": w.Name}
	}
	return &unstructured.Unstructured{Object: o}
}

func policyObject(p workload.Policy) map[string]any {
	sources, sets := []any{}, []any{}
	for _, from := range p.Sources {
		what := "annotation"
		switch from.Key {
		case workload.OwnerField, workload.ReferenceField, workload.RequestsField:
			what = "field"
		}
		sources = append(sources, map[string]any{
			"object": from.Object, what: from.Key, "value": from.Value, "gave": from.Gave,
		})
	}
	for _, set := range p.Sets {
		sets = append(sets, ipaddr.FormatSet(set))
	}
	o := map[string]any{
		"releasePolicy": string(p.Release), "claim": p.Claim, "sharedName": p.Shared, "for": p.Identity,
		"pool":      strings.Join(p.Pools, ","),
		"addresses": sets, "gateway": resource.AddrText(p.Gateway), "sources": sources,
	}
	if p.IfName != "" {
		o["interface"] = p.IfName
	}
	if p.Families.Policy != "" {
		o["ipFamilyPolicy"] = string(p.Families.Policy)
	}
	if order := p.Families.Order; len(order) > 0 {
		families := []any{}
		for _, f := range order {
			families = append(families, f.String())
		}
		o["ipFamilies"] = families
	}
	if p.Keep > 0 {
		o["keep"] = explain.FormatSpan(p.Keep)
	}
	return o
}
