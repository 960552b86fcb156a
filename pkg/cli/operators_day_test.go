package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

// TestOperatorsDay: the page shows what its script finds the commands to print, in both languages.
func TestOperatorsDay(t *testing.T) {
	for _, page := range []string{"operators-day.md", "zh/operators-day.md"} {
		t.Run(page, func(t *testing.T) { testDay(t, page) })
	}
}

func testDay(t *testing.T, name string) {
	t.Helper()
	root, err := controlplane.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile(filepath.Join("testdata", "script", "operators_day.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	for i, block := range strings.Split(string(page), "```") {
		text, ok := strings.CutPrefix(block, "console\n")
		if i%2 == 0 || !ok {
			continue
		}
		command, output, _ := strings.Cut(text, "\n")
		command, _, _ = strings.Cut(strings.TrimPrefix(command, "$ "), " --timeout")
		if !strings.Contains(string(script), "exec "+command+"\n") {
			t.Errorf("the script does not run %s", command)
		}
		for line := range strings.Lines(string(masked([]byte(output)))) {
			if line = strings.TrimSuffix(line, "\n"); !strings.Contains(string(script), line) {
				t.Errorf("%s does not print %q", command, line)
			}
			shown++
		}
	}
	if shown == 0 {
		t.Error("the page shows nothing")
	}
}
