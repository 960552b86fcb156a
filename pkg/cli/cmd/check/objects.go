package check

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/nodecheck"
)

// objects returns the list for -o json and similar formats.
func (v *nodesVerb) objects(nodes []nodecheck.Node, findings []nodecheck.Finding) *unstructured.UnstructuredList {
	l := &unstructured.UnstructuredList{Object: map[string]any{
		"apiVersion": app.ProgramName + "/v1", "kind": "NodeCheckList",
		"summary": map[string]any{"nodes": int64(len(nodes)), "findings": int64(len(findings))},
	}}
	for i := range nodes {
		n := &nodes[i]
		found := []any{}
		for _, f := range findings {
			if f.Node == n.Name {
				found = append(found, map[string]any{"check": f.Check, "cause": f.Cause, "fix": v.Called(f.Fix)})
			}
		}
		object := map[string]any{
			"apiVersion": app.ProgramName + "/v1", "kind": "NodeCheck", "node": n.Name, "pod": n.Pod, "findings": found,
			"addresses": addressObjects(n),
		}
		if n.Release.Asked {
			object["released"] = !n.Release.Left && len(n.Release.Held) == 0
		}
		if len(n.Addrs) > 0 {
			object["readySeconds"] = n.ReadyIn.Seconds()
		}
		if n.Report != nil {
			reached, asked := n.Reached()
			object["peers"] = map[string]any{"asked": int64(asked), "reached": int64(reached)}
		}
		l.Items = append(l.Items, unstructured.Unstructured{Object: object})
	}
	return l
}

// addressObjects returns the results of each address. Those of gateway and duplicates are present if these were
// checked.
func addressObjects(n *nodecheck.Node) []any {
	out := []any{}
	for i, a := range n.Addrs {
		object := map[string]any{"address": a.Addr.String(), "pool": a.Pool}
		if a.Gateway.IsValid() {
			object["gateway"] = a.Gateway.String()
		}
		if n.Report != nil {
			l := n.Report.Links[i]
			if a.Gateway.IsValid() {
				object["gatewayAnswers"] = l.Gateway
			}
			if l.GatewayMAC != "" {
				object["gatewayMAC"] = l.GatewayMAC
			}
			if l.Unasked == "" {
				others := []any{}
				for _, mac := range l.Others {
					others = append(others, mac)
				}
				object["duplicates"] = others
			} else {
				object["duplicatesNotAsked"] = l.Unasked
			}
		}
		out = append(out, object)
	}
	return out
}
