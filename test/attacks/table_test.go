package attacks_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

// attack is one of the attacks of the threat model.
type attack struct {
	name string
	try  func(*testing.T, *world)
}

// numbered is an attack with its number in the threat model.
type numbered struct {
	attack
	number int
}

// attacks returns all, in the order of their numbers, which begin at 1.
func attacks() (all []numbered) {
	those := slices.Concat(strangers(), forgedTokens(), nodes(), certificates(), replicas(), tenants(), plainCallers(),
		shapes(), floods(), authorities(), costs(), nodeStatus(), beyondReach(), pages(), editors(), authors(),
		kubelets(), makers(), likenesses(), annotators(), claimants(), browsers())
	for i, a := range those {
		all = append(all, numbered{a, i + 1})
	}
	return all
}

// testName is how the page names the test of an attack.
func (a numbered) testName() string { return fmt.Sprintf("%02d_%s", a.number, a.name) }

// TestAttacks tries each attack. After each the victim has its address as before.
func TestAttacks(t *testing.T) {
	w := newWorld(t)
	for _, a := range attacks() {
		t.Run(a.testName(), func(t *testing.T) {
			a.try(t, w)
			w.untouched(t)
		})
	}
}

// TestThreatModel holds the page, in both languages, and the attacks together: each row names a test that there is, and
// each test has its row.
func TestThreatModel(t *testing.T) {
	root, err := controlplane.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| (\\d+) \\| .* \\| .+ \\| .+ \\| `(TestAttacks/[0-9A-Za-z_]+)` \\|$")
	var want []string
	for _, a := range attacks() {
		want = append(want, strconv.Itoa(a.number)+" TestAttacks/"+a.testName())
	}
	if len(want) < 30 {
		t.Errorf("%d attacks", len(want))
	}
	for _, file := range []string{"docs/threat-model.md", "docs/zh/threat-model.md"} {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range row.FindAllStringSubmatch(string(text), -1) {
			got = append(got, m[1]+" "+m[2])
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s has\n%q, want\n%q", file, got, want)
		}
	}
}
