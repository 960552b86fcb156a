package monitoring_test

import (
	"encoding/json"
	"strings"
	"testing"
)

// Every query of the dashboard is one that Prometheus takes, about metrics that exist.
func TestDashboard(t *testing.T) {
	var dashboard struct {
		Panels []struct {
			Title   string `json:"title"`
			Type    string `json:"type"`
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
		Templating struct {
			List []struct {
				Name  string `json:"name"`
				Type  string `json:"type"`
				Query string `json:"query"`
			} `json:"list"`
		} `json:"templating"`
	}
	if err := json.Unmarshal([]byte(read(t, "charts", "bcsnet", "files", "dashboard.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	check := func(title, query string) {
		used := names(query)
		if len(used) == 0 {
			t.Errorf("%s reads none of our metrics: %s", title, query)
		}
		for _, name := range used {
			if !known(t, name) {
				t.Errorf("%s: there is no metric %s", title, name)
			}
		}
	}
	for _, p := range dashboard.Panels {
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("%s shows nothing", p.Title)
		}
		for _, target := range p.Targets {
			check(p.Title, target.Expr)
			promtool(t, "--experimental", "promql", "format", strings.ReplaceAll(target.Expr, "$__rate_interval", "5m"))
		}
	}
	for _, v := range dashboard.Templating.List {
		if v.Type == "query" {
			check("variable "+v.Name, v.Query)
		}
	}
}
