package check

import (
	"bufio"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
	"github.com/bcsnet/bcsnet/pkg/nodecheck"
)

// print prints a table of nodes followed by the findings, or objects.
func (v *nodesVerb) print(nodes []nodecheck.Node, findings []nodecheck.Finding) error {
	if v.output.Printer != nil {
		return v.output.Object(v.Out, v.objects(nodes, findings))
	}
	if err := printer.NewTable(&v.output, columns()).Write(v.Out, nodes); err != nil {
		return err
	}
	b := bufio.NewWriter(v.Out)
	if v.output.CSV() {
		b = bufio.NewWriter(v.ErrOut)
	}
	if len(findings) > 0 {
		fmt.Fprintln(b)
	}
	for _, same := range byFix(findings) {
		for _, f := range same {
			fmt.Fprintf(b, "%s %s: %s: %s\n", v.mark(), f.Node, f.Check, terminal.Visible(f.Cause))
		}
		fmt.Fprintf(b, "    fix: %s\n", v.Called(terminal.Visible(same[0].Fix)))
	}
	return b.Flush()
}

// mark returns the sign of a finding.
func (v *nodesVerb) mark() string {
	if !v.Terminal.Utf8 {
		return v.Terminal.Paint(terminal.Red, "x")
	}
	return v.Terminal.Paint(terminal.Red, "✗")
}

// byFix groups findings by their next step, which is printed once.
func byFix(findings []nodecheck.Finding) (out [][]nodecheck.Finding) {
	at := map[string]int{}
	for _, f := range findings {
		i, known := at[f.Fix]
		if !known {
			i, at[f.Fix] = len(out), len(out)
			out = append(out, nil)
		}
		out[i] = append(out[i], f)
	}
	return out
}

func columns() []printer.Column[nodecheck.Node] {
	return []printer.Column[nodecheck.Node]{
		{Name: "NODE", Cell: func(n nodecheck.Node) string { return n.Name }},
		{Name: "ADDRESS", Cell: func(n nodecheck.Node) string {
			return joined(n.Addrs, func(_ int, a nodecheck.Address) string { return a.Addr.String() })
		}},
		{Name: "POOL", Cell: func(n nodecheck.Node) string {
			return joined(n.Addrs, func(_ int, a nodecheck.Address) string { return a.Pool })
		}},
		{Name: "READY IN", Cell: func(n nodecheck.Node) string {
			if len(n.Addrs) == 0 {
				return ""
			}
			return strconv.FormatFloat(n.ReadyIn.Round(time.Second/10).Seconds(), 'f', 1, 64) + "s"
		}},
		{Name: "PEERS", Cell: func(n nodecheck.Node) string {
			if n.Report == nil {
				return ""
			}
			reached, asked := n.Reached()
			return fmt.Sprintf("%d/%d", reached, asked)
		}},
		{Name: "GATEWAY", Cell: func(n nodecheck.Node) string { return links(n, gateway) }},
		{Name: "GATEWAY MAC", Wide: true, Cell: func(n nodecheck.Node) string {
			return links(n, func(_ nodecheck.Address, l nodecheck.Link) string { return l.GatewayMAC })
		}},
		{Name: "DUPLICATES", Cell: func(n nodecheck.Node) string { return links(n, duplicates) }},
		{Name: "RELEASED", Cell: released},
		{Name: "POD", Wide: true, Cell: func(n nodecheck.Node) string { return n.Pod }},
	}
}

// joined returns the table cell for a pod's addresses. If all have the same value, it is printed once.
func joined[T any](all []T, cell func(int, T) string) string {
	var out []string
	same := true
	for i, x := range all {
		out = append(out, cell(i, x))
		same = same && out[i] == out[0]
	}
	if same && len(out) > 0 {
		return out[0]
	}
	return strings.Join(out, ",")
}

func links(n nodecheck.Node, cell func(nodecheck.Address, nodecheck.Link) string) string {
	if n.Report == nil {
		return ""
	}
	return joined(n.Report.Links, func(i int, l nodecheck.Link) string { return cell(n.Addrs[i], l) })
}

func gateway(a nodecheck.Address, l nodecheck.Link) string {
	switch {
	case !a.Gateway.IsValid():
		return "none"
	case l.Gateway:
		return "answers"
	}
	return "silent"
}

func duplicates(_ nodecheck.Address, l nodecheck.Link) string {
	if l.Unasked != "" {
		return "not asked"
	}
	return strconv.Itoa(len(l.Others))
}

func released(n nodecheck.Node) string {
	switch r := n.Release; {
	case !r.Asked || len(n.Addrs)+len(r.Held) == 0:
		return ""
	case r.Left || len(r.Held) > 0:
		return "no"
	}
	return "yes"
}

// objects returns the list for -o json and similar formats.
func (v *nodesVerb) objects(nodes []nodecheck.Node, findings []nodecheck.Finding) *unstructured.UnstructuredList {
	l := printer.NewViews("NodeCheck", nodes, func(n nodecheck.Node) map[string]any {
		found := []any{}
		for _, f := range findings {
			if f.Node == n.Name {
				found = append(found, map[string]any{"check": f.Check, "cause": f.Cause, "fix": v.Called(f.Fix)})
			}
		}
		fields := map[string]any{"node": n.Name, "pod": n.Pod, "findings": found, "addresses": addressObjects(&n)}
		if n.Release.Asked {
			fields["released"] = !n.Release.Left && len(n.Release.Held) == 0
		}
		if len(n.Addrs) > 0 {
			fields["readySeconds"] = n.ReadyIn.Seconds()
		}
		if n.Report != nil {
			reached, asked := n.Reached()
			fields["peers"] = map[string]any{"asked": int64(asked), "reached": int64(reached)}
		}
		return fields
	})
	l.Object["summary"] = map[string]any{"nodes": int64(len(nodes)), "findings": int64(len(findings))}
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
