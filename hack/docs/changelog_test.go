package main

import (
	"os"
	"strings"
	"testing"
)

// mostUnreleasedWords bounds what the changelog says of the next release: one page.
const mostUnreleasedWords = 1500

// TestChangelog keeps the part about the next release short enough to be read.
func TestChangelog(t *testing.T) {
	text, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "\n## [Unreleased]\n")
	if !found {
		t.Fatal("CHANGELOG.md has no section [Unreleased]")
	}
	unreleased, _, _ := strings.Cut(rest, "\n## [")
	if n := len(strings.Fields(unreleased)); n == 0 || n > mostUnreleasedWords {
		t.Errorf("[Unreleased] has %d words, want 1 to %d", n, mostUnreleasedWords)
	}
}
