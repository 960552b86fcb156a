package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPagesDependOnTheCommandsAlone: whoever runs the generator, whenever, gets the same files.
func TestPagesDependOnTheCommandsAlone(t *testing.T) {
	first := generate(t)
	if first["cli/bcsnetctl-pool-list.md"] == "" || first["man/bcsnetctl-pool-list.1"] == "" {
		t.Fatalf("a page of pool list is missing among %d files", len(first))
	}
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "config"))
	t.Setenv("SOURCE_DATE_EPOCH", "1000000000")
	if diff := cmp.Diff(first, generate(t)); diff != "" {
		t.Error(diff)
	}
}

// TestPagesOfGoneCommandsGo: the pages are those of the commands that there are.
func TestPagesOfGoneCommandsGo(t *testing.T) {
	dir := t.TempDir()
	stale := filepath.Join(dir, "man", "bcsnetctl-gone.1")
	if err := writeFile(stale, []byte("old")); err != nil {
		t.Fatal(err)
	}
	if err := writeManPages(filepath.Dir(stale)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(stale); !os.IsNotExist(err) {
		t.Errorf("the page of a command that is gone is still there: %v", err)
	}
}

func generate(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	if err := errors.Join(writeReference(filepath.Join(dir, "cli")), writeManPages(filepath.Join(dir, "man"))); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, path))
		files[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
