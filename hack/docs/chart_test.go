package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/bcsnet/bcsnet/test/generated"
)

//go:generate go test -run TestChart -update .

// chart is the folder of the chart.
var chart = filepath.Join("..", "..", "charts", "bcsnet")

const chartHead = `# bcsnet

%s.

[Installing](../../docs/install.md) explains how these values belong together.

` + "```sh" + `
helm install bcsnet oci://ghcr.io/bcsnet/charts/bcsnet --namespace bcsnet-system --create-namespace --wait
helm test bcsnet --namespace bcsnet-system     # with node.enabled: a pod gets an address and gives it back
` + "```" + `

After ` + "`helm uninstall`" + ` these stay: the CRDs with all pools, claims and leases; in bcsnet-system the Secret
` + "`bcsnet-controller-ca`, the ConfigMaps `bcsnet-controller-ca`, `bcsnet-controller-waits` and `bcsnet-controller-plain-callers`" + `, and
Leases whose names begin with ` + "`bcsnet-controller`" + `. ` + "`bcsnetctl uninstall --crds`" + ` removes them. Remove the plugins from the
nodes [first](../../docs/node-install.md#removing).

## Values

| value | default | meaning |
| --- | --- | --- |
`

// TestChart holds the README of the chart against its values: each has a row, with the comment above it.
func TestChart(t *testing.T) {
	generated.UpToDate(t, *updateRooms, filepath.Join(chart, "README.md"), "make generate", func(string) (string, error) {
		values, err := yaml.ReadFile(filepath.Join(chart, "values.yaml"))
		if err != nil {
			return "", err
		}
		about, err := yaml.ReadFile(filepath.Join(chart, "Chart.yaml"))
		if err != nil {
			return "", err
		}
		var b strings.Builder
		fmt.Fprintf(&b, chartHead, yaml.GetValue(about.Field("description").Value))
		err = chartRows(&b, values.YNode(), "", "")
		return b.String(), err
	})
}

// chartRows writes a row for each value that is no map with fields, or a comment on such a map.
func chartRows(b *strings.Builder, n *yaml.Node, prefix, above string) error {
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		name, comment := prefix+key.Value, oneParagraph(key.HeadComment)
		if value.Kind == yaml.MappingNode && len(value.Content) > 0 && value.Style&yaml.FlowStyle == 0 && !strings.Contains(name, "elector") &&
			!strings.HasSuffix(name, "labels") {
			if err := chartRows(b, value, name+".", comment); err != nil {
				return err
			}
			continue
		}
		text, err := yaml.NewRNode(value).String()
		if err != nil {
			return err
		}
		if text = strings.TrimSpace(text); strings.Contains(text, "\n") {
			text = "see values.yaml"
		} else {
			text = "`" + strings.ReplaceAll(text, "|", `\|`) + "`"
		}
		if comment == "" && i == 0 || strings.HasSuffix(name, ".enabled") && above != "" {
			comment, above = strings.TrimSpace(above+" "+comment), ""
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", name, text, comment)
	}
	return nil
}

// oneParagraph returns the last paragraph of a comment in one line.
func oneParagraph(comment string) string {
	parts := strings.Split(comment, "\n\n")
	var words []string
	for line := range strings.Lines(parts[len(parts)-1]) {
		words = append(words, strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "#")))
	}
	return strings.ReplaceAll(strings.Join(words, " "), "|", `\|`)
}
