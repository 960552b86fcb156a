package hosts_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// reads are the ways to find out the addresses of a Node past this package: its status, and the annotation.
var reads = regexp.MustCompile(`Status\.Addresses\b|NodeInternalIP|NodeExternalIP|/host-addresses`)

// TestReaders: nobody else reads from a Node which addresses it has. Who reads the status alone takes a machine with a
// second network card for one that is gone.
func TestReaders(t *testing.T) {
	except := map[string]string{
		"hosts/node.go":            "it is the reader",
		"controller/node/nodes.go": "Trim copies the status for the cache",
	}
	root, used := "..", map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(path, root+string(filepath.Separator)))
		for i, line := range strings.Split(string(text), "\n") {
			code, _, _ := strings.Cut(line, "//")
			switch {
			case !reads.MatchString(code):
			case except[name] != "":
				used[name] = true
			default:
				t.Errorf("%s:%d: ask package hosts: %s", name, i+1, strings.TrimSpace(line))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range except {
		if !used[name] {
			t.Errorf("%s reads no address of a Node any more: take it off the list", name)
		}
	}
}
