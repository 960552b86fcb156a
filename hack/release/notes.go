package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// notes writes the part of the changelog about this version; that about what is unreleased where it has none yet.
func (r *release) notes(context.Context) error {
	text, err := os.ReadFile(filepath.Join(r.Root, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	notes, err := section(string(text), strings.TrimPrefix(r.Version, "v"))
	if err != nil {
		return err
	}
	// The changelog's links are relative to the repository.
	notes = strings.ReplaceAll(notes, "](docs/", "](https://github.com/bcsnet/bcsnet/blob/"+r.Version+"/docs/")
	return os.WriteFile(filepath.Join(r.out, "NOTES.md"), []byte(notes), 0o644)
}

// section returns what the changelog has under a version, or else under Unreleased, without the heading.
func section(changelog, version string) (string, error) {
	for _, name := range []string{version, "Unreleased"} {
		_, rest, ok := strings.Cut(changelog, "\n## ["+name+"]")
		if !ok {
			continue
		}
		_, rest, _ = strings.Cut(rest, "\n")
		part, _, _ := strings.Cut(rest, "\n## [")
		if part = strings.TrimSpace(part); part != "" {
			return part + "\n", nil
		}
	}
	return "", fmt.Errorf("CHANGELOG.md says nothing under %s, nor under Unreleased", version)
}
