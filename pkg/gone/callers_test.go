package gone_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCallers: who asks whether nobody has an address asks by all of the evidence. Record alone says what the API
// server has of a pod, and nothing of its containers. That is enough only if more is known.
func TestCallers(t *testing.T) {
	except := map[string]string{
		"allocator/earlier.go":    "the workload's next pod vouches for the earlier one",
		"allocator/duplicates.go": "the pod itself reports another address",
		"cli/view/lineage.go":     "it shows which leases are an earlier pod's, and takes none",
	}
	root, used := "..", map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), "gone.Record(") {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(path, root+string(filepath.Separator)))
		if used[name] = true; except[name] == "" {
			t.Errorf("%s: ask Rule.Decide, or Suspect", name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range except {
		if !used[name] {
			t.Errorf("%s does not ask Record any more: take it off the list", name)
		}
	}
}
