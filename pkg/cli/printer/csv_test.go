package printer

import (
	"encoding/csv"
	"slices"
	"strings"
	"testing"
)

// TestCSV: a table as comma-separated values says what its cells say, whatever they hold, and no cell is a formula.
func TestCSV(t *testing.T) {
	tests := map[string]struct{ cell, want string }{
		"a word":                  {"blue", "blue"},
		"nothing":                 {"", ""},
		"a dash":                  {"-", ""},
		"numbers":                 {"1,2,3", "1,2,3"},
		"a comma":                 {"a, b", "a, b"},
		"quotes":                  {`say "hi"`, `say "hi"`},
		"a line end":              {"a\nb", `a\nb`},
		"a formula":               {"=cmd|'/c calc'!A1", "'=cmd|'/c calc'!A1"},
		"a sum":                   {"+1+1", "'+1+1"},
		"a difference":            {"-1-1", "'-1-1"},
		"a function":              {"@SUM(A1)", "'@SUM(A1)"},
		"a full-width formula":    {"＝1", "'＝1"},
		"a number below zero":     {"-1.5", "-1.5"},
		"a tab before a formula":  {"\t=1", `\t=1`},
		"a sign inside":           {"a=b", "a=b"},
		"an address and a length": {"10.0.0.0/24", "10.0.0.0/24"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			table := Table[string]{Headers: true, csv: true, Columns: []Column[string]{
				{Name: "NAME", Cell: func(s string) string { return s }}, {Name: "LAST", Cell: func(string) string { return "end" }},
			}}
			var b strings.Builder
			if err := table.Write(&b, []string{tc.cell}); err != nil {
				t.Fatal(err)
			}
			rows, err := csv.NewReader(strings.NewReader(b.String())).ReadAll()
			if err != nil || len(rows) != 2 || !slices.Equal(rows[1], []string{tc.want, "end"}) {
				t.Errorf("%q, %v", rows, err)
			}
		})
	}
}
