package monitoring_test

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestMetricsAreDocumented: docs/reference/metrics.md is what a controller says of its metrics.
func TestMetricsAreDocumented(t *testing.T) {
	text, err := metrics()
	if err != nil {
		t.Fatal(err)
	}
	var page strings.Builder
	page.WriteString(`# Metrics

What ` + "`/metrics`" + ` shows (port 8091) beside the metrics of Go, client-go and controller-runtime. Written by
` + "`go test ./test/monitoring -run Documented -args -update`" + ` from a running controller; the rules in
[config/prometheus](../../config/prometheus) and the [dashboard](../../charts/bcsnet/files/dashboard.json) use them.

| metric | type | labels | meaning |
| --- | --- | --- | --- |
`)
	for _, m := range families(text) {
		fmt.Fprintf(&page, "| `%s` | %s | %s | %s |\n", m.name, m.kind, strings.Join(m.labels, ", "), m.help)
	}
	same(t, page.String(), "docs", "reference", "metrics.md")
}

type family struct {
	name, kind, help string
	labels           []string
}

// families are our metrics in the text format, by name.
func families(text string) (out []family) {
	for _, part := range strings.Split(text, "# HELP ")[1:] {
		head, rest, _ := strings.Cut(part, "\n")
		name, help, _ := strings.Cut(head, " ")
		if !strings.HasPrefix(name, "bcsnet_") {
			continue
		}
		m := family{name: name, help: help, kind: strings.TrimPrefix(strings.SplitN(rest, "\n", 2)[0], "# TYPE "+name+" ")}
		for _, l := range regexp.MustCompile(`[{,](\w+)="`).FindAllStringSubmatch(rest, -1) {
			if label := "`" + l[1] + "`"; l[1] != "le" && !slices.Contains(m.labels, label) {
				m.labels = append(m.labels, label)
			}
		}
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b family) int { return cmp.Compare(a.name, b.name) })
	return out
}

// Labels have few values: never what a caller sends, never an address.
func TestStagesAreTimed(t *testing.T) {
	text, err := metrics()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		`bcsnet_stage_duration_seconds_count\{stage="queue"\} [1-9]`,
		`bcsnet_stage_duration_seconds_count\{stage="decide"\} [1-9]`,
		`bcsnet_stage_duration_seconds_count\{stage="write"\} [1-9]`,
		`bcsnet_stage_duration_seconds_count\{stage="confirm"\} [1-9]`,
		`bcsnet_requests_total\{operation="allocate",reason=""\} [1-9]`,
		`bcsnet_feed_lists_total 1`, `bcsnet_feed_watches_total 1`, `bcsnet_writes_waiting 0`,
		`bcsnet_pool_addresses\{pool="watched",state="capacity"\} 1`,
	} {
		if !regexp.MustCompile(`(?m)^` + line).MatchString(text) {
			t.Errorf("the metrics lack %s", line)
		}
	}
	for _, never := range []string{"10.1.0.10", "192.0.2.11", `"web"`} {
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "bcsnet_") && strings.Contains(line, never) {
				t.Errorf("a label of a caller's: %s", line)
			}
		}
	}
}
