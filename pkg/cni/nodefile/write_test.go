package nodefile

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestWrite replaces a file, and makes the directory of the first one. What a killed process left goes after an hour.
func TestWrite(t *testing.T) {
	for name, write := range map[string]func(string, []byte) error{"Replace": Replace, "Keep": Keep} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "a", "b")
			path := filepath.Join(dir, "x.json")
			for _, content := range []string{"longer", "new"} {
				if err := write(path, []byte(content)); err != nil {
					t.Fatal(err)
				}
				if got, err := os.ReadFile(path); string(got) != content || err != nil {
					t.Errorf("%q, %v, want %q", got, err, content)
				}
			}
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%v, %v", info, err)
			}
			old, young := filepath.Join(dir, ".new-1"), filepath.Join(dir, ".new-2") // which may be written just now
			for left, age := range map[string]time.Duration{old: 2 * oldest, young: oldest / 2, path: 2 * oldest} {
				if err := os.WriteFile(left, []byte("{"), 0o600); err != nil {
					t.Fatal(err)
				}
				if err := os.Chtimes(left, time.Time{}, time.Now().Add(-age)); err != nil {
					t.Fatal(err)
				}
			}
			if err := write(filepath.Join(dir, "y.json"), nil); err != nil {
				t.Fatal(err)
			}
			if got, want := list(t, dir), []string{".new-2", "x.json", "y.json"}; !slices.Equal(got, want) {
				t.Errorf("left are %v, want %v", got, want)
			}
		})
	}
}

// TestWriteFails has places that take no file: nothing is left behind.
func TestWriteFails(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "taken", "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{"a directory in its place": "taken", "a file in the directory's place": "file/x"} {
		t.Run(name, func(t *testing.T) {
			for _, write := range []func(string, []byte) error{Replace, Keep} {
				if err := write(filepath.Join(dir, path), []byte("x")); err == nil {
					t.Error("no error")
				}
			}
			if got, want := list(t, dir), []string{"file", "taken"}; !slices.Equal(got, want) {
				t.Errorf("left are %v, want %v", got, want)
			}
		})
	}
}

func list(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
