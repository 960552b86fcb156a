package config_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/bcsnet/bcsnet/test/generated"
)

//go:generate go test . -args -update

var update = flag.Bool("update", false, "write what is generated")

// The rules for the Prometheus operator are the rules for a Prometheus that reads files.
func TestPrometheusRule(t *testing.T) {
	text, err := os.ReadFile("prometheus/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, groups, ok := strings.Cut(string(text), "\ngroups:\n")
	if !ok {
		t.Fatal("rules.yaml has no groups")
	}
	var out strings.Builder
	out.WriteString(`# Made from rules.yaml by make generate.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: bcsnet
  namespace: bcsnet-system
  labels:
    app.kubernetes.io/name: bcsnet
spec:
  groups:
`)
	for line := range strings.Lines(groups) {
		out.WriteString("  " + line)
	}
	generated.UpToDate(t, *update, "prometheus/prometheusrule.yaml", "make generate",
		func(string) (string, error) { return out.String(), nil })
}
