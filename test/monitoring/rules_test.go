package monitoring_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// rules are the parts of an alert rule that are looked at here.
type rules struct {
	Groups []struct {
		Rules []struct {
			Alert, Expr string
		}
	}
}

func alerts(t *testing.T) (out map[string]string) {
	t.Helper()
	var r rules
	if err := yaml.UnmarshalStrict([]byte(read(t, "charts", "bcsnet", "files", "rules.yaml")), &map[string]any{}); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(read(t, "charts", "bcsnet", "files", "rules.yaml")), &r); err != nil {
		t.Fatal(err)
	}
	out = map[string]string{}
	for _, g := range r.Groups {
		for _, rule := range g.Rules {
			out[rule.Alert] = rule.Expr
		}
	}
	return out
}

// The rules are sound and do what their tests say.
func TestRules(t *testing.T) {
	t.Parallel()
	promtool(t, "check", "rules", "--lint-fatal", in(t, "charts", "bcsnet", "files", "rules.yaml"))
	promtool(t, "test", "rules", in(t, "config", "prometheus", "rules_test.yaml"))
}

// Every rule has a test in which it fires, reads metrics that exist, and has a runbook in both languages.
func TestAlerts(t *testing.T) {
	tests := read(t, "config", "prometheus", "rules_test.yaml")
	for alert, query := range alerts(t) {
		if strings.Count(tests, "alertname: "+alert+"\n    exp_alerts:") == 0 {
			t.Errorf("%s fires in no test", alert)
		}
		if len(names(query)) == 0 {
			t.Errorf("%s reads none of our metrics: %s", alert, query)
		}
		for _, name := range names(query) {
			if !known(t, name) {
				t.Errorf("%s: there is no metric %s", alert, name)
			}
		}
		for _, page := range [][]string{{"docs", "runbooks", "alerts.md"}, {"docs", "zh", "runbooks", "alerts.md"}} {
			if !strings.Contains(read(t, page...), "\n## "+alert+"\n") {
				t.Errorf("%v has no section on %s", page, alert)
			}
		}
	}
}
