package ui

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"
)

// TestChinese: every word of the pages is translated, and keeps its places for values.
func TestChinese(t *testing.T) {
	all := words("zh")
	names, err := fs.Glob(templates, "pages/*.html")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := templates.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`\bt "([^"]+)"`).FindAllStringSubmatch(string(text), -1) {
			if all[m[1]] == "" {
				t.Errorf("%s: there is no Chinese for %q", name, m[1])
			}
		}
	}
	for word, other := range all {
		if strings.Count(word, "%") != strings.Count(other, "%") {
			t.Errorf("%q and %q take other values", word, other)
		}
	}
}
