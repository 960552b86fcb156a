package node

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cni/runstate"
	"github.com/bcsnet/bcsnet/test/generated"
)

//go:generate go test -run TestReference -update .

var update = flag.Bool("update", false, "rewrite docs/reference/bcsnet-node.md")

// TestReference holds docs/reference/bcsnet-node.md against the commands and their metrics.
func TestReference(t *testing.T) {
	generated.UpToDate(t, *update, filepath.Join("..", "..", "docs", "reference", "bcsnet-node.md"), "go generate ./pkg/node",
		func(string) (string, error) {
			var page strings.Builder
			page.WriteString("# bcsnet-node\n\n" +
				"The commands of the pod that [installs the CNI plugins on nodes](../node-install.md), and its metrics. Written by\n" +
				"`go generate ./pkg/node`.\n")
			root := NewCommand("")
			for _, c := range root.Commands() {
				if c.Name() == "install" || c.Name() == "uninstall" {
					writeCommand(&page, c)
				}
			}
			metrics, err := metricRows(t)
			page.WriteString("\n## Metrics\n\nAt `/metrics`, beside those of Go and of the process.\n\n" +
				"| metric | type | labels | meaning |\n| --- | --- | --- | --- |\n" + metrics)
			return page.String(), err
		})
}

func writeCommand(w io.Writer, c *cobra.Command) {
	fmt.Fprintf(w, "\n## %s\n\n%s\n\n```text\n%s\n```\n\nExamples:\n\n```sh\n%s\n```\n", c.Name(), c.Long,
		strings.TrimRight(c.Flags().FlagUsagesWrapped(100), "\n"), unindent(c.Example))
}

func unindent(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], "  ")
	}
	return strings.Join(lines, "\n")
}

// metricRows returns a row of a table for each metric, of a node on which each of them has a value.
func metricRows(t *testing.T) (string, error) {
	t.Helper()
	o := optionsIn(t.TempDir())
	if err := runstate.Dir(o.RunDir).Log(runstate.Call{Command: "ADD", Outcome: runstate.OK}); err != nil {
		return "", err
	}
	if err := os.MkdirAll(o.ConfigDir, 0o700); err != nil {
		return "", err
	}
	put(t, filepath.Join(o.ConfigDir, tokenFile), "a token")
	m := newMetrics(o, &tokens{options: o})
	m.condition.WithLabelValues(string(ReasonReady)).Set(1)
	families, err := m.registry.Gather()
	if err != nil {
		return "", err
	}
	var rows strings.Builder
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "bcsnet_") {
			continue
		}
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, "`"+l.GetName()+"`")
		}
		fmt.Fprintf(&rows, "| `%s` | %s | %s | %s |\n", f.GetName(), strings.ToLower(f.GetType().String()),
			strings.Join(labels, ", "), f.GetHelp())
	}
	return rows.String(), m.close()
}
