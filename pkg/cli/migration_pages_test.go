package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

// command finds the commands of a page, each with its verb where it has one.
var command = regexp.MustCompile(
	"`(?:bcsnetctl|kubectl bcsnet) ((?:pool|ip|lease|claim|host|inspect|explain) [a-z-]+|[a-z-]+)")

// TestMigrationPages: each command that the pages for those who come from Contiv and hostnic put beside theirs is run
// by a script that compares what comes of it, and both languages name the same ones.
func TestMigrationPages(t *testing.T) {
	root, err := controlplane.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	read := func(parts ...string) string {
		text, err := os.ReadFile(filepath.Join(append([]string{root}, parts...)...))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, system := range []string{"contiv", "hostnic"} {
		t.Run(system, func(t *testing.T) {
			page := commandsIn(read("docs", "migration", system+".md"))
			if diff := cmp.Diff(page, commandsIn(read("docs", "zh", "migration", system+".md"))); diff != "" {
				t.Errorf("the Chinese page names other commands (-English +Chinese):\n%s", diff)
			}
			script := read("pkg", "cli", "testdata", "script", "migration_"+system+".txtar")
			for _, c := range page {
				if !strings.Contains(script, "exec bcsnetctl "+c+" ") {
					t.Errorf("no line of migration_%s.txtar runs bcsnetctl %s", system, c)
				}
			}
		})
	}
}

func commandsIn(page string) (all []string) {
	for _, found := range command.FindAllStringSubmatch(page, -1) {
		if !slices.Contains(all, found[1]) {
			all = append(all, found[1])
		}
	}
	slices.Sort(all)
	return all
}
